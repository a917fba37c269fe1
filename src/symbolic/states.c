/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * States are processes. One that could go two ways forks; of all that wait, those with the greatest
 * weight go on. The root forks the first path, and those whose states were kept as inputs because
 * there was no room, or because what they have open cannot be shared; it sees them all end.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fibers/fibers.h"
#include "model/spin.h"
#include "runtime/world.h"
#include "symbolic/descriptors.h"
#include "symbolic/symbolic.h"

static struct explore_state *self; /* of this process; null in the root */
static uint32_t decisions;         /* that this path has taken */
static uint32_t replayed;          /* so many are known */
static uint32_t own_input;         /* index + 1 of what was kept of this path */
static bool over;
static bool confirms;                 /* an input that is known, with numbers as they are */
static struct sigaction own_children; /* what SIGCHLD means to the program */

static struct explore *shared(void)
{
	return symbolic_shared();
}

static bool lock(void)
{
	return spin_lock(&shared()->lock, thread_owner());
}

static void unlock(bool locked)
{
	if (locked)
		spin_unlock(&shared()->lock);
}

/* ---- which one goes on ---- */

static uint32_t *taken(uint64_t edge)
{
	return &shared()->edge[explore_edge_at(edge)];
}

static uint32_t weight_behind(uint64_t edge)
{
	const struct explore *explore = shared();
	uint32_t at = explore_weight_at(edge);

	for (uint32_t i = 0; explore->weights && i < explore->weights; i++, at++) {
		const struct explore_weight *w = &explore->weight[at % explore->weights];

		if (w->site == edge)
			return w->weight;
		if (!w->site)
			break;
	}
	return 0;
}

/* The greatest goes on first. */
static uint64_t rank(const struct explore_state *state)
{
	const struct explore_settings *settings = &shared()->settings;
	uint32_t seldom = ~*taken(state->edge);

	switch (settings->search) {
	case EXPLORE_DFS:
		return state->born + 1;
	case EXPLORE_BFS:
		return ~(uint64_t)0 - state->born;
	case EXPLORE_RANDOM:
		return explore_mix(settings->seed ^ explore_mix(state->born)) | 1;
	case EXPLORE_COVERAGE:
		return (uint64_t)seldom << 32 | (uint32_t)~state->depth;
	default: /* what was seen often is worth less: loops would never be left */
		return ((state->weight + 1) << 32) / (1 + (uint64_t)*taken(state->edge));
	}
}

/* One that must be run again from the beginning has to be better than one that only waits. */
static uint64_t worth(const struct explore_state *state)
{
	return state->status == EXPLORE_AS_INPUT ? rank(state) / 2 : rank(state);
}

static struct explore_state *best(bool inputs_too)
{
	struct explore *explore = shared();
	struct explore_state *found = NULL;

	for (uint32_t i = 0; i < explore->states_used; i++) {
		struct explore_state *state = &explore->state[i];

		if (state->status != EXPLORE_WAITING &&
		    !(inputs_too && state->status == EXPLORE_AS_INPUT))
			continue;
		if (!found || worth(state) > worth(found))
			found = state;
	}
	return found;
}

static struct explore_state *new_state(void)
{
	struct explore *explore = shared();
	uint32_t i;

	for (i = explore->free_from; i < EXPLORE_STATES; i++)
		if (explore->state[i].status == EXPLORE_FREE)
			break;
	if (i == EXPLORE_STATES || (explore->settings.max_states &&
				    explore->counts.waiting >= explore->settings.max_states)) {
		explore->counts.dropped++;
		return NULL;
	}
	if (i >= explore->states_used)
		explore->states_used = i + 1;
	explore->free_from = i + 1;
	explore->state[i] = (struct explore_state){ .status = EXPLORE_NEW,
						    .path = ++explore->next_path,
						    .born = ++explore->clock };
	explore->counts.states++;
	return &explore->state[i];
}

static void free_state(struct explore_state *state)
{
	struct explore *explore = shared();
	uint32_t index = (uint32_t)(state - explore->state);

	state->status = EXPLORE_FREE;
	if (index < explore->free_from)
		explore->free_from = index;
	while (explore->states_used && !explore->state[explore->states_used - 1].status)
		explore->states_used--;
}

static void let_go(struct explore_state *state)
{
	state->status = EXPLORE_RUNNING;
	shared()->counts.waiting--;
	__atomic_store_n(&state->go, 1, __ATOMIC_RELEASE);
	kernel_futex(&state->go, FUTEX_WAKE, 1, NULL);
}

