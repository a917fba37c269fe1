/* SPDX-License-Identifier: BSD-3-Clause */
/* What code that was built with --symbolic calls when something is symbolic. */
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "symbolic/symbolic.h"

enum { CANDIDATES = 256, PAGE = 1 << SYMBOLIC_PAGE_SHIFT };

bool symbolic_on;
const void *symbolic_frame;

PUBLIC __thread struct symbolic_call __perdure_symbolic_call
	__attribute__((tls_model("initial-exec")));

void symbolic_take(const void *function, const void *frame, uint64_t *value, unsigned count)
{
	struct symbolic_call call = __perdure_symbolic_call;

	symbolic_frame = frame;
	__perdure_symbolic_call.callee = NULL;
	for (unsigned i = 0; symbolic_on && call.callee == function && i < count; i++)
		if (call.argument[i])
			value[i] = symbolic_each(call.argument[i], SYMBOLIC_LOST_SIZE,
						 (uintptr_t)function + i);
}

void symbolic_count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

void symbolic_lose(enum symbolic_loss why)
{
	symbolic_count(&symbolic_shared()->counts.lost[why]);
}

void symbolic_result(const void *function, uint32_t e)
{
	__perdure_symbolic_call.from = function;
	__perdure_symbolic_call.result[0] = e && expression_at(e)->only ? e : 0;
}

/* What is asked and forked on the way is nobody's business. */
static void restore_errno(const int *before)
{
	errno = *before;
}
#define KEEP_ERRNO __attribute__((cleanup(restore_errno), unused)) const int before = errno

/* ---- deciding ---- */

bool symbolic_decide(uint32_t condition, uint64_t site)
{
	static struct path_change change;
	bool now = expression_value(condition);
	uint32_t other = now ? expression_not(condition) : condition;
	enum path_answer answer;
	KEEP_ERRNO;

	if (!expression_at(condition)->only)
		return now;
	symbolic_count(&symbolic_shared()->counts.branches);
	if (!states_is_replayed()) {
		answer = path_may(other, &change);
		if (answer == PATH_YES && states_fork(site, !now, &change)) {
			memory_before_change();
			path_use(&change);
			memory_after_change();
			path_assume(other);
			states_took(site, !now);
			return !now;
		}
		if (answer == PATH_NO) {
			states_took(site, now);
			return now; /* follows from what is known */
		}
	}
	path_assume(now ? condition : expression_not(condition));
	states_took(site, now);
	return now;
}

uint64_t symbolic_fix(uint32_t e, enum symbolic_loss why)
{
	unsigned width = expression_at(e)->width;
	uint64_t value = expression_value(e);
	KEEP_ERRNO;

	if (!expression_at(e)->only)
		return value;
	symbolic_lose(why);
	path_assume(expression_make(SYMBOLIC_EQ, width, e, expression_constant(width, value)));
	return value;
}

uint64_t symbolic_each(uint32_t e, enum symbolic_loss why, uint64_t site)
{
	uint64_t values[CANDIDATES];
	unsigned width = expression_at(e)->width;
	int count;
	KEEP_ERRNO;

	if (!expression_at(e)->only)
		return expression_value(e);
	count = path_values(e, values, CANDIDATES);
	if (count < 0)
		return symbolic_fix(e, why);
	for (int i = 0; i < count; i++) {
		uint32_t is = expression_make(SYMBOLIC_EQ, width, e,
					      expression_constant(width, values[i]));

		if (i == count - 1 || symbolic_decide(is, site))
			return values[i];
	}
	return expression_value(e);
}

uint32_t symbolic_choose(uint32_t ways)
{
	uint32_t number, e;

	if (!inputs_choice(&number))
		return 0;
	if (!symbolic_on)
		return expression_model[number] < ways ? expression_model[number] : 0;
	symbolic_frame = __builtin_frame_address(0);
	e = expression_input(number);
	path_assume(expression_make(SYMBOLIC_ULT, 8, e, expression_constant(8, ways)));
	for (uint32_t way = 0; way + 1 < ways; way++)
		if (symbolic_decide(expression_make(SYMBOLIC_EQ, 8, e, expression_constant(8, way)),
				    (uintptr_t)symbolic_choose + way))
			return way;
	return ways - 1;
}

