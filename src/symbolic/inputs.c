/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where symbolic bytes come from: arguments, variables of the environment, standard input, files,
 * and what the program calls symbolic itself. Files have the right size, but what is read from them
 * comes from the model: after a fork each process has its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/world.h"
#include "symbolic/network.h"
#include "symbolic/symbolic.h"

static struct explore_source source[EXPLORE_SOURCES];
static uint32_t sources, used;
static uint64_t inode[EXPLORE_SOURCES]; /* of files */
static bool ended[EXPLORE_SOURCES];     /* somebody has read past the end */
static bool given[EXPLORE_INPUTS];      /* not symbolic */
static uint32_t first_packet, packets;  /* sources */
static bool is_known;                   /* an input of an exploration is given again */

static struct explore_source *add(uint32_t kind, const char *name, uint32_t count)
{
	struct explore_source *added;

	if (sources == EXPLORE_SOURCES || used + count > EXPLORE_INPUTS) {
		session_limit(runtime_session, thread_owner(),
			      "there are too many symbolic bytes: the rest is what it is");
		return NULL;
	}
	added = &source[sources++];
	*added = (struct explore_source){ .kind = kind, .first = used, .count = count };
	REAL(snprintf)(added->name, sizeof(added->name), "%s", name);
	used += count;
	return added;
}

void inputs_keep(struct explore_kept *kept)
{
	kept->sources = sources;
	kept->inputs = used;
	for (uint32_t i = 0; i < sources; i++)
		kept->source[i] = source[i];
	for (uint32_t i = 0; i < used; i++)
		kept->value[i] = expression_model[i];
}

/* These bytes of memory are the source's, from `offset` on. */
static void fill(const struct explore_source *from, uint32_t offset, uint8_t *bytes, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t number = from->first + offset + i;

		bytes[i] = expression_model[number];
		if (symbolic_on)
			memory_store(bytes + i, 1, given[number] ? 0 : expression_input(number));
	}
}

/* ---- arguments and the environment ---- */

static char *make_text(const struct explore_source *from, const char *before)
{
	size_t length = strlen(before);
	char *text = malloc(length + from->count + 1);

	if (!text)
		return NULL;
	for (size_t i = 0; i < length; i++)
		text[i] = before[i];
	fill(from, 0, (uint8_t *)text + length, from->count);
	text[length + from->count] = 0;
	return text;
}

/* Behind those that the program has, one for each source that is one. */
static void append_arguments(int *argc, char ***argv, uint32_t more)
{
	char **list = more ? calloc(*argc + more + 1ul, sizeof(*list)) : NULL;

	if (!list)
		return;
	for (int i = 0; i < *argc; i++)
		list[i] = (*argv)[i];
	for (uint32_t i = 0; i < sources; i++)
		if (source[i].kind == EXPLORE_ARGUMENT)
			list[(*argc)++] = make_text(&source[i], "");
	*argv = list;
}

static void add_arguments(int *argc, char ***argv, const struct explore_settings *settings)
{
	uint32_t more = 0;

	for (uint32_t i = 0; i < settings->sources; i++)
		if (settings->source[i].kind == EXPLORE_ARGUMENT)
			more += add(EXPLORE_ARGUMENT, settings->source[i].name,
				    settings->source[i].count) != NULL;
	append_arguments(argc, argv, more);
}

static void put_variable(const struct explore_source *from)
{
	char before[EXPLORE_NAME + 1], *text;

	REAL(snprintf)(before, sizeof(before), "%s=", from->name);
	text = make_text(from, before);
	if (text)
		putenv(text);
}

static void add_variable(const struct explore_source *wanted)
{
	const struct explore_source *from = add(EXPLORE_VARIABLE, wanted->name, wanted->count);

	if (from)
		put_variable(from);
}

/* ---- files ---- */

