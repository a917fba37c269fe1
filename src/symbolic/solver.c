/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asking the solver. Answers are kept for all paths. Questions lie on a desk in shared memory, one
 * for each path that may run at the same time.
 */
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "model/spin.h"
#include "symbolic/symbolic.h"

/* ---- answers that are known ---- */

static struct explore_known *slot_of(uint64_t key)
{
	return &symbolic_shared()->answer[(key >> 20) % EXPLORE_KNOWN];
}

static bool is_known(uint64_t key, enum path_answer *answer, struct path_change *change)
{
	struct explore_known known = *slot_of(key);

	if (known.key != key || !key)
		return false;
	*answer = known.answer;
	change->count = known.count;
	for (unsigned i = 0; i < known.count; i++) {
		change->to[i].input = known.input[i];
		change->to[i].value = known.value[i];
	}
	/* Somebody may just be writing it. */
	return memcmp(&known, slot_of(key), sizeof(known)) == 0;
}

static void keep(uint64_t key, enum path_answer answer, const struct path_change *change)
{
	struct explore_known *known = slot_of(key);

	if (change->count > EXPLORE_ANSWER || answer == PATH_UNKNOWN)
		return;
	known->key = 0;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	known->answer = answer;
	known->count = (uint8_t)change->count;
	for (unsigned i = 0; i < change->count; i++) {
		known->input[i] = (uint16_t)change->to[i].input;
		known->value[i] = change->to[i].value;
	}
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	known->key = key;
}

/* ---- answers that follow from others ---- */

static uint64_t bit_of(uint64_t hash)
{
	return 1ull << (hash >> 58);
}

static bool has(const struct path_question *question, uint64_t hash)
{
	for (uint32_t i = 0; i < question->count; i++)
		if (expressions[question->condition[i]].hash == hash)
			return true;
	return false;
}

/* Are there some among the conditions that are known not to go together? */
static bool contradicts(const struct path_question *question)
{
	const struct explore *explore = symbolic_shared();
	uint64_t bits = 0;

	for (uint32_t i = 0; i < question->count; i++)
		bits |= bit_of(expressions[question->condition[i]].hash);
	for (uint32_t i = 0; i < EXPLORE_CORES && i < explore->cores; i++) {
		struct explore_core core = explore->core[i];
		uint32_t found = 0;

		if (!core.count || core.bits & ~bits)
			continue;
		while (found < core.count && has(question, core.hash[found]))
			found++;
		if (found == core.count)
			return true;
	}
	return false;
}

static void keep_core(const struct explore_desk *desk, const struct path_question *question)
{
	struct explore *explore = symbolic_shared();
	struct explore_core core = { .count = desk->cores };
	uint32_t at;

	if (desk->answer != EXPLORE_UNSAT || !desk->cores)
		return;
	for (uint32_t i = 0; i < desk->cores; i++) {
		core.hash[i] = expressions[question->condition[desk->core[i]]].hash;
		core.bits |= bit_of(core.hash[i]);
	}
	at = __atomic_fetch_add(&explore->cores, 1, __ATOMIC_RELAXED) % EXPLORE_CORES;
	explore->core[at].count = 0; /* nobody shall see half of it */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	core.count = 0;
	explore->core[at] = core;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	explore->core[at].count = desk->cores;
}

/* The last models that the solver has found here: one may do again. */
static struct path_change model[8];
static unsigned models;

static void exchange(struct path_change *change)
{
	for (uint32_t i = 0; i < change->count; i++) {
		uint8_t before = expression_model[change->to[i].input];

		expression_model[change->to[i].input] = change->to[i].value;
		change->to[i].value = before;
	}
	expression_model_changed();
}

static bool does(const struct path_question *question, struct path_change *change)
{
	bool holds = true;

	exchange(change);
	for (uint32_t i = question->count; holds && i-- > 0;)
		holds = expression_value(question->condition[i]);
	exchange(change);
	return holds;
}

static bool model_again(const struct path_question *question, struct path_change *change)
{
	enum { MODELS = sizeof(model) / sizeof(*model) };

	for (unsigned i = 0; i < MODELS && i < models; i++)
		if (does(question, &model[i])) {
			*change = model[i];
			return true;
		}
	return false;
}

static void keep_model(const struct path_change *change)
{
	enum { MODELS = sizeof(model) / sizeof(*model) };

	model[models++ % MODELS] = *change;
}

/* ---- the desk ---- */

static struct explore_desk *take_desk(void)
{
	struct explore *explore = symbolic_shared();
	uint32_t self = thread_owner();

