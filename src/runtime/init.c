/* SPDX-License-Identifier: BSD-3-Clause */
/* Start of the runtime in a process: finds the session, tells it who we are, wraps main. */
#include "runtime/runtime.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binary/binary.h"
#include "checkers/checkers.h"
#include "fibers/fibers.h"
#include "heap/heap.h"
#include "model/spin.h"
#include "races/races.h"
#include "runtime/execution.h"
#include "runtime/hooks.h"
#include "runtime/library.h"
#include "symbolic/symbolic.h"

struct session *runtime_session;
uint32_t runtime_image;
bool runtime_involved;
bool runtime_plain;
bool runtime_has_sanitizer;
bool runtime_is_zygote;
uintptr_t runtime_pm_end = UINTPTR_MAX;

/* The entry of a forked child that has ended, which nothing refers to; otherwise a new one. */
static uint32_t free_image(struct session *session)
{
	for (uint32_t i = 0; session->images > SESSION_IMAGES / 2 && i < session->images; i++)
		if (session->image[i].ended && session->image[i].modules_of != i)
			return i;
	return session->images < SESSION_IMAGES - EXECUTIONS ? session->images++
							     : SESSION_IMAGES - EXECUTIONS - 1;
}

static uint32_t add_image(struct session *session, int32_t same_modules_as, pid_t pid)
{
	bool locked = spin_lock(&session->lock, thread_owner());
	uint32_t index = free_image(session);
	struct session_image *image = &session->image[index];

	image->pid = pid;
	image->ended = false;
	image->modules_of = same_modules_as < 0 ? index : (uint32_t)same_modules_as;
	if (locked)
		spin_unlock(&session->lock);
	return index;
}

/* Programs that recoveries start are many: those of one worker share an image, one after another.
 */
static uint32_t image_of_recovery(struct session *session, uint32_t number)
{
	uint32_t index = SESSION_IMAGES - 1 - number % EXECUTIONS;

	session->image[index] = (struct session_image){ .pid = getpid(), .modules_of = index };
	return index;
}

/*
 * The image of a forked child, with the mappings it got. Parent and child both ask for it: from
 * the moment fork returns in either of them, the session must know that there are two.
 */
static uint32_t image_of_child(uint32_t parent, pid_t pid)
{
	struct session *session = runtime_session;
	bool locked = spin_lock(&session->lock, thread_owner());
	uint32_t modules_of = session->image[parent].modules_of, index;

	for (index = 0; index < session->images; index++)
		if (!session->image[index].ended && session->image[index].pid == pid &&
		    session->image[index].modules_of == modules_of)
			break;
	if (index == session->images) {
		index = add_image(session, modules_of, pid);
		window_copy_ranges(parent, index);
	}
	if (locked)
		spin_unlock(&session->lock);
	return index;
}

static void after_fork_in_child(void)
{
	if (!runtime_session || runtime_is_zygote)
		return;
	thread_after_fork();
	fibers_after_fork();
	if (runtime_recovers) { /* is no image of its own: what it does is not followed */
		execution_note_input(INPUT_PROCESSES);
		return;
	}
	runtime_pm_end = HEAP_BASE;
	execution_heap_after_fork();
	runtime_image = image_of_child(runtime_image, getpid());
	runtime_stack_image = MODULES_IMAGE_UNKNOWN;
}

PUBLIC pid_t fork(void)
{
	pid_t pid;

	if (runtime_session && (runtime_session->images > SESSION_IMAGES / 2 ||
				runtime_session->ranges > SESSION_RANGES / 2))
		window_end_dead_images();
	buffer_drain();
	if (runtime_execution)
		execution_note_input(INPUT_PROCESSES); /* with a time of their own */
	pid = REAL(fork)();
	if (pid > 0 && runtime_session && !runtime_recovers)
		image_of_child(runtime_image, pid);
	return pid;
}

