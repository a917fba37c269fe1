/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/check.h"

#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "drive/engine.h"
#include "report/atomicity.h"

enum { TICK_MS = 20, SPARES = 128, GUARD_LEAST = 20, GUARD_EVERY = 100, SHARE_MAX = 100 };

static void use_all_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* What the memo may keep: a quarter of the machine's memory, at about 64 bytes a read. */
static uint32_t memo_room(void)
{
	uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 4;

	return bytes / 64 < UINT32_MAX ? (uint32_t)(bytes / 64) : UINT32_MAX;
}

/* ---- crash points ---- */

/* The one that a replay is about. */
static bool choose_one(struct engine *engine, uint32_t event)
{
	free(engine->crash);
	engine->crash = calloc(1, sizeof(*engine->crash));
	if (!engine->crash)
		return false;
	engine->crash[0] = event;
	engine->crashes = engine->share = 1;
	engine->next_crash = engine->last_done = 0;
	engine->check->counts.crash_points_chosen++;
	return true;
}

/* With a limit: evenly spread, the last one always. */
static bool choose_crashes(struct engine *engine)
{
	const struct history *history = &engine->session->executions.history;
	uint32_t wanted = engine->check->settings.max_crash_points;

	engine->check->counts.crash_points += history->crashes;
	if (engine->check->settings.only_crash)
		return choose_one(engine, engine->check->settings.only_crash - 1);
	if (!wanted || wanted > history->crashes)
		wanted = history->crashes;
	free(engine->crash);
	engine->crash = calloc(wanted + 1ul, sizeof(*engine->crash));
	if (!engine->crash)
		return false;
	for (uint32_t i = 0; i < wanted; i++)
		engine->crash[i] =
			history->crash[wanted == 1 ? history->crashes - 1
						   : (uint64_t)i * (history->crashes - 1) /
							     (wanted - 1)];
	engine->crashes = wanted;
	engine->next_crash = engine->last_done = 0;
	engine->check->counts.crash_points_chosen += wanted;
	engine->share = wanted / engine->workers / 4;
	engine->share = engine->share < 1           ? 1
			: engine->share > SHARE_MAX ? SHARE_MAX
						    : engine->share;
	if (wanted < history->crashes) {
		char text[128];

		snprintf(text, sizeof(text),
			 "--max-crash-points: %u of %u crash points, evenly spread, were examined",
			 wanted, history->crashes);
		session_limit(engine->session, UINT32_MAX, text);
	}
	return true;
}

static bool build_history(struct engine *engine)
{
	struct executions *all = &engine->session->executions;
	struct event_log *log = &all->log;
	bool certain;

	engine->check->counts.events += log->events;
	if (log->full)
		session_limit(engine->session, UINT32_MAX,
			      "the program made too many events: the rest was left out");
	certain = atomicity_settle(engine->session, log->event, log->events);
	if (!history_build(&all->history, log->event, log->events, log->data, engine->descending,
			   session_allocate)) {
		fprintf(stderr, "perdure: too many events (%u) to find crash points in\n",
			log->events);
		return false;
	}
	if (!choose_crashes(engine) || !cross_failure_start(&engine->checker, engine->session))
		return false;
	if (!certain)
		session_limit(engine->session, UINT32_MAX,
			      "some code was not built with perdure-cc: which of its stores are "
			      "atomic in the source could not be found out for all; the others "
			      "count as such (--strict-commit: they do not)");
	if (engine->session->binary)
		session_limit(engine->session, UINT32_MAX,
			      "the program was not built with perdure-cc: torn stores were not "
			      "looked for");
	if (!all->causality_lost && !engine->session->binary)
		engine->checker.torn = judge_new_torn(engine, &all->history, all->prebuilt);
	resume_load(engine);
	return true;
}

/* ---- the loop ---- */

static bool needs_guard(struct engine *engine)
{
	uint64_t hits = engine->check->counts.memo_hits;

	return hits <= GUARD_LEAST || hits % GUARD_EVERY == 0;
}

/*
 * Neighbouring crashes have much in common, so a worker takes some in a row: what one of them has
 * found out the next can use.
 */