/* ---- operations ---- */

HIDDEN uint32_t symbolic_hook_binary(uint32_t what, uint32_t s, uint64_t a, uint32_t t, uint64_t b);
HIDDEN uint32_t symbolic_hook_cast(uint32_t what, uint32_t s);
HIDDEN uint32_t symbolic_hook_select(uint32_t width, uint32_t s, uint32_t t, uint64_t a, uint32_t u,
				     uint64_t b);

static uint32_t or_constant(uint32_t e, unsigned width, uint64_t value)
{
	return e ? e : expression_constant(width, value);
}

/* A constant is no expression for the program. */
static uint32_t if_symbolic(uint32_t e)
{
	return e && expression_at(e)->only ? e : 0;
}

/*
 * What simplifies to a constant is one, but registers may still hold what it was under another
 * model: then it stays an expression.
 */
uint32_t symbolic_hook_binary(uint32_t what, uint32_t s, uint64_t a, uint32_t t, uint64_t b)
{
	unsigned width = what & 255;

	return expression_make(what >> 8, width, or_constant(s, width, a),
			       or_constant(t, width, b));
}

uint32_t symbolic_hook_cast(uint32_t what, uint32_t s)
{
	unsigned op = what >> 16, to = what & 255;

	if (op == SYMBOLIC_TRUNC)
		return expression_extract(s, 0, to);
	return expression_extend(op, s, to);
}

uint32_t symbolic_hook_select(uint32_t width, uint32_t s, uint32_t t, uint64_t a, uint32_t u,
			      uint64_t b)
{
	return expression_if(s, or_constant(t, width, a), or_constant(u, width, b));
}

/* ---- memory ---- */

HIDDEN uint32_t symbolic_hook_load(uint32_t s, uint64_t address, uint32_t size);
HIDDEN uint64_t symbolic_hook_store(uint32_t s, uint64_t address, uint32_t size, uint32_t t,
				    uint64_t value);
HIDDEN uint64_t symbolic_hook_target(uint32_t s, uint64_t size);

static uint32_t equals(uint32_t e, uint64_t value)
{
	unsigned width = expression_at(e)->width;

	return expression_make(SYMBOLIC_EQ, width, e, expression_constant(width, value));
}

static uint32_t content_of(uint64_t address, unsigned size)
{
	uint32_t e = memory_load((const void *)address, size);
	uint64_t value = 0;

	if (e)
		return e;
	__builtin_memcpy(&value, (const void *)address, size);
	return expression_constant(8 * size, value);
}

/* Where it can be, without what would crash; that is another path. -1: at too many places. */
static int candidates(uint32_t s, uint64_t *list, unsigned size)
{
	int count = path_values(s, list, CANDIDATES), kept = 0;
	KEEP_ERRNO;

	for (int i = 0; i < count; i++) {
		if (memory_is_mapped(list[i]) && memory_is_mapped(list[i] + size - 1))
			list[kept++] = list[i];
		else if (symbolic_decide(equals(s, list[i]), list[i] >> 12))
			return 0; /* and the access itself will do the rest */
	}
	return count < 0 ? -1 : kept;
}

static uint32_t load_any(uint32_t s, unsigned size)
{
	uint64_t list[CANDIDATES];
	int count = candidates(s, list, size);
	uint32_t result;

	if (count < 0)
		return memory_load((const void *)symbolic_fix(s, SYMBOLIC_LOST_ADDRESS), size);
	if (!count)
		return 0;
	result = content_of(list[count - 1], size);
	for (int i = count - 1; i-- > 0;)
		result = expression_if(equals(s, list[i]), content_of(list[i], size), result);
	return result;
}

