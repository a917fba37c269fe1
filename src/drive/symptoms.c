/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/symptoms.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static char *line_with(const char *output, const char *mark)
{
	const char *found = strstr(output, mark), *start = found;

	if (!found)
		return NULL;
	while (start > output && start[-1] != '\n')
		start--;
	if (strncmp(start, "==", 2) == 0) { /* without the process number */
		const char *after = strstr(start + 2, "==");

		if (after && after < found)
			start = after + 2;
	}
	return strndup(start, strcspn(start, "\n"));
}

char *symptom_sanitizer(const char *output)
{
	static const char *const marks[] = { "ERROR: AddressSanitizer", "ERROR: MemorySanitizer",
					     "ERROR: UndefinedBehaviorSanitizer",
					     "ERROR: HWAddressSanitizer", ": runtime error: " };

	for (size_t i = 0; output && i < sizeof(marks) / sizeof(*marks); i++) {
		char *line = line_with(output, marks[i]);

		if (line)
			return line;
	}
	return NULL;
}

/* What an assertion, or C++'s terminate, has printed. */
static char *last_words(const struct outcome *outcome)
{
	static const char *const marks[] = { "Assertion", "assertion", "terminate called",
					     "double free", "corrupt" };

	for (size_t i = 0; outcome->output && i < sizeof(marks) / sizeof(*marks); i++) {
		char *line = line_with(outcome->output, marks[i]);

		if (line)
			return line;
	}
	return NULL;
}

static char *signal_text(const struct outcome *outcome)
{
	char *text = NULL, *words = NULL;
	int length;

	switch (outcome->symptom) {
	case SIGABRT:
		words = last_words(outcome);
		length = asprintf(&text, "recovery aborts%s%s", words ? ": " : "",
				  words ? words : "");
		break;
	case SIGSEGV:
	case SIGBUS:
		length = asprintf(&text, "recovery is killed by %s at address 0x%lx",
				  outcome->symptom == SIGSEGV ? "SIGSEGV" : "SIGBUS",
				  outcome->address);
		break;
	default:
		length = asprintf(&text, "recovery is killed by SIG%s",
				  sigabbrev_np(outcome->symptom));
	}
	free(words);
	if (length < 0)
		abort();
	return text;
}

char *symptom_text(const struct outcome *outcome)
{
	char *text = NULL, *line;
	int length = 0;

	switch (outcome->symptom) {
	case SYMPTOM_HANG:
		return strdup("recovery does not end: it has used up its CPU time (--timeout)");
	case SYMPTOM_BLOCKED:
		return strdup("recovery does not end: it waits, and nothing happens");
	case SYMPTOM_DEADLOCK:
		length = asprintf(&text,
				  outcome->deadlocked == 1
					  ? "recovery waits for itself: a deadlock"
					  : "recovery deadlocks: %u threads wait, and nobody "
					    "can wake them",
				  outcome->deadlocked);
		break;
	case SYMPTOM_MEMORY:
		return strdup("recovery takes memory without end");
	case SYMPTOM_OUTPUT:
		return strdup("recovery writes files without end");
	case SYMPTOM_PROCESSES:
		return strdup("recovery starts processes without end");
	case SYMPTOM_SANITIZER:
		line = symptom_sanitizer(outcome->output);
		length = asprintf(&text, "recovery has an error: %s", line ? line : "?");
		free(line);
		break;
	case SYMPTOM_BAD_EXIT:
		length = asprintf(&text, "recovery ends with status %d",
				  WEXITSTATUS(outcome->status));
		break;
	case SYMPTOM_INCONSISTENT:
		if (WIFSIGNALED(outcome->status))
			length = asprintf(&text, "the checker is killed by SIG%s",
					  sigabbrev_np(WTERMSIG(outcome->status)));
		else
			length = asprintf(&text,
					  "the checker finds the image inconsistent (status %d)",
					  WEXITSTATUS(outcome->status));
		break;
	default:
		return signal_text(outcome);
	}
	if (length < 0)
		abort();
	return text;
}