static bool take_crash(struct engine *engine, struct worker *worker)
{
	if (worker->share_next == worker->share_end) {
		worker->share_next = engine->next_crash;
		engine->next_crash += engine->share;
		if (engine->next_crash > engine->crashes)
			engine->next_crash = engine->crashes;
		worker->share_end = engine->next_crash;
	}
	if (worker->share_next == worker->share_end)
		return false;
	worker->crash_number = worker->share_next++;
	return true;
}

/* Each line can be any of its versions, and a program that tried them all would try their product.
 */
static void count_eagerly(struct engine *engine, const struct worker *worker)
{
	const struct view_crash *crash = &worker->execution->crash;
	double *states = &engine->check->counts.eager_states_log2, here = 0;

	for (uint32_t i = 0; i < crash->lines; i++) {
		struct history_versions versions;

		view_versions(&engine->session->executions.history, crash, &crash->line[i],
			      &versions);
		here += log2(versions.count);
	}
	*states = *states > here ? *states + log2(1 + exp2(here - *states))
				 : here + log2(1 + exp2(*states - here));
}

/* What is to be done first at a crash point. */
static void begin_crash(struct engine *engine, struct worker *worker)
{
	const struct check_settings *settings = &engine->check->settings;
	uint64_t count = 1;

	worker->has_crash = true;
	worker->cut = false;
	worker->tasks = worker->given = 0;
	worker->resumed = resume_is_done(engine, worker->crash_number);
	if (worker->resumed) {
		resume_add_tasks(engine, worker);
		return;
	}
	if (settings->exhaustive)
		count_eagerly(engine, worker);
	if (settings->random) {
		uint64_t number = worker->crash_number;

		count = (number + 1) * settings->random / engine->crashes -
			number * settings->random / engine->crashes;
	}
	for (uint64_t i = 0; i < count; i++)
		judge_add_task(engine, worker,
			       &(struct task){
				       .latest = true,
				       .random = settings->random ? ++engine->seed : 0,
			       });
}

/* Alternatives of what ran last come first: then there are never many that wait. */
static void take_task(const struct engine *engine, struct worker *worker)
{
	worker->given++;
	worker->tasks--;
	if (engine->check->settings.exhaustive) {
		worker->running = worker->task[worker->tasks];
		return;
	}
	worker->running = worker->task[0];
	memmove(worker->task, worker->task + 1, worker->tasks * sizeof(*worker->task));
}

/* Gives an idle worker something to do. False if there is nothing left; -1 if that failed. */
static int give_work(struct engine *engine, struct worker *worker)
{
	for (;;) {
		const struct path *known;

		if (worker->has_crash && !worker->tasks) {
			worker->has_crash = false;
			while (worker->chains) {
				struct chain_state *next = worker->chains->next;

				chain_free(worker->chains);
				worker->chains = next;
			}
			engine->check->counts.crash_points_done++;
			if (engine->crash[worker->crash_number] > engine->last_done)
				engine->last_done = engine->crash[worker->crash_number];
			resume_note_done(engine, worker->crash_number);
			if (worker->cut)
				session_limit(
					engine->session, UINT32_MAX,
					"some crash points have more than 64 combinations of commit "
					"stores: there, one commit store at a time was varied");
		}
		if (engine->check->budget)
			return 0;
		if (!worker->has_crash) {
			if (!take_crash(engine, worker))
				return 0;
			if (!image_advance(&worker->image, engine->crash[worker->crash_number]))
				return -1;
			worker->crash = worker->execution->crash;
			judge_note_changes(worker);
			begin_crash(engine, worker);
			if (!worker->tasks)
				continue; /* nothing is left to do here */
		}
		take_task(engine, worker);
		worker->execution->crash = worker->crash;
		if (worker->running.from)
			chain_apply(worker->running.from, worker->execution);
		known = judge_known(engine, worker, &worker->running);
		if (known) {
			engine->check->counts.memo_hits++;
			if (!needs_guard(engine))
				continue;
			worker->guard = true;
			worker->expected_symptom = known->outcome->symptom;
			worker->expected_reads = known->length;
		}
		return worker_start(engine, worker, &worker->running) ? 1 : -1;
	}
}