uint32_t symbolic_hook_load(uint32_t s, uint64_t address, uint32_t size)
{
	if (s && expression_at(s)->only)
		return load_any(s, size);
	return memory_load((const void *)(s ? expression_value(s) : address), size);
}

static bool overlaps(const uint64_t *list, int count, int i, uint64_t size)
{
	for (int k = 0; k < count; k++)
		if (k != i && list[k] - list[i] < size)
			return true;
	return false;
}

/* Of a store to one of several places: which one it is now; where it could be PM, it is decided. */
uint64_t symbolic_hook_target(uint32_t s, uint64_t size)
{
	uint64_t list[CANDIDATES];
	int count;

	if (!expression_at(s)->only)
		return expression_value(s);
	count = candidates(s, list, (unsigned)size);
	if (count < 0)
		return symbolic_fix(s, SYMBOLIC_LOST_ADDRESS);
	for (int i = 0; i < count; i++)
		if (in_window((const void *)list[i]) || overlaps(list, count, i, size))
			return symbolic_each(s, SYMBOLIC_LOST_ADDRESS, list[i] >> 12);
	return expression_value(s);
}

uint64_t symbolic_hook_store(uint32_t s, uint64_t address, uint32_t size, uint32_t t,
			     uint64_t value)
{
	uint64_t list[CANDIDATES];
	uint64_t now = t ? expression_value(t) : value;
	int count = 1;

	t = if_symbolic(t);
	if (s && expression_at(s)->only)
		count = path_values(s, list, CANDIDATES);
	if (count > 1) {
		uint32_t stored = or_constant(t, 8 * size, now);

		if (expression_at(stored)->width < 8 * size)
			stored = expression_extend(SYMBOLIC_ZEXT, stored, 8 * size);
		for (int i = 0; i < count; i++)
			memory_store((const void *)list[i], size,
				     expression_if(equals(s, list[i]), stored,
						   content_of(list[i], size)));
		return now;
	}
	memory_store((const void *)(s ? expression_value(s) : address), size, t);
	return now;
}

HIDDEN void symbolic_hook_fix_memory(uint64_t address, uint64_t same, uint64_t size);
HIDDEN void symbolic_hook_clear(uint64_t address, uint64_t same, uint64_t size);
HIDDEN void symbolic_hook_copy(uint64_t to, uint64_t from, uint64_t size);
HIDDEN void symbolic_hook_assembly(uint64_t address, uint64_t same, uint64_t size);

void symbolic_hook_fix_memory(uint64_t address, uint64_t same, uint64_t size)
{
	(void)same;
	if (symbolic_on)
		memory_fix((const void *)address, size, SYMBOLIC_LOST_FLOAT);
}

void symbolic_hook_clear(uint64_t address, uint64_t same, uint64_t size)
{
	(void)same;
	if (symbolic_on)
		memory_clear((const void *)address, size);
}

void symbolic_hook_copy(uint64_t to, uint64_t from, uint64_t size)
{
	if (symbolic_on)
		memory_copy((void *)to, (const void *)from, size);
}

/* One operand of assembly: at most a vector register. */
void symbolic_hook_assembly(uint64_t address, uint64_t same, uint64_t size)
{
	enum { LARGEST = 64 };

	(void)same;
	(void)size;
	if (symbolic_on && !in_window((const void *)address))
		memory_fix((const void *)address, LARGEST, SYMBOLIC_LOST_FLOAT);
}

/* ---- values that are needed ---- */

HIDDEN uint64_t symbolic_hook_now(uint32_t s, uint64_t unused);
HIDDEN uint64_t symbolic_hook_fix(uint32_t s, uint64_t why);
HIDDEN uint64_t symbolic_hook_each(uint32_t s, uint64_t why);
HIDDEN uint64_t symbolic_hook_room(uint32_t s, uint64_t why);
HIDDEN uint64_t symbolic_hook_divisor(uint32_t s, uint64_t unused);
HIDDEN uint64_t symbolic_hook_branch(uint32_t s, uint64_t site);
HIDDEN uint64_t symbolic_hook_switch(uint32_t s, const uint64_t *cases, uint32_t count,
				     uint64_t site);