/* A file of that size; its content is the model's of the beginning. */
static int make_file(const struct explore_source *from)
{
	struct stat status;
	int fd = memfd_create("perdure-input", 0);

	if (fd < 0 || syscall(SYS_ftruncate, fd, from->count) < 0 || fstat(fd, &status) < 0)
		return -1;
	syscall(SYS_pwrite64, fd, expression_model + from->first, from->count, 0L);
	inode[from - source] = status.st_ino;
	return fd;
}

static void add_file(const struct explore_source *wanted)
{
	const struct explore_source *from = add(wanted->kind, wanted->name, wanted->count);
	int fd = from ? make_file(from) : -1;

	if (fd < 0)
		return;
	if (wanted->kind == EXPLORE_STDIN) {
		syscall(SYS_dup2, fd, STDIN_FILENO);
		syscall(SYS_close, fd);
	} else {
		world_put(wanted->name, fd);
	}
}

/* ---- packets ---- */

static void add_packet(const struct explore_source *wanted, const struct explore_settings *settings)
{
	struct explore_source *from = add(EXPLORE_PACKET, wanted->name, wanted->count);

	for (uint32_t i = 0; from && i < wanted->count; i++) {
		given[from->first + i] = settings->is_given[wanted->first + i];
		if (given[from->first + i])
			expression_model[from->first + i] = settings->given[wanted->first + i];
	}
	if (from && !packets++)
		first_packet = (uint32_t)(from - source);
}

uint32_t inputs_packets(void)
{
	return packets;
}

uint32_t inputs_packet_size(uint32_t packet)
{
	return packet < packets ? source[first_packet + packet].count : 0;
}

void inputs_packet_read(uint32_t packet, uint32_t offset, void *bytes, uint32_t size)
{
	fill(&source[first_packet + packet], offset, bytes, size);
}

void inputs_name_packets(const char *address)
{
	for (uint32_t i = 0; i < packets; i++)
		REAL(snprintf)(source[first_packet + i].name, EXPLORE_NAME, "%s", address);
}

/* ---- threads ---- */

static struct explore_source *schedule;
static uint32_t chosen;

bool inputs_choice(uint32_t *number)
{
	if (is_known && (!schedule || chosen == schedule->count))
		return false; /* it had no more */
	if (!schedule || chosen == EXPLORE_CHOICES) {
		session_limit(
			runtime_session, thread_owner(),
			"a path had too many choices between threads: it took no more of them");
		return false;
	}
	*number = schedule->first + chosen++;
	if (!is_known)
		schedule->count = chosen;
	return true;
}

/* Room for all of them: what comes later has numbers behind it. */
static void add_schedule(void)
{
	if (runtime_session->executions.schedule.policy != SCHEDULE_SCRIPT)
		return;
	schedule = add(EXPLORE_SCHEDULE, "", EXPLORE_CHOICES);
	if (schedule)
		schedule->count = 0;
}

/* ---- reading ---- */

static const struct explore_source *source_of(int fd)
{
	struct stat status;

	if (endpoint_of(fd) && packets)
		return &source[first_packet]; /* whichever comes next */
	if (!symbolic_on || fd < 0)
		return NULL;
	for (uint32_t i = 0; i < sources; i++) {
		if (!inode[i])
			continue;
		if (syscall(SYS_fstat, fd, &status) < 0)
			return NULL;
		for (; i < sources; i++)
			if (inode[i] == status.st_ino)
				return &source[i];
	}
	return NULL;
}

/* Other paths have the same file: this one gets one with what is certain now. */
static void replace_file(int fd, const struct explore_source *from)
{
	long at = syscall(SYS_lseek, fd, 0L, SEEK_CUR), flags = syscall(SYS_fcntl, fd, F_GETFL, 0L);
	int copy = world_own_file(), own;
	char path[64];

	if (copy < 0)
		return;
	syscall(SYS_pwrite64, copy, expression_model + from->first, from->count, 0L);
	world_use_copy(fd, copy);
	REAL(snprintf)(path, sizeof(path), "/proc/self/fd/%d", copy);
	own = (int)syscall(SYS_openat, AT_FDCWD, path, flags & O_ACCMODE, 0);
	if (own >= 0) {
		syscall(SYS_dup2, own, fd);
		syscall(SYS_close, own);
		syscall(SYS_lseek, fd, at, SEEK_SET);
	}
	if (from->kind == EXPLORE_STDIN)
		syscall(SYS_close, copy);
}