static void await_any(struct engine *engine)
{
	struct pollfd event[ENGINE_WORKERS];

	for (unsigned i = 0; i < engine->workers; i++)
		event[i] =
			(struct pollfd){ .fd = engine->worker[i].zygote.channel, .events = POLLIN };
	poll(event, engine->workers, TICK_MS);
}

static bool explore(struct engine *engine)
{
	struct check *check = engine->check;
	unsigned busy = 0;

	do {
		busy = 0;
		for (unsigned i = 0; i < engine->workers; i++) {
			struct worker *worker = &engine->worker[i];
			int given = 1;

			if (worker->phase == WORKER_IDLE)
				given = give_work(engine, worker);
			if (given < 0) {
				fprintf(stderr, "perdure: cannot prepare a recovery: %s\n",
					strerror(errno));
				return false;
			}
			busy += given;
		}
		if (!busy)
			break;
		await_any(engine);
		for (unsigned i = 0; i < engine->workers; i++) {
			if (engine->worker[i].phase == WORKER_IDLE)
				continue;
			if (!worker_hear(engine, &engine->worker[i]))
				return false;
			worker_watch(engine, &engine->worker[i]);
		}
		if (target_interrupted())
			check->budget = target_interrupted();
		else if (check->settings.max_time > 0 &&
			 target_now() - engine->started > check->settings.max_time)
			check->budget = "--max-time";
		progress_show(&engine->progress, check);
	} while (!check->budget);
	progress_end(&engine->progress);
	return true;
}

/* As pmreorder calls its checkers: the file comes last, if the user has not named it. */
static char **with_file(struct engine *engine, char **checker)
{
	const struct executions *all = &engine->session->executions;
	const char *path = NULL, *name;
	unsigned count = 0;
	char **words;

	for (uint32_t i = 0; i < all->files && !path; i++)
		if (all->file[i].pm && all->file[i].path[0] == '/')
			path = all->file[i].path;
	name = path ? strrchr(path, '/') + 1 : NULL;
	for (; checker[count]; count++)
		if (name && strstr(checker[count], name))
			return checker;
	words = path ? calloc(count + 2, sizeof(*words)) : NULL;
	if (!words)
		return checker;
	memcpy(words, checker, count * sizeof(*words));
	words[count] = (char *)path;
	return words;
}

static bool start_workers(struct engine *engine)
{
	struct check_settings *settings = &engine->check->settings;
	char **command = settings->checker   ? with_file(engine, settings->checker)
			 : settings->recover ? settings->recover
					     : NULL;
	struct zygote other[ENGINE_WORKERS];

	if (command && !zygotes_start(command, other, engine->workers))
		return false;
	for (unsigned i = 0; i < engine->workers; i++) {
		struct worker *worker = &engine->worker[i];
		struct execution *execution = worker->execution;

		if (command)
			worker->zygote = other[i];
		worker->output = memfd_create("perdure-output", MFD_CLOEXEC);
		execution->stage = 1;
		execution->lazy = worker->zygote.instrumented && !settings->checker;
		execution->strict = settings->strict;
		execution->exhaustive = settings->exhaustive;
		execution->input = engine->input;
		execution->output = execution->errors = worker->output;
		if (worker->output < 0 || !program_make_spares(execution, SPARES)) {
			fprintf(stderr, "perdure: cannot prepare recoveries: %s\n",
				strerror(errno));
			return false;
		}
	}
	if (!engine->worker[0].execution->lazy && !settings->checker &&
	    engine->session->options.enabled & 1u << KIND_TORN_STORE)
		session_limit(engine->session, UINT32_MAX,
			      "torn stores were not looked for: that needs a recovery that was "
			      "built with perdure-cc");
	engine->ready = true;
	return true;
}

/* Each worker begins before the first event of this run. */
static bool start_images(struct engine *engine)
{
	for (unsigned i = 0; i < engine->workers; i++) {
		struct worker *worker = &engine->worker[i];

		image_end(&worker->image);
		if (!image_start(&worker->image, engine->session, worker->execution)) {
			fprintf(stderr, "perdure: cannot prepare recoveries: %s\n",
				strerror(errno));
			return false;
		}
		for (unsigned p = 0; p < 2; p++) {
			path_cut(&worker->path[p], 0);
			worker->path[p].changes = 0;
		}
		worker->share_next = worker->share_end = 0;
		worker->has_crash = false;
	}
	return true;
}