/* Is this the program that the user has named, and not one that it has started? */
static bool is_analysed(const struct session *session)
{
	const struct session_program *program = session->options.program;
	struct stat status;

	if (stat("/proc/self/exe", &status) < 0)
		return false;
	for (unsigned i = 0; i < 2; i++)
		if (program[i].inode == status.st_ino && program[i].device == status.st_dev)
			return true;
	return false;
}

static void attach(const char *path)
{
	struct session *session = session_attach(path);
	const char *execution = getenv(EXECUTION_VARIABLE);

	if (!session) {
		message("cannot join the analysis at %s: %s; this process is not observed", path,
			strerror(errno));
		return;
	}
	thread_init();
	runtime_session = session;
	checkers_start(session);
	session->idle = !session->options.enabled && !session->listening &&
			!session->executions.on && !session->stream.on;
	races_start();
	session->idle &= !runtime_races;
	runtime_wants_loads |= runtime_races;
	__perdure_inline.fibers |= runtime_races;
	runtime_image = execution && atoi(execution) ? image_of_recovery(session, atoi(execution))
						     : add_image(session, -1, getpid());
	if (runtime_image > 0)
		session->lines.concurrent = 1;
	if (is_analysed(session))
		binary_start();
	runtime_involved = modules_any_instrumented();
	if (execution) {
		execution_join(atoi(execution));
		if (runtime_recovers)
			execution_note_input(INPUT_PROGRAMS);
	}
	runtime_wants_loads |= session->stream.on;
#ifndef __clang__ /* see quick.c */
	runtime_plain =
		!runtime_races && !session->executions.on && !session->stream.on && !session->idle;
#endif
	runtime_has_sanitizer = real_exists("__sanitizer_print_stack_trace");
	if (runtime_involved) {
		modules_update();
		library_hooks_update();
	}
	pthread_atfork(NULL, NULL, after_fork_in_child);
	window_end_dead_images();
	files_note_heap();
}

/*
 * Runs before all other constructors: those of libraries are patched, or store to PM. That is why
 * the library is linked as the one to be initialised first, before the C library has seen the
 * environment.
 */
__attribute__((constructor(102))) static void runtime_start(int argc, char **argv, char **envp)
{
	const char *path, *options;
	char own_session[PATH_MAX];
	int saved_errno = errno;

	environ = envp;
	path = getenv("PERDURE_SESSION");
	options = getenv("PERDURE_OPTIONS");
	(void)argc;
	if (!path && options && strstr(options, "--pm-heap") && !__perdure_heap_used)
		watch_restart_with_heap(argv);
	if (path && *path)
		attach(path);
	else if (options && *options && watch_start(options, own_session, sizeof(own_session)))
		attach(own_session);
	errno = saved_errno;
}

/* ---- main, called from a place that stack walks recognise as their end ---- */

static int (*program_main)(int, char **, char **);

static struct {
	int argc, status;
	char **argv, **envp;
	bool returned;
} main_call;

static void run_main(struct fiber *fiber)
{
	(void)fiber;
	main_call.status =
		stack_call_main(program_main, main_call.argc, main_call.argv, main_call.envp);
	main_call.returned = true;
}

static int call_main(int argc, char **argv, char **envp)
{
	main_call.argc = argc;
	main_call.argv = argv;
	main_call.envp = envp;
	if (fibers_on)
		fiber_run_until_exit(fiber_current, run_main);
	else
		run_main(NULL);
	buffer_drain();
	if (!main_call.returned)
		fiber_end_main();
	symptoms_return(main_call.status, (const void *)program_main);
	return main_call.status;
}

PUBLIC int __libc_start_main(int (*main_function)(int, char **, char **), int argc, char **argv,
			     void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
			     void *stack_end);

PUBLIC int __libc_start_main(int (*main_function)(int, char **, char **), int argc, char **argv,
			     void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
			     void *stack_end)
{
	program_main = main_function;
	states_start(&argc, &argv);
	zygote_serve();
	inputs_give(&argc, &argv);
	return REAL(__libc_start_main)(call_main, argc, argv, init, fini, rtld_fini, stack_end);
}