	for (;;) {
		for (uint32_t i = 0; i < explore->settings.jobs && i < EXPLORE_SOLVERS; i++) {
			uint32_t owner = explore->desk[i].lock;

			/* Whoever has it may have been killed. */
			if (owner && syscall(SYS_kill, owner, 0) == 0)
				continue;
			if (__atomic_compare_exchange_n(&explore->desk[i].lock, &owner, self, false,
							__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
				return &explore->desk[i];
		}
		REAL(sched_yield)();
	}
}

static uint32_t mark;
static uint32_t *number_of; /* on the desk, of each expression; by mark */

static uint32_t put(struct explore_desk *desk, uint32_t e)
{
	static uint32_t stack[1 << 16];
	uint32_t depth = 0;

	stack[depth++] = e;
	while (depth) {
		uint32_t at = stack[depth - 1];
		struct expression *x = &expressions[at];
		uint32_t operands[] = { x->a, x->b, x->c };
		bool ready = true;

		for (unsigned i = 0; i < 3 && ready; i++)
			if (operands[i] && expressions[operands[i]].mark != mark) {
				if (depth == sizeof(stack) / sizeof(*stack))
					return 0;
				stack[depth++] = operands[i];
				ready = false;
			}
		if (!ready)
			continue;
		depth--;
		if (x->mark == mark)
			continue;
		if (desk->nodes == EXPLORE_NODES)
			return 0;
		x->mark = mark;
		number_of[at] = desk->nodes;
		desk->node[desk->nodes++] = (struct explore_node){
			x->op,
			x->width,
			x->a ? number_of[x->a] : 0,
			x->b ? number_of[x->b] : 0,
			x->c ? number_of[x->c] : 0,
			x->constant,
			x->hash,
		};
	}
	return number_of[e];
}

static bool put_all(struct explore_desk *desk, const struct path_question *question)
{
	if (question->count > EXPLORE_CONDITIONS)
		return false;
	/* Far from the marks of path.c. */
	mark = mark ? mark + 1 : 1u << 31;
	desk->nodes = 1;
	desk->conditions = 0;
	for (uint32_t i = 0; i < question->count; i++) {
		uint32_t number = put(desk, question->condition[i]);

		if (!number)
			return false;
		desk->condition[desk->conditions++] = number;
	}
	return true;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* False if there was no answer in time, or nobody is there to give one. */
static bool await(struct explore_desk *desk, uint32_t number)
{
	enum { SPINS = 2000 };
	struct timespec wait = { .tv_nsec = 20000000 };
	uint64_t end = now_ns() + (desk->milliseconds * 2ull + 2000) * 1000000;

	for (unsigned i = 0; i < SPINS; i++) {
		if (__atomic_load_n(&desk->answered, __ATOMIC_ACQUIRE) == number)
			return true;
		__builtin_ia32_pause();
	}
	while (now_ns() < end) {
		uint32_t answered = __atomic_load_n(&desk->answered, __ATOMIC_ACQUIRE);

		if (answered == number)
			return true;
		kernel_futex(&desk->answered, FUTEX_WAIT, answered, &wait);
	}
	return false;
}

static enum path_answer read_answer(const struct explore_desk *desk, struct path_change *change)
{
	change->count = 0;
	for (uint32_t i = 0; i < desk->values && desk->answer == EXPLORE_SAT; i++) {
		if (change->count == PATH_CHANGES)
			return PATH_UNKNOWN;
		change->to[change->count].input = desk->input[i];
		change->to[change->count++].value = desk->value[i];
	}
	return desk->answer == EXPLORE_SAT     ? PATH_YES
	       : desk->answer == EXPLORE_UNSAT ? PATH_NO
					       : PATH_UNKNOWN;
}

static enum path_answer ask(const struct path_question *question, struct path_change *change)
{
	struct explore *explore = symbolic_shared();
	enum path_answer answer = PATH_UNKNOWN;
	struct explore_desk *desk;
	uint64_t started = now_ns();

	if (is_known(question->key, &answer, change)) {
		symbolic_count(&explore->counts.known);
		return answer;
	}
	if (model_again(question, change)) {
		symbolic_count(&explore->counts.known);
		return PATH_YES;
	}
	if (contradicts(question)) {
		symbolic_count(&explore->counts.known);
		return PATH_NO;
	}
	desk = take_desk();
	if (put_all(desk, question)) {
		uint32_t number = desk->asked + 1;

		desk->milliseconds = explore->settings.solver_ms;
		__atomic_store_n(&desk->asked, number, __ATOMIC_RELEASE);
		kernel_futex(&desk->asked, FUTEX_WAKE, 1, NULL);
		if (await(desk, number)) {
			answer = read_answer(desk, change);
			keep_core(desk, question);
		}
	}
	__atomic_store_n(&desk->lock, 0, __ATOMIC_RELEASE);
	symbolic_count(&explore->counts.queries);
	__atomic_fetch_add(&explore->counts.query_ns, now_ns() - started, __ATOMIC_RELAXED);
	if (answer == PATH_UNKNOWN)
		symbolic_lose(SYMBOLIC_LOST_SOLVER);
	keep(question->key, answer, change);
	if (answer == PATH_YES)
		keep_model(change);
	return answer;
}

void solver_start(void)
{
	enum { ROOM = 1 << 24 };
	long got = syscall(SYS_mmap, NULL, ROOM * sizeof(*number_of), 3 /* read, write */,
			   0x4022 /* private, anonymous, not reserved */, -1, 0L);

	number_of = (void *)got;
	path_ask_solver = ask;
}
