/* SPDX-License-Identifier: BSD-3-Clause */
/* What patched code does to PM, told to the hooks. */
#include <cpuid.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "binary/binary.h"
#include "binary/registers.h"
#include "fibers/fibers.h"
#include "races/races.h"
#include "runtime/execution.h"
#include "runtime/hooks.h"

uint64_t binary_state_mask;
uint64_t binary_state_size;
uint8_t binary_saves_compactly;
__thread uint64_t binary_kept_rdi __attribute__((tls_model("initial-exec")));

/* Vector registers, as far as the system lets programs use them. */
void binary_entry_start(void)
{
	enum { LEAST = 512 + 64, VECTORS = 0xe6 };
	uint32_t low, high, a, b = 0, c, d;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	binary_state_mask = low & VECTORS;
	__cpuid_count(0xd, 0, a, b, c, d);
	binary_state_size = b > LEAST ? b : LEAST;
	__cpuid_count(0xd, 1, a, b, c, d);
	binary_saves_compactly = a >> 1 & 1;
}

static int64_t bit_offset(const struct binary_registers *r, unsigned number, uint64_t size)
{
	uint64_t value = registers_value(r, number);

	return size == 8 ? (int64_t)value : size == 4 ? (int32_t)value : (int16_t)value;
}

/* The kernel knows whether they are there. */
static bool read_both(const void *one, const void *other, unsigned size,
		      unsigned char element[2][8])
{
	struct iovec to[2] = { { element[0], size }, { element[1], size } };
	struct iovec from[2] = { { (void *)one, size }, { (void *)other, size } };

	return syscall(SYS_process_vm_readv, getpid(), to, 2, from, 2, 0) == 2 * (long)size;
}

/* How many elements a comparison looks at. */
static uint64_t compared(const struct binary_registers *r, const struct binary_site *site)
{
	enum { DOWN = 1 << 10, RSI = 6 };
	unsigned size = site->operand[0].size;
	int64_t step = r->flags & DOWN ? -(int64_t)size : size;
	const unsigned char *left = (const unsigned char *)r->rdi, *right = NULL;
	bool wanted = site->string == BINARY_WHILE_EQUAL;
	unsigned char element[2][8];
	uint64_t done = 0;

	for (unsigned i = 0; i < site->operands; i++)
		if (site->operand[i].base == RSI)
			right = (const unsigned char *)r->rsi;
	while (done < r->rcx) {
		const unsigned char *one = left + (int64_t)done * step;
		const unsigned char *other =
			right ? right + (int64_t)done * step : (const unsigned char *)&r->rax;
		bool same = true;

		if (runtime_recovers) { /* there is nothing to compare before it has been read */
			event_load(one, size, &r->frame);
			event_load(other, size, &r->frame);
		}
		if (!read_both(one, other, size, element))
			return done;
		for (unsigned i = 0; i < size; i++)
			same &= element[0][i] == element[1][i];
		done++;
		if (same != wanted)
			break;
	}
	return done;
}

/* A range, and where it starts: string instructions may go down. */
static uint64_t range_of(const struct binary_registers *r, const struct binary_site *site,
			 const struct binary_operand *o, uint64_t *start)
{
	enum { DOWN = 1 << 10 };
	uint64_t size = o->size;

	*start = registers_address(r, o);
	if (site->bit != BINARY_NO_REGISTER) /* the offset of a bit may lead far away */
		*start += (bit_offset(r, site->bit, size) >> 3) & -(int64_t)size;
	if (site->kind != BINARY_STRING)
		return size;
	size *= site->string ? compared(r, site) : r->rcx;
	if (r->flags & DOWN && size)
		*start -= size - o->size;
	return size;
}

/* Instructions between their two hits: an interrupted one may be followed by others. */
enum { NESTED = 8 };
static __thread struct {
	void *p;
	uint64_t size;
} writing[NESTED][BINARY_OPERANDS] __attribute__((tls_model("initial-exec")));
static __thread unsigned nested __attribute__((tls_model("initial-exec")));

static uint32_t descriptor_of(const struct binary_site *site, uint64_t size)
{
	uint32_t flags = site->descriptor;

	/* One instruction, like those of assembly in a source: what the source says is not known.
	 */
	flags |= site->kind == BINARY_STRING ? PERDURE_BULK : PERDURE_ASM;
	return flags | (size <= PERDURE_SIZE_MASK ? (uint32_t)size : 0);
}

