/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hits that need no vector registers, which nobody has kept yet: see CMakeLists.txt. Most are told
 * to nobody but the checkers of patterns, and those are short.
 */
#include <errno.h>

#include "binary/binary.h"
#include "binary/registers.h"
#include "fibers/fibers.h"
#include "races/races.h"
#include "runtime/hooks.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
/* Is this code compiled so? See CMakeLists.txt. */
#ifdef __clang__
#define USES_NO_VECTORS false
#else
#define USES_NO_VECTORS true
#endif
#define APART __attribute__((noinline))

__thread bool binary_told __attribute__((tls_model("initial-exec")));

/* The hook has done it: the instruction and its second hit are passed over. */
static void pass_over(struct binary_registers *r, const struct binary_site *site)
{
	enum { RAISE = 8, SECOND_HIT = 15 };

	r->back += RAISE + site->length + SECOND_HIT;
}

/* ---- locked instructions ---- */

/* One of them, as it is; what it says in rax and the flags. */
#define LOCKED(instruction, p, accumulator, source, flags)                                         \
	__asm__ volatile("lock " instruction "\n\tmov %%rax, %[a]\n\tlahf\n\tseto %%al"            \
			 : [a] "=&r"(accumulator), [s] "+&r"(source),                              \
			   "=&a"(flags), [m] "+m"(*(volatile char *)(p))                           \
			 : "2"(accumulator)                                                        \
			 : "cc", "memory")
#define LOCKED_SIZES(name, p, size, accumulator, source, flags)                                    \
	do {                                                                                       \
		if ((size) == 8)                                                                   \
			LOCKED(name "q %q[s], %[m]", p, accumulator, source, flags);               \
		else if ((size) == 4)                                                              \
			LOCKED(name "l %k[s], %[m]", p, accumulator, source, flags);               \
		else if ((size) == 2)                                                              \
			LOCKED(name "w %w[s], %[m]", p, accumulator, source, flags);               \
		else                                                                               \
			LOCKED(name "b %b[s], %[m]", p, accumulator, source, flags);               \
	} while (0)

/* Does what the instruction would do to memory, registers and flags; false if it has not stored. */
static bool do_locked(struct binary_registers *r, const struct binary_site *site, void *p)
{
	enum { CARRY = 1, ZERO = 1 << 6, OVERFLOW = 1 << 11, OTHERS = 0xd5 };
	uint64_t s = registers_source(r, site), a = r->rax, flags = 0;
	uint64_t others = site->keeps_carry ? OTHERS & ~CARRY : OTHERS;
	unsigned size = site->operand[0].size;

#define ARITHMETIC(deed, name)                                                                     \
	case deed:                                                                                 \
		LOCKED_SIZES(name, p, size, a, s, flags);                                          \
		break
	switch (site->deed) {
	case BINARY_SWAP:
		LOCKED_SIZES("xchg", p, size, a, s, flags);
		*registers_at(r, site->source) = s;
		return true;
	case BINARY_ADD:
		LOCKED_SIZES("xadd", p, size, a, s, flags);
		*registers_at(r, site->source) = s;
		break;
	case BINARY_COMPARE:
		LOCKED_SIZES("cmpxchg", p, size, a, s, flags);
		r->rax = a;
		break;
		ARITHMETIC(BINARY_PLUS, "add");
		ARITHMETIC(BINARY_MINUS, "sub");
		ARITHMETIC(BINARY_AND, "and");
		ARITHMETIC(BINARY_OR, "or");
		ARITHMETIC(BINARY_XOR, "xor");
	}
	r->flags &= ~(others | OVERFLOW);
	r->flags |= (flags >> 8 & others) | (flags & 1 ? OVERFLOW : 0);
	return site->deed != BINARY_COMPARE || r->flags & ZERO;
}

/* ---- told to the checkers of patterns, and to nobody else ---- */

static void plain_fence(struct session_thread *thread, uint32_t stack)
{
	thread->fences++;
	lines_fence(&runtime_session->lines, &thread->lines, stack, false);
	__perdure_inline.pending = 0;
}

static bool plain_store(struct session_thread *thread, struct binary_registers *r,
			const struct binary_site *site, uint64_t address, uint32_t stack)
{
	unsigned size = site->operand[0].size;
	struct lines *lines = &runtime_session->lines;
	bool done = true;

	if (UNLIKELY(!window_has((void *)address, size) || !is_followed((void *)address) ||
		     address % PERDURE_LINE_SIZE + size > PERDURE_LINE_SIZE))
		return false;
	if (site->locked)
		plain_fence(thread, stack);
	thread->lines.event++;
	if (UNLIKELY(!lines_begin(lines, &thread->lines, address)))
		return false;
	if (site->locked)
		done = do_locked(r, site, (void *)address);
	else
		store_value((void *)address, registers_source(r, site), size);
	if (done)
		lines_end_store(lines, &thread->lines, address, lines_bytes(address, size), stack,
				false);
	else
		lines_cancel(lines, address);
	thread->stores += done;
	__perdure_inline.stored = 1;
	pass_over(r, site);
	return true;
}