void inputs_changed(int fd, uint64_t size)
{
	const struct explore_source *from = source_of(fd);

	if (!from || from->kind == EXPLORE_PACKET || size >= from->count)
		return; /* growing leaves it as it is */
	symbolic_lose(SYMBOLIC_LOST_CALL);
	for (uint32_t i = 0; i < from->count; i++)
		path_assume(
			expression_make(SYMBOLIC_EQ, 8, expression_input(from->first + i),
					expression_constant(8, expression_model[from->first + i])));
	replace_file(fd, from);
	inode[from - source] = 0;
}

void inputs_mapped(int fd, void *start, uint64_t offset, uint64_t size)
{
	const struct explore_source *from = source_of(fd);

	/* What cannot be written holds what it held at first. */
	if (from && from->kind != EXPLORE_PACKET && offset < from->count &&
	    !syscall(SYS_mprotect, start, size, PROT_READ | PROT_WRITE))
		fill(from, (uint32_t)offset, start,
		     from->count - offset < size ? from->count - (uint32_t)offset : (uint32_t)size);
}

/* Reads from where the descriptor is, or from an offset; as read does. */
static ssize_t read_source(const struct explore_source *from, int fd, void *bytes, size_t size,
			   int64_t offset)
{
	int64_t at = offset >= 0 ? offset : syscall(SYS_lseek, fd, 0L, SEEK_CUR);
	size_t left = at < from->count ? from->count - (size_t)at : 0;
	ssize_t got;

	if (from->kind == EXPLORE_PACKET) {
		got = read(fd, bytes, size);
		ended[from - source] |= got == 0;
		return got;
	}
	if (at < 0)
		return -1;
	if (size > left)
		size = left;
	ended[from - source] |= !size;
	fill(from, (uint32_t)at, bytes, (uint32_t)size);
	if (offset < 0)
		syscall(SYS_lseek, fd, at + (int64_t)size, SEEK_SET);
	return (ssize_t)size;
}

/* ---- what stands in for libc's functions ---- */

PUBLIC ssize_t __perdure_sym_read(int fd, void *bytes, size_t size);
PUBLIC ssize_t __perdure_sym_pread(int fd, void *bytes, size_t size, off_t offset);
PUBLIC size_t __perdure_sym_fread(void *bytes, size_t size, size_t count, FILE *file);
PUBLIC int __perdure_sym_fgetc(FILE *file);
PUBLIC int __perdure_sym_getchar(void);
PUBLIC char *__perdure_sym_fgets(char *text, int size, FILE *file);
PUBLIC ssize_t __perdure_sym_getline(char **line, size_t *room, FILE *file);
PUBLIC int __perdure_sym_feof(FILE *file);

ssize_t __perdure_sym_read(int fd, void *bytes, size_t size)
{
	uint64_t value[3] = { (uint32_t)fd, (uintptr_t)bytes, size };
	const struct explore_source *from;

	symbolic_take((const void *)__perdure_sym_read, __builtin_frame_address(0), value, 3);
	from = source_of((int)value[0]);
	if (from)
		return read_source(from, (int)value[0], (void *)value[1], value[2], -1);
	return read((int)value[0], (void *)value[1], value[2]);
}

ssize_t __perdure_sym_pread(int fd, void *bytes, size_t size, off_t offset)
{
	uint64_t value[4] = { (uint32_t)fd, (uintptr_t)bytes, size, (uint64_t)offset };
	const struct explore_source *from;

	symbolic_take((const void *)__perdure_sym_pread, __builtin_frame_address(0), value, 4);
	from = source_of((int)value[0]);
	if (from)
		return read_source(from, (int)value[0], (void *)value[1], value[2],
				   (int64_t)value[3]);
	return pread((int)value[0], (void *)value[1], value[2], (off_t)value[3]);
}