static unsigned count_workers(const struct check_settings *settings)
{
	unsigned count = settings->jobs ? settings->jobs : (unsigned)sysconf(_SC_NPROCESSORS_ONLN);

	if (settings->drive || settings->drive_recover)
		return 1; /* two servers cannot have one address */
	return count > ENGINE_WORKERS ? ENGINE_WORKERS : count;
}

/* Many threads: what they did in which order is only roughly known. */
static void note_threads(struct engine *engine)
{
	uint32_t inputs = engine->session->executions.execution[0].inputs;

	if (inputs & INPUT_THREADS) {
		char text[320];

		snprintf(text, sizeof(text),
			 "the program has several threads, and ran natively (%s): what recoveries "
			 "read was not judged, only how they end",
			 engine->session->executions.native_threads);
		session_limit(engine->session, UINT32_MAX, text);
		engine->checker.judges = false;
		judge_give_up_memo(engine, "with several threads, each recovery was run");
	}
}

/* A directory without name and without entries stands for those that the program makes. */
static int open_empty_directory(void)
{
	char path[PATH_MAX];
	int fd = target_make_directory(path, sizeof(path))
			 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
			 : -1;

	rmdir(path);
	return fd;
}

static bool prepare(struct engine *engine, int session_fd)
{
	struct check *check = engine->check;
	struct executions *all = &engine->session->executions;
	struct zygote zygote[ENGINE_WORKERS];
	struct timespec now;

	use_all_descriptors();
	all->command = getpid();
	clock_gettime(CLOCK_REALTIME, &now);
	all->started_ns = now.tv_sec * 1000000000ull + now.tv_nsec;
	all->empty = open_empty_directory();
	engine->nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	engine->workers = count_workers(&check->settings);
	engine->worker = calloc(engine->workers, sizeof(*engine->worker));
	if (!engine->worker || !program_make_spares(&all->execution[0], WORLD_FILES)) {
		fprintf(stderr, "perdure: no memory for the analysis: %s\n", strerror(errno));
		return false;
	}
	if (!target_prepare(session_fd, engine->session->options.heap) ||
	    !zygotes_start(check->settings.command, zygote, engine->workers))
		return false;
	engine->program = zygote[0];
	for (unsigned i = 0; i < engine->workers; i++) {
		engine->worker[i].zygote = zygote[i];
		engine->worker[i].number = i + 1;
		engine->worker[i].execution = &all->execution[i + 1];
	}
	return true;
}

void check_mark_read(struct check *check, uint32_t stack)
{
	if (stack / 8 >= check->read_room) {
		uint32_t wanted = stack / 4 + 64;

		check->read = realloc(check->read, wanted);
		if (!check->read)
			abort();
		memset(check->read + check->read_room, 0, wanted - check->read_room);
		check->read_room = wanted;
	}
	check->read[stack / 8] |= 1 << stack % 8;
}

/* ---- schedules ---- */

/* What was found out about crashes of this history; findings stay. */
static void end_history(struct engine *engine)
{
	cross_failure_end(&engine->checker);
	resume_end(engine);
	while (engine->leaves) {
		struct leaf *next = engine->leaves->next;

		leaf_free(engine->leaves);
		engine->leaves = next;
	}
	if (engine->memo)
		memo_free(engine->memo);
	engine->memo = engine->check->settings.memo ? memo_new(memo_room()) : NULL;
}

/* What the run before has left; findings stay. */
static void forget_run(struct engine *engine)
{
	struct executions *all = &engine->session->executions;
	struct execution *program = &all->execution[0];

	session_forget_run(engine->session);
	session_reset_allocations();
	all->log.events = all->log.full = 0;
	all->log.bytes = 0;
	all->commits = all->covers = all->checksums = 0;
	all->interest_after = 0;
	for (uint32_t i = 0; i < program->spare_used; i++)
		if (ftruncate(program->spare[i], 0) < 0)
			abort();
	program->world = (struct world){ 0 };
	program->spare_used = program->inputs = program->listening = 0;
	program->deadlocked = program->signal = program->signal_stack = 0;
	end_history(engine);
}