static bool plain_flush(struct session_thread *thread, uint32_t kind, uint64_t address,
			uint32_t stack)
{
	uint64_t line = address & -(uint64_t)PERDURE_LINE_SIZE;

	if (!is_followed((void *)line))
		return false;
	thread->flushes++;
	lines_flush(&runtime_session->lines, &thread->lines, line, stack,
		    kind == PERDURE_CLFLUSH ? LINES_ORDERED : LINES_FLUSH, (const uint64_t *)line);
	__perdure_inline.stored = 1;
	__perdure_inline.pending = thread->lines.flushes != 0;
	return true;
}

/* Are its stores to be shown to judge_store, which would leave those of such a library alone? */
static bool is_judged(const struct binary_registers *r)
{
	return runtime_thread.judges && !modules_known_transactional(r->frame.return_address);
}

/* False if there is more to it. */
static bool plain_hit(struct session_thread *thread, struct binary_registers *r,
		      const struct binary_site *site, uint64_t address)
{
	uint32_t stack;

	if (UNLIKELY(!site->deed && site->kind != BINARY_FLUSH &&
		     (site->kind != BINARY_FENCE || site->descriptor != PERDURE_SFENCE)))
		return false;
	stack = stack_find(r);
	if (UNLIKELY(!stack))
		return false;
	if (LIKELY(site->deed))
		return !is_judged(r) && plain_store(thread, r, site, address, stack);
	if (site->kind == BINARY_FLUSH)
		return plain_flush(thread, site->descriptor, address, stack);
	plain_fence(thread, stack);
	__perdure_inline.stored = 0;
	return true;
}

/* Does nobody else want to know of this thread's accesses? */
static bool is_plain(const struct thread *thread)
{
	return thread->shared && !thread->busy && !runtime_session->listening &&
	       !runtime_trusts_instrumented;
}

/* PMDK makes many to Valgrind, and most of them are for others. */
static APART bool plain_request(struct binary_registers *r)
{
	const volatile uint64_t *arguments = (const volatile uint64_t *)r->rax;
	enum client_need need = client_request_needs(arguments);

	if (need == CLIENT_ALL || (need == CLIENT_STACK && !stack_is_kept(r)))
		return false;
	if (need != CLIENT_NOTHING)
		r->rdx = client_request(r->rdx, arguments, &r->frame);
	return true;
}

/* ---- the others ---- */

/* Races: only accesses to data in PM are told with their stacks. */
static bool races_want_stack(const struct binary_registers *r, const struct binary_site *site)
{
	bool any = false;

	if (runtime_session->races.discovers || site->kind == BINARY_FLUSH ||
	    site->kind == BINARY_FENCE)
		return false;
	for (unsigned i = 0; i < site->operands; i++) {
		const void *p = (void *)registers_address(r, &site->operand[i]);

		any |= in_window(p) && !regions_is_lock(p);
	}
	return any || site->kind == BINARY_STRING || site->bit != BINARY_NO_REGISTER;
}

static bool may_be_quick(const struct binary_registers *r, const struct binary_site *site)
{
	if (!runtime_thread.shared || registers_has_parts(site) || site->kind >= BINARY_REQUEST)
		return false;
	if (runtime_races && !races_want_stack(r, site))
		return !runtime_session->listening;
	return !runtime_session->listening && !runtime_session->executions.on && !fibers_on &&
	       !is_judged(r) && stack_is_kept(r);
}

static bool store_at_once(struct binary_registers *r, const struct binary_site *site)
{
	uint64_t address;

	if (site->deed != BINARY_MOVE || runtime_races)
		return false;
	address = registers_address(r, &site->operand[0]);
	if (!window_has((void *)address, site->operand[0].size))
		return false;
	hook_store((void *)address, registers_source(r, site),
		   site->descriptor | PERDURE_ASM | site->operand[0].size, NULL, &r->frame);
	pass_over(r, site);
	return true;
}

/* Both of the hits of a locked instruction. */
static bool lock_at_once(struct binary_registers *r, const struct binary_site *site)
{
	unsigned actions = site->operand[0].actions, size = site->operand[0].size;
	void *p;

	if (!runtime_races || runtime_session->races.windows || !site->locked || !site->deed)
		return false;
	p = (void *)registers_address(r, &site->operand[0]);
	if (!window_has(p, size))
		return false;
	races_lock_begin(p, size, site->address, r);
	if (!do_locked(r, site, p))
		actions &= ~BINARY_STORES;
	races_lock_end(actions, p, size, site->address, site->known, &r->frame);
	pass_over(r, site);
	return true;
}