static const struct explore_source *source_of_stream(FILE *file)
{
	return (symbolic_on || network_on) && file ? source_of(fileno(file)) : NULL;
}

size_t __perdure_sym_fread(void *bytes, size_t size, size_t count, FILE *file)
{
	uint64_t value[4] = { (uintptr_t)bytes, size, count, (uintptr_t)file };
	const struct explore_source *from;
	ssize_t got;

	symbolic_take((const void *)__perdure_sym_fread, __builtin_frame_address(0), value, 4);
	file = (FILE *)value[3];
	from = source_of_stream(file);
	if (!from)
		return fread((void *)value[0], value[1], value[2], file);
	got = read_source(from, fileno(file), (void *)value[0], value[1] * value[2], -1);
	ended[from - source] |= (size_t)got < value[1] * value[2];
	return value[1] ? (size_t)got / value[1] : 0;
}

static int get_byte(const void *function, const struct explore_source *from, FILE *file)
{
	uint8_t byte;
	uint32_t e;

	if (read_source(from, fileno(file), &byte, 1, -1) != 1)
		return EOF;
	e = symbolic_on ? memory_load(&byte, 1) : 0;
	symbolic_result(function, e ? expression_extend(SYMBOLIC_ZEXT, e, 32) : 0);
	memory_clear(&byte, 1);
	return byte;
}

int __perdure_sym_fgetc(FILE *file)
{
	const struct explore_source *from = source_of_stream(file);

	symbolic_take(NULL, __builtin_frame_address(0), NULL, 0);
	return from ? get_byte((const void *)__perdure_sym_fgetc, from, file) : fgetc(file);
}

int __perdure_sym_getchar(void)
{
	const struct explore_source *from = source_of_stream(stdin);

	symbolic_take(NULL, __builtin_frame_address(0), NULL, 0);
	return from ? get_byte((const void *)__perdure_sym_getchar, from, stdin) : getchar();
}

/* Up to the end of a line, which is decided byte by byte; the number of bytes. */
static size_t read_line(const struct explore_source *from, FILE *file, char *text, size_t most,
			const void *who)
{
	size_t n = 0;

	while (n < most && read_source(from, fileno(file), text + n, 1, -1) == 1) {
		uint32_t byte = symbolic_on ? memory_load(text + n, 1) : 0;

		n++;
		if (!byte && text[n - 1] == '\n')
			break;
		if (byte && symbolic_decide(expression_make(SYMBOLIC_EQ, 8, byte,
							    expression_constant(8, '\n')),
					    (uintptr_t)who))
			break;
	}
	return n;
}

char *__perdure_sym_fgets(char *text, int size, FILE *file)
{
	uint64_t value[3] = { (uintptr_t)text, (uint32_t)size, (uintptr_t)file };
	const struct explore_source *from;
	size_t n;

	symbolic_take((const void *)__perdure_sym_fgets, __builtin_frame_address(0), value, 3);
	text = (char *)value[0];
	size = (int)value[1];
	file = (FILE *)value[2];
	from = source_of_stream(file);
	if (!from)
		return fgets(text, size, file);
	if (size <= 0)
		return NULL;
	n = read_line(from, file, text, (size_t)size - 1, __builtin_return_address(0));
	if (!n && size > 1)
		return NULL;
	memory_clear(text + n, 1);
	text[n] = 0;
	return text;
}

ssize_t __perdure_sym_getline(char **line, size_t *room, FILE *file)
{
	const struct explore_source *from = source_of_stream(file);
	size_t n;

	symbolic_take(NULL, __builtin_frame_address(0), NULL, 0);
	if (!from)
		return getline(line, room, file);
	if (!*line || *room < from->count + 1ul) {
		char *more = realloc(*line, from->count + 1ul);

		if (!more)
			return -1;
		*line = more;
		*room = from->count + 1ul;
	}
	n = read_line(from, file, *line, from->count, __builtin_return_address(0));
	memory_clear(*line + n, 1);
	(*line)[n] = 0;
	return n ? (ssize_t)n : -1;
}