static void wait_for_turn(void)
{
	while (!__atomic_load_n(&self->go, __ATOMIC_ACQUIRE))
		kernel_futex(&self->go, FUTEX_WAIT, 0, NULL);
	self->go = 0;
}

/* Another one is more promising: it goes on instead of this one. */
static void give_way(void)
{
	bool locked = lock();
	struct explore_state *other = best(false);
	bool waits = other && rank(other) > rank(self);

	if (waits) {
		self->go = 0;
		self->status = EXPLORE_WAITING;
		shared()->counts.waiting++;
		let_go(other);
	}
	unlock(locked);
	if (waits)
		wait_for_turn();
}

/* ---- inputs ---- */

static struct explore_kept *new_kept(uint32_t *index)
{
	struct explore *explore = shared();
	bool locked = lock();
	struct explore_kept *kept = NULL;

	for (uint32_t i = explore->kept_from; i < EXPLORE_KEPT && !kept; i++)
		if (!explore->input[i].used) {
			kept = &explore->input[i];
			kept->used = true;
			*index = i;
			explore->kept_from = i + 1;
		}
	unlock(locked);
	return kept;
}

static void free_kept(uint32_t index)
{
	shared()->input[index].used = false;
	if (index < shared()->kept_from)
		shared()->kept_from = index;
}

static void keep_own(void)
{
	struct explore_kept *kept;
	uint32_t index;

	if (!own_input) {
		if (!new_kept(&index))
			return;
		own_input = index + 1;
	}
	kept = &shared()->input[own_input - 1];
	kept->events = decisions;
	inputs_keep(kept);
}

static void on_new_finding(struct raw_finding *finding)
{
	if (!self)
		return;
	if (!own_input)
		keep_own();
	finding->input = own_input;
	finding->paths = (uint32_t)shared()->counts.paths;
}

/* It is there again, by whatever way it came to the second place that it is about. */
static void on_confirmed(struct raw_finding *finding)
{
	struct raw_table *raw = &runtime_session->raw;

	for (uint32_t i = 1; i <= raw->entries; i++)
		if (raw->entry[i].kind == finding->kind && raw->entry[i].stack == finding->stack) {
			if (!raw->entry[i].confirmed)
				raw->entry[i].input = self->kept + 1;
			raw->entry[i].confirmed = 1;
		}
}

/* Another path has it, too: should the first input not show it again, this one may. */
static bool on_known_finding(struct raw_finding *finding)
{
	uint32_t i;

	if (!self || finding->input == own_input)
		return true;
	for (i = 0; i < RAW_INPUTS && finding->more[i]; i++)
		if (finding->more[i] == own_input)
			return true;
	if (i == RAW_INPUTS)
		return true;
	if (!own_input)
		keep_own();
	finding->more[i] = own_input;
	return true;
}

static bool on_confirmed_again(struct raw_finding *finding)
{
	on_confirmed(finding);
	return false; /* this is no other occurrence */
}

uint32_t states_keep_witness(const struct path_change *change)
{
	uint32_t index;
	struct explore_kept *kept = new_kept(&index);

	if (!kept)
		return 0;
	inputs_keep(kept);
	for (uint32_t i = 0; i < change->count; i++)
		kept->value[change->to[i].input] = change->to[i].value;
	kept->events = decisions;
	return index + 1;
}

/* What another process would do that takes the other way is kept as an input. */
static void keep_state(uint64_t site, unsigned way, const struct path_change *change)
{
	uint32_t index = states_keep_witness(change);
	struct explore_state *state = NULL;
	bool locked;

	if (!index--) {
		symbolic_count(&shared()->counts.dropped);
		return;
	}
	shared()->input[index].events++;
	locked = lock();
	state = new_state();
	if (state) {
		state->kept = index;
		state->depth = self->depth + 1;
		state->edge = explore_edge(site, way);
		state->weight = weight_behind(state->edge);
		state->status = EXPLORE_AS_INPUT;
		shared()->counts.waiting++;
	} else {
		free_kept(index);
	}
	unlock(locked);
}

/* ---- forking ---- */

static bool can_be_shared(const struct open_files *files)
{
	return !files->others &&
	       !(runtime_execution->inputs & (INPUT_PROCESSES | INPUT_SOCKETS | INPUT_TIMERS)) &&
	       !(runtime_execution->inputs & INPUT_THREADS && !fibers_on);
}