static APART bool tell_quickly(struct binary_registers *r, const struct binary_site *site)
{
	bool judges = runtime_thread.judges;
	int saved_errno;

	if (!USES_NO_VECTORS || !may_be_quick(r, site))
		return false;
	saved_errno = errno;
	runtime_thread.judges = is_judged(r);
	if (r->site & BINARY_AFTER || (!store_at_once(r, site) && !lock_at_once(r, site)))
		binary_tell(r, site);
	runtime_thread.judges = judges;
	errno = saved_errno;
	return true;
}

/* ---- races ---- */

bool binary_is_simple(const struct binary_site *site)
{
	return site->operands == 1 && site->kind != BINARY_STRING && site->kind != BINARY_FLUSH &&
	       !registers_has_parts(site) && site->bit == BINARY_NO_REGISTER && !site->locked;
}

/* False if it needs a hook. */
static bool load_briefly(const struct binary_registers *r, const struct binary_site *site)
{
	bool loads = binary_is_simple(site) && site->operand[0].actions == BINARY_LOADS &&
		     !(site->known & RACES_LOCK) &&
		     (site->known & RACES_EXECUTED || site->kind == BINARY_START);
	struct racer *self = loads ? loads_reader() : NULL;
	struct access access = { BINARY_LOADS, .size = site->operand[0].size,
				 .happens = site->kind != BINARY_START };

	if (!self)
		return false;
	if (races_alone)
		return true;
	access.address = registers_address(r, &site->operand[0]);
	if (!in_window((void *)access.address))
		return false;
	if (!journal_on)
		loads_prefetch(self, access.address);
	access.stack = stack_find(r);
	if (!access.stack)
		return false;
	if (site->kind == BINARY_START)
		access.stack = stack_with_first(access.stack, site->access);
	if (journal_on)
		return journal_briefly(self, &access, site->known & RACES_ACQUIRE,
				       (uint32_t)(site - binary_sites));
	return loads_briefly(self, &access, site->known & RACES_ACQUIRE);
}

/* Signals wait from here on; false if it is one hit inside of another. */
static bool enter(struct binary_registers *r, const struct binary_site *site)
{
	r->frame.caller = (void *)r->rbp;
	r->frame.return_address = site->address + site->length;
	if (UNLIKELY(binary_hit_registers))
		return false;
	binary_hit_registers = r;
	return true;
}

static bool leave(void)
{
	if (UNLIKELY(binary_waiting)) {
		binary_told = true; /* all that is left is to deliver them */
		return false;
	}
	binary_hit_registers = NULL;
	return true;
}

/* What is known of the operand. */
static void prefetch(const struct binary_site *site, uint64_t address)
{
	if (!runtime_races)
		lines_prefetch(&runtime_session->lines, address);
	else if (in_window((void *)address))
		races_prefetch(address, site->known & RACES_RELEASE);
}

static APART bool quick_otherwise(struct binary_registers *r, const struct binary_site *site)
{
	if (runtime_session->idle && site->kind < BINARY_REQUEST)
		return true;
	if (site->operands)
		prefetch(site, registers_address(r, &site->operand[0]));
	if (!enter(r, site))
		return false;
	if (USES_NO_VECTORS && runtime_races && load_briefly(r, site))
		return leave();
	return tell_quickly(r, site) && leave();
}

bool binary_quick(struct binary_registers *r)
{
	const struct binary_site *site = &binary_sites[r->site & BINARY_NUMBER];
	struct thread *thread = &runtime_thread;
	uint64_t address = 0;
	bool done;

	if (UNLIKELY(!runtime_plain))
		return quick_otherwise(r, site);
	if (LIKELY(site->operands)) {
		address = registers_address(r, &site->operand[0]);
		lines_prefetch(&runtime_session->lines, address);
		if (site->locked)
			__builtin_prefetch((void *)address, 1);
	}
	if (UNLIKELY(!enter(r, site)))
		return false;
	if (UNLIKELY(!is_plain(thread) || r->site & BINARY_AFTER))
		return tell_quickly(r, site) && leave();
	if (UNLIKELY(site->kind == BINARY_REQUEST))
		return plain_request(r) && leave();
	thread->busy = true;
	__asm__ volatile("" ::: "memory");
	done = plain_hit(thread->shared, r, site, address);
	thread_leave();
	return (LIKELY(done) || tell_quickly(r, site)) && leave();
}