int __perdure_sym_feof(FILE *file)
{
	const struct explore_source *from = source_of_stream(file);

	symbolic_take(NULL, __builtin_frame_address(0), NULL, 0);
	return from ? ended[from - source] : feof(file);
}

PUBLIC void __perdure_sym_rewind(FILE *file);
PUBLIC int __perdure_sym_ungetc(int c, FILE *file);

void __perdure_sym_rewind(FILE *file)
{
	const struct explore_source *from = source_of_stream(file);

	symbolic_take(NULL, __builtin_frame_address(0), NULL, 0);
	if (from) {
		ended[from - source] = false;
		syscall(SYS_lseek, fileno(file), 0L, SEEK_SET);
	}
	rewind(file);
}

/* Back to where it came from: it is the same byte. */
int __perdure_sym_ungetc(int c, FILE *file)
{
	const struct explore_source *from = source_of_stream(file);

	symbolic_take(NULL, __builtin_frame_address(0), NULL, 0);
	if (!from)
		return ungetc(c, file);
	ended[from - source] = false;
	if (from->kind == EXPLORE_PACKET)
		return network_unread() ? c : EOF;
	return syscall(SYS_lseek, fileno(file), -1L, SEEK_CUR) < 0 ? EOF : c;
}

/* ---- what is printed ---- */

HIDDEN uint64_t symbolic_hook_printed(uint32_t s, uint64_t stream);
HIDDEN void symbolic_hook_printed_memory(uint64_t address, uint64_t stream, uint64_t size);