/* Only what ran before the crash can be read after it. */
static void note_reads(struct engine *engine)
{
	const struct history *history = &engine->session->executions.history;
	const uint8_t *was_read = engine->checker.was_read;
	struct check *check = engine->check;

	for (uint32_t i = 0; i < history->parts; i++) {
		uint32_t event = history->part[i].event;

		/* What was stored after the last crash that was tried may be read, or not. */
		if (history->part[i].settled == HISTORY_NEVER &&
		    (was_read[event / 8] >> event % 8 & 1 ||
		     (check->budget && event >= engine->last_done)))
			check_mark_read(check, history->event[event].stack);
	}
	check->follows_reads = true;
}

/* PM files as the crash leaves them; the second one, if there is one, as FILE.2, and so on. */
static bool save_images(struct engine *engine)
{
	const struct check_settings *settings = &engine->check->settings;
	struct image *image = &engine->worker[0].image;
	unsigned count = 0;
	char path[PATH_MAX];
	bool done = true;

	image_end(image);
	if (!image_start(image, engine->session, engine->worker[0].execution) ||
	    !image_advance(image, engine->crash[0]))
		return false;
	for (uint32_t i = 0; i < engine->session->executions.files && done; i++) {
		int fd;

		if (!engine->session->executions.file[i].pm || !image->world.backing[i].fd)
			continue;
		count++;
		snprintf(path, sizeof(path), count > 1 ? "%s.%u" : "%s", settings->image, count);
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		done = fd >= 0 && image_save(image, i, fd, settings->image_latest);
		if (fd >= 0)
			done &= close(fd) == 0;
	}
	if (!done)
		fprintf(stderr, "perdure: cannot write %s: %s\n", path, strerror(errno));
	return done;
}

static bool examine(struct engine *engine)
{
	if (!build_history(engine) || (!engine->ready && !start_workers(engine)) ||
	    !start_images(engine))
		return false;
	note_threads(engine);
	if (!explore(engine))
		return false;
	resume_save(engine);
	explain_failures(engine);
	if (engine->check->settings.image && !save_images(engine))
		return false;
	lost_report(engine);
	note_reads(engine);
	return true;
}

/* What recoveries read, if they are given something. */
static void set_recovery_input(struct engine *engine)
{
	const struct given *given = engine->check->settings.given;

	for (unsigned i = 0; given && i < engine->workers; i++)
		engine->worker[i].execution->input =
			given->recovery_input >= 0 ? given->recovery_input : engine->input;
}

/* --sym-recover: once for each input that the recovery can have. */
static bool examine_recoveries(struct engine *engine)
{
	enum { MOST = 256 };
	struct given *given = engine->check->settings.given;
	uint32_t first, last;

	set_recovery_input(engine);
	if (!given || !given->recoveries.explorer)
		return examine(engine);
	if (!recoveries_find(&given->recoveries, engine->session, &first))
		return false;
	last = given->recoveries.count;
	if (last - first > MOST) {
		session_limit(
			engine->session, UINT32_MAX,
			"--sym-recover: a recovery has more than 256 paths: the rest is left out");
		last = first + MOST;
	}
	for (uint32_t i = first; i < last && !engine->check->budget; i++) {
		if (i > first)
			end_history(engine);
		if (!given_use_recovery(given, engine->session, i))
			return false;
		set_recovery_input(engine);
		if (!examine(engine))
			return false;
	}
	return true;
}

/* --chunk-order any: once more, with the pieces of large stores in the other order. */
static bool examine_descending(struct engine *engine)
{
	bool done;

	if (!engine->check->settings.any_chunk_order || engine->check->budget)
		return true;
	end_history(engine);
	engine->descending = true;
	done = examine(engine);
	engine->descending = false;
	return done;
}