static void become(struct explore_state *state)
{
	self = state;
	state->pid = getpid();
	over = false;
	own_input = 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fibers_are_path();
	thread_is_path();
}

/* All are children of the root, so that it sees them end; for the program nothing has happened. */
static pid_t fork_path(void)
{
	unsigned long flags = SIGCHLD | (self ? CLONE_PARENT : 0);

	return (pid_t)syscall(SYS_clone, flags, 0L, 0L, 0L, 0L);
}

/* It waits from the moment on at which others can see it; it may be let go before it exists. */
static struct explore_state *new_waiting(uint64_t site, unsigned way)
{
	struct explore *explore = shared();
	bool locked = lock();
	struct explore_state *state = new_state();

	if (state) {
		state->depth = self->depth + 1;
		state->edge = explore_edge(site, way);
		state->weight = weight_behind(state->edge);
		state->status = EXPLORE_WAITING;
		explore->counts.waiting++;
		if (++explore->counts.live > explore->counts.most_live)
			explore->counts.most_live = explore->counts.live;
	}
	unlock(locked);
	return state;
}

static void give_up(struct explore_state *state)
{
	struct explore *explore = shared();
	bool locked = lock();

	if (state->status == EXPLORE_RUNNING)
		explore->counts.running--;
	else
		explore->counts.waiting--;
	explore->counts.live--;
	free_state(state);
	unlock(locked);
}

bool states_fork(uint64_t site, unsigned way, const struct path_change *change)
{
	static struct open_files files;
	struct explore *explore = shared();
	struct explore_state *state;
	pid_t pid;

	if (explore->stopped)
		return false;
	descriptors_find(&files);
	if (explore->counts.live >= explore->settings.live || !can_be_shared(&files)) {
		keep_state(site, way, change);
		return false;
	}
	state = new_waiting(site, way);
	if (!state)
		return false;
	world_share();
	descriptors_copy_written(&files);
	pid = fork_path();
	if (pid == 0) {
		become(state);
		descriptors_reopen(&files);
		wait_for_turn();
		return true;
	}
	descriptors_drop_copies(&files);
	if (pid < 0) {
		give_up(state);
		keep_state(site, way, change);
	}
	return false;
}

bool states_is_replayed(void)
{
	return decisions < replayed;
}

void states_took(uint64_t site, unsigned way)
{
	decisions++;
	if (decisions <= replayed)
		return;
	self->depth++;
	self->edge = explore_edge(site, way);
	self->weight = weight_behind(self->edge);
	self->born = __atomic_add_fetch(&shared()->clock, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(taken(self->edge), 1, __ATOMIC_RELAXED);
	if (shared()->counts.waiting)
		give_way();
}

/* ---- the end of a path ---- */

/* Another one goes on while this process dies; one that is kept as an input is the root's. */
static void leave(void)
{
	static struct explore_state none;
	struct explore *explore = shared();
	bool locked = lock();
	struct explore_state *next = best(true);

	explore->counts.live--;
	if (next && next->status == EXPLORE_WAITING && !explore->stopped) {
		let_go(next);
	} else {
		explore->counts.running--;
		__atomic_add_fetch(&explore->turn, 1, __ATOMIC_RELEASE);
		kernel_futex(&explore->turn, FUTEX_WAKE, 1, NULL);
	}
	free_state(self);
	self = &none;
	unlock(locked);
}

void states_end(void)
{
	struct explore *explore;
	bool crashes;

	if (!self || over)
		return;
	over = true;
	explore = shared();
	buffer_drain();
	if (thread_enter()) {
		session_judge_rest(runtime_session);
		thread_leave();
	}
	if (confirms) {
		telling_end(self->kept + 1, true);
		return;
	}
	crashes = explore->settings.every || (explore->settings.crash && reached_something_new());
	if (own_input || runtime_session->stream.on || crashes)
		keep_own();
	if (crashes && own_input)
		explore->input[own_input - 1].crashes = true;
	telling_end(own_input, false);
	symbolic_count(&explore->counts.paths);
	leave();
}

void states_silence(void)
{
	over = true;
	symbolic_count(&shared()->counts.silenced);
	leave();
	syscall(SYS_exit_group, 0);
	__builtin_unreachable();
}

void states_crashed(uint32_t signal, uint32_t stack)
{
	struct explore *explore;
	bool locked;
	uint32_t i;

	if (!self || over)
		return;
	explore = shared();
	if (confirms) {
		states_end();
		return;
	}
	keep_own();
	locked = lock();
	explore->counts.crashed++;
	for (i = 0; i < explore->crashes; i++)
		if (explore->crash[i].signal == signal && explore->crash[i].stack == stack)
			break;
	if (i < EXPLORE_CRASHES) {
		if (i == explore->crashes)
			explore->crash[explore->crashes++] =
				(struct explore_crash){ signal, stack, own_input, 0 };
		explore->crash[i].count++;
	}
	unlock(locked);
	states_end();
}

/* The last of all destructors. */
__attribute__((destructor(101))) static void at_end(void)
{
	if (!self)
		return;
	states_end();
	if (!shared()->settings.shows)
		syscall(SYS_exit_group, 0); /* there is nothing left to do */
}

/* ---- the root ---- */

static void start_path(struct explore_state *state, int *argc, char ***argv)
{
	const char *path = getenv("PERDURE_SESSION");
	struct explore_kept *kept = state->kept ? &shared()->input[state->kept] : NULL;
	struct itimerval never = { { 0, 0 }, { 0, 0 } };

	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_DFL);
	sigaction(SIGCHLD, &own_children, NULL);
	if (!path || !session_make_own(runtime_session, path) || !expression_start()) {
		message("there is not enough address space to explore");
		syscall(SYS_exit_group, 125);
	}
	become(state);
	descriptors_note_inherited();
	symbolic_on = !confirms;
	solver_start();
	if (confirms) {
		raw_on_known = on_confirmed_again;
		raw_on_new = on_confirmed;
	} else {
		raw_on_new = on_new_finding;
		raw_on_known = on_known_finding;
	}
	execution_join(0);
	execution_use_heap();
	if (thread_enter()) /* registers it once for all that will be forked */
		thread_leave();
	replayed = kept ? kept->events : 0;
	inputs_start(argc, argv, kept);
	if (state->kept && !confirms)
		free_kept(state->kept);
}