uint64_t symbolic_hook_now(uint32_t s, uint64_t unused)
{
	(void)unused;
	return expression_value(s);
}

uint64_t symbolic_hook_fix(uint32_t s, uint64_t why)
{
	return symbolic_fix(s, (enum symbolic_loss)why);
}

uint64_t symbolic_hook_each(uint32_t s, uint64_t why)
{
	return symbolic_each(s, (enum symbolic_loss)why, why);
}

/*
 * The size of an object: if it is small, as large as any small one, and the number stays what it
 * is. If it may be larger, that is another path.
 */
uint64_t symbolic_hook_room(uint32_t s, uint64_t why)
{
	enum { SMALL = 4096 };
	unsigned width = expression_at(s)->width;

	if (symbolic_decide(
		    expression_make(SYMBOLIC_ULE, width, s, expression_constant(width, SMALL)),
		    why))
		return SMALL;
	return symbolic_fix(s, (enum symbolic_loss)why);
}

uint64_t symbolic_hook_divisor(uint32_t s, uint64_t unused)
{
	(void)unused;
	if (symbolic_decide(equals(s, 0), 0))
		raise(SIGFPE);
	return expression_value(s);
}

uint64_t symbolic_hook_branch(uint32_t s, uint64_t site)
{
	return symbolic_decide(s, site);
}

uint64_t symbolic_hook_switch(uint32_t s, const uint64_t *cases, uint32_t count, uint64_t site)
{
	unsigned width = expression_at(s)->width;

	for (uint32_t i = 0; i < count; i++)
		if (symbolic_decide(equals(s, cases[i] & expression_mask(width)), site + i))
			return cases[i];
	return expression_value(s);
}

/* ---- calls ---- */

enum { FUNCTIONS = 1 << 17 };
static const void **functions; /* hash table of those that understand expressions */

PUBLIC void __perdure_sym_register(const void *const *list, uint64_t count);
HIDDEN uint64_t symbolic_hook_returns(const void *function, uint32_t s, uint64_t to, uint32_t leaf);
HIDDEN uint64_t symbolic_hook_argument(uint32_t s, uint64_t callee);
HIDDEN void symbolic_hook_shown(uint64_t address, uint64_t callee, uint64_t size);
HIDDEN void symbolic_hook_take_variable(const void *function, struct symbolic_variable *variable);
HIDDEN void symbolic_hook_va_start(uint64_t list, uint32_t fixed,
				   struct symbolic_variable *variable);
HIDDEN void symbolic_hook_va_end(const struct symbolic_variable *variable);
HIDDEN void symbolic_hook_fill(uint64_t to, uint32_t s, uint64_t size);

static int note_object(struct dl_phdr_info *info, size_t size, void *function);

static size_t place_of(const void *function)
{
	return ((uintptr_t)function * 0x9e3779b97f4a7c15ull) >> 47;
}

void __perdure_sym_register(const void *const *list, uint64_t count)
{
	static uint64_t used;

	if (!runtime_session || !runtime_session->explore)
		return;
	if (!functions)
		functions = (void *)syscall(SYS_mmap, NULL, FUNCTIONS * sizeof(*functions),
					    PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
	if (count)
		dl_iterate_phdr(note_object, (void *)list[0]);
	for (uint64_t i = 0; i < count && used < FUNCTIONS / 2; i++, used++) {
		size_t at = place_of(list[i]);

		while (functions[at % FUNCTIONS])
			at++;
		functions[at % FUNCTIONS] = list[i];
	}
}

/* Objects that have such functions; a callback may return to code without expressions. */
enum { OBJECTS = 64 };
static struct {
	uint64_t start, end;
} object[OBJECTS];
static unsigned objects;

static int note_object(struct dl_phdr_info *info, size_t size, void *function)
{
	uint64_t address = (uintptr_t)function, start = UINT64_MAX, end = 0;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uint64_t from = info->dlpi_addr + header->p_vaddr;

		if (header->p_type != PT_LOAD)
			continue;
		start = from < start ? from : start;
		end = from + header->p_memsz > end ? from + header->p_memsz : end;
	}
	if (address < start || address >= end)
		return 0;
	for (unsigned i = 0; i < objects; i++)
		if (object[i].start == start)
			return 1;
	if (objects < OBJECTS) {
		object[objects].start = start;
		object[objects++].end = end;
	}
	return 1;
}