static void note_schedules(const struct engine *engine)
{
	const struct schedules *schedules = &engine->check->settings.schedules;
	char text[160];

	if (engine->session->executions.schedule.choices_lost)
		session_limit(engine->session, UINT32_MAX,
			      "--schedule all: a run has so many points where threads could "
			      "switch that only the first million was varied");
	if (schedules->policy != SCHEDULE_SCRIPT || schedules->replay || schedules->exhausted)
		return;
	snprintf(text, sizeof(text),
		 "--schedule all: %u schedules were examined, and there are more", schedules->done);
	session_limit(engine->session, UINT32_MAX, text);
}

static bool check_schedules(struct engine *engine)
{
	struct check *check = engine->check;
	struct schedules *schedules = &check->settings.schedules;
	struct schedule_settings *settings = &engine->session->executions.schedule;

	while (!check->budget && schedules_next(schedules, settings)) {
		if (engine->runs++)
			forget_run(engine);
		engine->schedule = 0; /* nobody has asked for its text yet */
		if (!program_run(engine))
			return false;
		judge_program(engine);
		if (!engine->session->pm_mapped || check->budget ||
		    engine->session->executions.too_large)
			break; /* nothing to crash, or no time for it */
		if (settings->measure)
			continue;
		if (!examine_recoveries(engine) || !examine_descending(engine))
			return false;
		check->counts.schedules++;
		check->counts.schedule_points = settings->points;
	}
	return true;
}

static bool has_schedule(const struct explore_kept *kept)
{
	for (uint32_t i = 0; i < kept->sources; i++)
		if (kept->source[i].kind == EXPLORE_SCHEDULE)
			return true;
	return false;
}

/* One run, or several schedules, with each input that an exploration has found. */
static bool check_inputs(struct engine *engine)
{
	struct check *check = engine->check;
	struct given *given = check->settings.given;
	const struct schedules wanted = check->settings.schedules;
	bool done = true;

	for (uint32_t i = 0; i < given->count && done && !check->budget; i++) {
		check->settings.schedules = wanted;
		if (has_schedule(&given->list[i])) { /* its own */
			check->settings.schedules.policy = SCHEDULE_SCRIPT;
			check->settings.schedules.count = 1;
		}
		done = given_use(given, engine->session, i) && check_schedules(engine);
		session_judge_rest(engine->session); /* what it has lost is its own */
	}
	given_end(given);
	return done;
}

static bool check_all(struct engine *engine, int session_fd)
{
	struct check *check = engine->check;

	engine->seed = check->settings.schedules.seed;
	if (!prepare(engine, session_fd) ||
	    !(check->settings.given ? check_inputs(engine) : check_schedules(engine)))
		return false;
	if (!check->settings.given)
		note_schedules(engine);
	if (engine->session->executions.ranges_lost)
		session_limit(
			engine->session, UINT32_MAX,
			"more commit variables or ranges than can be kept: some were left out");
	return true;
}

void check_classify_lost(const struct check *check)
{
	struct raw_table *raw = &check->session->raw;
	bool wanted = check->session->options.enabled & 1u << KIND_TRANSIENT_DATA;

	/* Nothing is known of what recoveries read if they are not followed, or read nothing. */
	if (!check->follows_reads || check->counts.vacuous == check->counts.recoveries)
		return;
	for (uint32_t i = 1; i <= raw->entries; i++) {
		struct raw_finding *entry = &raw->entry[i];
		uint32_t stack = entry->stack;

		if (entry->kind != KIND_MISSING_FLUSH ||
		    (stack / 8 < check->read_room && check->read[stack / 8] >> stack % 8 & 1))
			continue;
		entry->kind = KIND_TRANSIENT_DATA;
		/* A replay has tried one crash, and knows little of it. */
		entry->count = wanted && !check->settings.only_crash ? entry->count : 0;
	}
}

bool check_run(struct check *check, int session_fd)
{
	struct engine engine = {
		.check = check,
		.session = check->session,
		.memo = check->settings.memo ? memo_new(memo_room()) : NULL,
		.started = target_now(),
	};
	bool done;

	engine.progress.on = check->settings.progress;
	done = check_all(&engine, session_fd);
	check->input = engine.input;
	for (unsigned i = 0; i < engine.workers; i++)
		driver_end(&engine.worker[i].driver);
	if (engine.worker)
		zygotes_end();
	return done;
}