static bool silent_output(void)
{
	int fd = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0);

	if (fd < 0)
		return false;
	if (!shared()->settings.shows) {
		syscall(SYS_dup2, fd, STDOUT_FILENO);
		syscall(SYS_dup2, fd, STDERR_FILENO);
	}
	if (fd > STDERR_FILENO)
		syscall(SYS_close, fd);
	return true;
}

/* It is dead, and did not come to say so itself. */
static void note_death(struct explore_state *state)
{
	struct explore *explore = shared();
	bool locked = lock();

	explore->counts.running--;
	explore->counts.live--;
	if (!state->killed) {
		explore->counts.crashed++;
		explore->counts.paths++;
	}
	free_state(state);
	unlock(locked);
}

static void tick(int unused)
{
	(void)unused;
}

static uint64_t cpu_ns(pid_t pid)
{
	struct timespec time;
	clockid_t clock = (clockid_t)((~(uint32_t)pid << 3) | 2); /* as clock_getcpuclockid */

	return syscall(SYS_clock_gettime, clock, &time) < 0
		       ? 0
		       : time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* Paths that compute for too long are ended. */
static void watch(void)
{
	struct explore *explore = shared();
	uint64_t most = explore->settings.timeout * 1000000000ull;

	for (uint32_t i = 0; i < explore->states_used; i++) {
		struct explore_state *state = &explore->state[i];
		pid_t pid = state->pid;

		if (state->status != EXPLORE_RUNNING || !pid)
			continue;
		if (syscall(SYS_kill, pid, 0) < 0 && errno == ESRCH) {
			if (state->status == EXPLORE_RUNNING && state->pid == pid)
				note_death(state);
		} else if (most && !state->killed && cpu_ns(pid) > most) {
			state->killed = 1;
			syscall(SYS_kill, pid, SIGKILL);
			symbolic_count(&explore->counts.timed_out);
		}
	}
}

/* Until somebody has ended whose place nobody has taken; or not so long. */
static void wait_for_ends(uint32_t turn)
{
	struct timespec most = { .tv_nsec = 10000000 };

	kernel_futex(&shared()->turn, FUTEX_WAIT, turn, &most);
}

/* Lets as many go on as may run at once. True in a new path. */
static bool schedule(int *argc, char ***argv)
{
	struct explore *explore = shared();

	while (explore->counts.running < explore->settings.jobs) {
		bool locked = lock();
		struct explore_state *state = explore->stopped ? NULL : best(true);
		pid_t pid;

		if (!state) {
			unlock(locked);
			break;
		}
		explore->counts.running++;
		if (state->status == EXPLORE_WAITING) {
			let_go(state);
			unlock(locked);
			continue;
		}
		state->status = EXPLORE_RUNNING;
		explore->counts.waiting--;
		explore->counts.live++;
		explore->counts.reexecuted++;
		unlock(locked);
		pid = fork_path();
		if (pid == 0) {
			start_path(state, argc, argv);
			return true;
		}
		state->pid = pid;
		if (pid < 0) {
			free_state(state);
			explore->counts.running--;
			explore->counts.live--;
			explore->counts.dropped++;
		}
	}
	return false;
}

/* Nobody goes on, but the root. What a path has left behind may stay for longer. */
static void end_all(void)
{
	enum { PATIENCE = 200 }; /* milliseconds */
	struct explore *explore = shared();
	int unused;

	for (uint32_t i = 0; i < explore->states_used; i++)
		if (explore->state[i].status && explore->state[i].pid)
			syscall(SYS_kill, explore->state[i].pid, SIGKILL);
	for (int i = 0; i < PATIENCE && waitpid(-1, &unused, WNOHANG) >= 0; i++)
		syscall(SYS_nanosleep, &(struct timespec){ .tv_nsec = 1000000 }, NULL);
	for (uint32_t i = 0; i < explore->states_used; i++)
		explore->state[i].status = EXPLORE_FREE;
	explore->states_used = explore->free_from = 0;
}

/* One input, with numbers and without expressions. True in the process that does it. */
static bool confirm(uint32_t input, int *argc, char ***argv)
{
	struct explore *explore = shared();
	struct explore_state *state;
	int status = 0;
	pid_t pid;

	if (!input || explore->input[input - 1].ran)
		return false;
	state = new_state();
	if (!state)
		return false;
	state->kept = input - 1;
	state->status = EXPLORE_RUNNING;
	pid = fork_path();
	if (pid == 0) {
		confirms = true;
		start_path(state, argc, argv);
		return true;
	}
	state->pid = pid;
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		watch();
	explore->input[input - 1].ran =
		pid > 0 && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	free_state(state);
	explore->counts.states--;
	return false;
}

/*
 * Each input that has led to a finding is run once more: what is not found again, with none of the
 * inputs that should show it, is in doubt.
 */
static bool confirm_all(int *argc, char ***argv)
{
	const struct raw_table *raw = &runtime_session->raw;
	uint32_t entries = raw->entries;

	for (uint32_t i = 1; i <= entries; i++) {
		if (confirm(raw->entry[i].input, argc, argv))
			return true;
		for (unsigned k = 0; k < RAW_INPUTS && !raw->entry[i].confirmed; k++)
			if (confirm(raw->entry[i].more[k], argc, argv))
				return true;
	}
	return false;
}

void states_start(int *argc, char ***argv)
{
	enum { TICK_US = 100000 };
	struct itimerval often = { { 0, TICK_US }, { 0, TICK_US } };
	struct sigaction action = { .sa_handler = tick };
	struct sigaction unseen = { .sa_handler = SIG_IGN }; /* those who end do not wake it */
	struct explore *explore = runtime_session ? runtime_session->explore : NULL;
	struct explore_state *first;

	if (!explore || explore->root)
		return;
	setpgid(0, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	sigaction(SIGCHLD, &unseen, &own_children);
	silent_output();
	fibers_are_root();
	explore->kept_from = 1; /* 0 is none */
	explore->image = modules_find_image();
	explore->root = getpid();
	while (!__atomic_load_n(&explore->steered, __ATOMIC_ACQUIRE))
		syscall(SYS_nanosleep, &(struct timespec){ .tv_nsec = 500000 }, NULL);
	first = new_state();
	first->status = EXPLORE_AS_INPUT;
	explore->counts.waiting++;
	while (explore->counts.waiting || explore->counts.running) {
		uint32_t turn = __atomic_load_n(&explore->turn, __ATOMIC_ACQUIRE);

		if (schedule(argc, argv))
			return;
		if (explore->stopped || !explore->counts.running)
			break;
		wait_for_ends(turn);
		watch();
	}
	end_all();
	signal(SIGCHLD, SIG_DFL);
	if (confirm_all(argc, argv))
		return;
	syscall(SYS_exit_group, 0);
}