static bool is_in_object(uint64_t address)
{
	for (unsigned i = 0; i < objects; i++)
		if (address >= object[i].start && address < object[i].end)
			return true;
	return false;
}

uint64_t symbolic_hook_returns(const void *function, uint32_t s, uint64_t to, uint32_t leaf)
{
	if (to && !is_in_object(to))
		return symbolic_fix(s, SYMBOLIC_LOST_CALL);
	__perdure_symbolic_call.from = function;
	__perdure_symbolic_call.result[leaf] = s;
	return expression_value(s);
}

static bool understands(uint64_t function)
{
	size_t at = place_of((const void *)function);

	for (; functions && functions[at % FUNCTIONS]; at++)
		if (functions[at % FUNCTIONS] == (const void *)function)
			return true;
	return false;
}

uint64_t symbolic_hook_argument(uint32_t s, uint64_t callee)
{
	return understands(callee) ? expression_value(s) : symbolic_fix(s, SYMBOLIC_LOST_CALL);
}

void symbolic_hook_shown(uint64_t address, uint64_t callee, uint64_t size)
{
	if (!symbolic_on || understands(callee))
		return;
	if (size)
		memory_fix((const void *)address, size, SYMBOLIC_LOST_CALL);
	else
		memory_fix_from((const void *)address, SYMBOLIC_LOST_CALL);
}

/* As the ABI lays out a va_list; the arguments were stored there before this. */
struct variable_arguments {
	uint32_t general, vector;
	uint64_t overflow, registers;
};

void symbolic_hook_take_variable(const void *function, struct symbolic_variable *variable)
{
	variable->registers = variable->overflow = 0;
	for (unsigned i = 0; i < SYMBOLIC_ARGUMENTS; i++)
		variable->argument[i] = __perdure_symbolic_call.callee == function
						? __perdure_symbolic_call.argument[i]
						: 0;
}

static const void *slot_of(const struct symbolic_variable *variable, uint32_t i)
{
	enum { REGISTERS = 6 };

	return (const void *)(i < REGISTERS ? variable->registers + 8ull * i
					    : variable->overflow + 8ull * (i - REGISTERS));
}

void symbolic_hook_va_start(uint64_t list, uint32_t fixed, struct symbolic_variable *variable)
{
	const struct variable_arguments *va = (const void *)list;

	variable->fixed = fixed;
	variable->registers = va->registers;
	variable->overflow = va->overflow;
	for (uint32_t i = fixed; symbolic_on && i < SYMBOLIC_ARGUMENTS; i++) {
		uint32_t e = if_symbolic(variable->argument[i]);
		unsigned width = e ? expression_at(e)->width : 0;
		const void *at = slot_of(variable, i);

		if (e && (*(const uint64_t *)at & expression_mask(width)) == expression_value(e))
			memory_store(at, (width + 7) / 8, e);
	}
}

/* The memory is somebody else's again. */
void symbolic_hook_va_end(const struct symbolic_variable *variable)
{
	for (uint32_t i = variable->fixed;
	     symbolic_on && variable->registers && i < SYMBOLIC_ARGUMENTS; i++)
		if (variable->argument[i])
			memory_clear(slot_of(variable, i), 8);
}

void symbolic_hook_fill(uint64_t to, uint32_t s, uint64_t size)
{
	uint32_t byte = s ? if_symbolic(expression_extract(s, 0, 8)) : 0;

	for (uint64_t i = 0; symbolic_on && i < size; i++)
		memory_store((const void *)(to + i), 1, byte);
}