static bool stores_to_pm(const struct binary_registers *r, const struct binary_site *site)
{
	return site->operands && site->operand[0].actions & BINARY_STORES &&
	       in_window((void *)registers_address(r, &site->operand[0]));
}

/* ---- parts ---- */

/* What an instruction will have stored, of the last one that stores parts. */
static __thread struct binary_parts stored_parts __attribute__((tls_model("initial-exec")));

static void list_parts(const struct binary_registers *r, const struct binary_site *site,
		       const unsigned char *state, struct binary_parts *parts)
{
	uint64_t address = registers_address(r, &site->operand[0]);

	if (site->kind == BINARY_LANES)
		binary_list_lanes(&site->lanes, address, state, parts);
	else
		binary_list_state(address, r->rdx << 32 | (uint32_t)r->rax,
				  site->kind == BINARY_COMPACT_STATE, parts);
}

static void before_parts(struct binary_registers *r, const struct binary_site *site,
			 const unsigned char *state)
{
	struct binary_parts parts;

	list_parts(r, site, state, &parts);
	if (runtime_races) {
		for (unsigned i = 0; i < parts.count; i++)
			races_access(site->operand[0].actions, (void *)parts.part[i].address,
				     parts.part[i].size, site->descriptor, site->address,
				     site->known, &r->frame);
		return;
	}
	if (site->operand[0].actions & BINARY_STORES) {
		stored_parts = parts;
		return;
	}
	for (unsigned i = 0; i < parts.count; i++)
		event_load((const void *)parts.part[i].address, parts.part[i].size, &r->frame);
}

static void after_parts(struct binary_registers *r, const struct binary_site *site)
{
	for (unsigned i = 0; i < stored_parts.count; i++) {
		struct binary_part *part = &stored_parts.part[i];

		if (in_window((void *)part->address) && part->size)
			event_write((void *)part->address, part->size,
				    site->descriptor | PERDURE_BULK, &r->frame);
	}
	stored_parts.count = 0;
}

/* ---- accesses ---- */

static void before_access(struct binary_registers *r, const struct binary_site *site)
{
	bool stores = false;

	if (site->locked) {
		if (fibers_on)
			hook_visible(site->operands
					     ? (void *)registers_address(r, &site->operand[0])
					     : NULL,
				     PERDURE_RMW | PERDURE_ASM | site->operand[0].size, &r->frame);
		if (!stores_to_pm(r, site)) /* whose hook has a fence of its own */
			hook_fence(PERDURE_RMW_FENCE, &r->frame);
	}
	for (unsigned i = 0; i < site->operands; i++) {
		const struct binary_operand *o = &site->operand[i];
		uint64_t start, size = range_of(r, site, o, &start);
		bool pm = in_window((void *)start) && size;

		/* What is not there is touched by the instruction itself, not by its hook. */
		if (pm && !runtime_recovers)
			pm = (size = window_mapped(start, size));

		if (nested < NESTED)
			writing[nested][i].size = 0;
		if (pm && o->actions & BINARY_LOADS && runtime_wants_loads)
			hook_load((void *)start, descriptor_of(site, size), &r->frame);
		stores |= o->actions & BINARY_STORES;
		if (!pm || !(o->actions & BINARY_STORES) || nested >= NESTED)
			continue;
		writing[nested][i].p = (void *)start;
		writing[nested][i].size = size;
		hook_write_begin((void *)start, size, descriptor_of(site, size), &r->frame);
	}
	if (stores)
		nested++;
}

static void after_access(struct binary_registers *r, const struct binary_site *site)
{
	enum { ZERO = 1 << 6 };
	bool done = !site->if_equal || r->flags & ZERO;

	if (!nested || --nested >= NESTED)
		return;
	for (unsigned i = 0; i < site->operands; i++)
		if (writing[nested][i].size)
			hook_write_end(writing[nested][i].p, writing[nested][i].size,
				       descriptor_of(site, writing[nested][i].size), done, NULL,
				       &r->frame);
}

__thread struct binary_registers *binary_hit_registers __attribute__((tls_model("initial-exec")));

/* ---- races ---- */

static uint64_t variable_address(const struct binary_site *site)
{
	const struct binary_variable *v = &site->variable;

	return (int64_t)v->displacement + (v->relative ? site->address + site->length : 0);
}