/* Does it go to a file, of which it may come back? A descriptor, or a FILE. */
static bool is_kept(uint64_t stream)
{
	enum { DESCRIPTORS = 1 << 16 };
	int fd = stream < DESCRIPTORS ? (int)stream : fileno((FILE *)stream);
	struct stat status;

	return fd > STDERR_FILENO && syscall(SYS_fstat, fd, &status) == 0 &&
	       (S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

uint64_t symbolic_hook_printed(uint32_t s, uint64_t stream)
{
	return is_kept(stream) ? symbolic_fix(s, SYMBOLIC_LOST_CALL) : expression_value(s);
}

void symbolic_hook_printed_memory(uint64_t address, uint64_t stream, uint64_t size)
{
	if (!symbolic_on || !is_kept(stream))
		return;
	if (size)
		memory_fix((const void *)address, size, SYMBOLIC_LOST_CALL);
	else
		memory_fix_from((const void *)address, SYMBOLIC_LOST_CALL);
}

/* ---- an input that is known ---- */

static struct explore_kept known;
static uint32_t next_named; /* sources before it were asked for */

/* Which one it is, is the command's decision. */
static bool read_known(int32_t from, uint32_t number)
{
	const struct executions *all = &runtime_session->executions;
	char path[64];
	int fd;

	REAL(snprintf)(path, sizeof(path), "/proc/%d/fd/%d", all->command, from);
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return false;
	is_known = syscall(SYS_pread64, fd, &known, sizeof(known),
			   (number - 1l) * (long)sizeof(known)) == sizeof(known);
	syscall(SYS_close, fd);
	return is_known;
}

static void use_known(int *argc, char ***argv)
{
	uint32_t arguments = 0;

	for (uint32_t i = 0; i < sources; i++) {
		if (source[i].kind == EXPLORE_ARGUMENT)
			arguments++;
		else if (source[i].kind == EXPLORE_VARIABLE)
			put_variable(&source[i]);
	}
	append_arguments(argc, argv, arguments);
}

static void note_input(struct raw_finding *finding)
{
	finding->input = runtime_session->executions.given;
}

void inputs_give(int *argc, char ***argv)
{
	const struct executions *all = runtime_session ? &runtime_session->executions : NULL;
	bool has_packets = false, recovers, own;

	if (!all || !all->given || !runtime_execution)
		return;
	own = runtime_recovers && all->given_recovery;
	recovers = runtime_recovers && !own; /* nobody sends it anything */
	if (!(own ? read_known(all->given_recovery_fd, all->given_recovery)
		  : read_known(all->given_fd, all->given)))
		return;
	raw_on_new = note_input;
	for (uint32_t i = 0; i < known.inputs; i++)
		expression_model[i] = known.value[i];
	sources = known.sources;
	used = known.inputs;
	for (uint32_t i = 0; i < sources; i++) {
		source[i] = known.source[i];
		if (source[i].kind == EXPLORE_PACKET) {
			has_packets = true;
			if (!recovers && !packets++)
				first_packet = i;
		} else if (source[i].kind == EXPLORE_SCHEDULE && !recovers) {
			schedule = &source[i];
		}
	}
	if (!recovers || all->given_to_recovery)
		use_known(argc, argv);
	else
		is_known = false;
	network_start(has_packets);
}

/* ---- what the program names ---- */

PUBLIC void __perdure_symbolic(void *p, size_t n, const char *name);
PUBLIC void __perdure_assume(int condition);
PUBLIC void __perdure_sym_assume(int condition);

/* Outside of an exploration: bytes for this name, from the file of a replay. */
static void replay(uint8_t *bytes, size_t n)
{
	static FILE *file;
	const char *path = getenv("PERDURE_INPUTS");
	unsigned byte;

	if (!file && path)
		file = fopen(path, "re");
	for (size_t i = 0; file && i < n; i++)
		if (fscanf(file, "%2x", &byte) == 1)
			bytes[i] = (uint8_t)byte;
}

void __perdure_symbolic(void *p, size_t n, const char *name)
{
	const struct explore_source *from;

	if (is_known) {
		while (next_named < sources && source[next_named].kind != EXPLORE_NAMED)
			next_named++;
		if (next_named < sources && source[next_named].count == n)
			fill(&source[next_named++], 0, p, (uint32_t)n);
		return;
	}
	if (!symbolic_on && !runtime_explores) {
		replay(p, n);
		return;
	}
	from = n <= EXPLORE_INPUTS ? add(EXPLORE_NAMED, name ? name : "", (uint32_t)n) : NULL;
	if (from)
		fill(from, 0, p, (uint32_t)n);
}

void __perdure_assume(int condition)
{
	if (symbolic_on && !condition)
		states_silence();
}

void __perdure_sym_assume(int condition)
{
	static struct path_change change;
	struct symbolic_call call = __perdure_symbolic_call;
	uint32_t holds;

	symbolic_frame = __builtin_frame_address(0);
	__perdure_symbolic_call.callee = NULL;
	if (!symbolic_on || call.callee != (const void *)__perdure_sym_assume ||
	    !call.argument[0]) {
		__perdure_assume(condition);
		return;
	}
	holds = expression_make(SYMBOLIC_NE, 32, call.argument[0], expression_constant(32, 0));
	if (!expression_value(holds)) {
		if (path_may(holds, &change) != PATH_YES)
			states_silence();
		memory_before_change();
		path_use(&change);
		memory_after_change();
	}
	path_assume(holds);
}

/* ---- the beginning ---- */

void inputs_start(int *argc, char ***argv, const struct explore_kept *kept)
{
	const struct explore_settings *settings = &symbolic_shared()->settings;

	for (uint32_t i = 0; kept && i < kept->inputs; i++)
		expression_model[i] = kept->value[i];
	expression_model_changed();
	add_arguments(argc, argv, settings);
	for (uint32_t i = 0; i < settings->sources; i++) {
		const struct explore_source *wanted = &settings->source[i];

		if (wanted->kind == EXPLORE_VARIABLE)
			add_variable(wanted);
		else if (wanted->kind == EXPLORE_STDIN || wanted->kind == EXPLORE_FILE)
			add_file(wanted);
	}
	for (uint32_t i = 0; i < settings->sources; i++)
		if (settings->source[i].kind == EXPLORE_PACKET)
			add_packet(&settings->source[i], settings);
	add_schedule();
	network_start(packets > 0);
}