static void tell_race(struct binary_registers *r, const struct binary_site *site,
		      const struct binary_operand *o, uint64_t address, uint64_t size)
{
	enum { ZERO = 1 << 6 };
	unsigned actions = o ? o->actions : site->variable.actions;
	bool stored = actions & BINARY_STORES && (!site->if_equal || r->flags & ZERO);

	if (!size)
		return;
	if (site->deed == BINARY_MOVE)
		races_storing(registers_source(r, site));
	if (!site->locked)
		races_access(actions, (void *)address, size, site->descriptor, site->address,
			     site->known, &r->frame);
	else if (r->site & BINARY_AFTER)
		races_lock_end(stored ? actions : actions & ~BINARY_STORES, (void *)address, size,
			       site->address, site->known, &r->frame);
	else
		races_lock_begin((void *)address, size, site->address, r);
}

static void tell_races(struct binary_registers *r, const struct binary_site *site)
{
	bool settles = races_alone && runtime_session->races.discovers, pm = false;
	uint64_t start;

	if (site->kind == BINARY_FENCE) {
		hook_fence(site->descriptor, &r->frame);
		return;
	}
	if (site->kind == BINARY_FLUSH) {
		start = registers_address(r, &site->operand[0]);
		if (in_window((void *)start))
			races_flush((void *)start, 1, site->descriptor, site->address);
		return;
	}
	if (site->kind == BINARY_NAMED) { /* whichever lock it is */
		static const char any;

		if (site->known & RACES_ACQUIRE)
			races_acquire(&any);
		else
			races_release(&any, true, site->address);
		return;
	}
	if (site->kind == BINARY_START) {
		start = registers_address(r, &site->operand[0]);
		if (in_window((void *)start))
			races_open(site->operand[0].actions, (void *)start, site->operand[0].size,
				   site->access, &r->frame);
		return;
	}
	for (unsigned i = 0; i < site->operands; i++) {
		uint64_t size = range_of(r, site, &site->operand[i], &start);

		tell_race(r, site, &site->operand[i], start, size);
		pm |= in_window((void *)start);
		settles = settles && !sync_is_locked_word((void *)start);
	}
	tell_race(r, site, NULL, variable_address(site), site->variable.size);
	if (settles)
		learn_settle(r->site & BINARY_NUMBER, pm);
}

void binary_tell(struct binary_registers *r, const struct binary_site *site)
{
	if (runtime_races) {
		tell_races(r, site);
		return;
	}
	if (r->site & BINARY_AFTER) {
		after_access(r, site);
	} else if (site->kind == BINARY_FENCE) {
		__perdure_inline.stored = 1; /* nobody has watched ordinary memory */
		hook_fence(site->descriptor, &r->frame);
	} else if (site->kind == BINARY_PAUSE) {
		hook_visible(NULL, 0, &r->frame);
	} else if (site->kind == BINARY_FLUSH) {
		hook_flush((void *)registers_address(r, &site->operand[0]), site->descriptor,
			   &r->frame);
	} else {
		before_access(r, site);
	}
}

/* What was under way will not go on. */
void binary_abandon(void)
{
	binary_hit_registers = NULL;
	nested = 0;
	stored_parts.count = 0;
	binary_stop_delivering();
}

/* ---- with them ---- */

/* The kernel is asked to map PM by an instruction of the program itself. */
static void notice_mapping(const struct binary_registers *r)
{
	if (r->rax == SYS_mmap && r->r10 & MAP_SHARED && !(r->r10 & MAP_ANONYMOUS) &&
	    files_is_pm((int)r->r8, (int)r->r10))
		session_limit(
			runtime_session, thread_owner(),
			"PM was mapped by a system call that was not made through the C library: "
			"accesses to that mapping were not seen");
}

HIDDEN void binary_hit(struct binary_registers *r, const unsigned char *state);

void binary_hit(struct binary_registers *r, const unsigned char *state)
{
	const struct binary_site *site = &binary_sites[r->site & BINARY_NUMBER];
	struct binary_registers *outer = binary_hit_registers == r ? NULL : binary_hit_registers;
	int saved_errno = errno;

	binary_hit_registers = r;
	if (binary_told)
		binary_told = false;
	else if (registers_has_parts(site) && r->site & BINARY_AFTER)
		after_parts(r, site);
	else if (registers_has_parts(site))
		before_parts(r, site, state);
	else if (site->kind == BINARY_SYSCALL)
		notice_mapping(r);
	else if (site->kind == BINARY_REQUEST)
		r->rdx = client_request(r->rdx, (const volatile uint64_t *)r->rax, &r->frame);
	else
		binary_tell(r, site);
	if (!outer)
		binary_deliver();
	binary_hit_registers = outer;
	errno = saved_errno;
}
