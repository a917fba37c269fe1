/* SPDX-License-Identifier: BSD-3-Clause */
/* What patched code does to PM, told to the hooks. */
#include <cpuid.h>
#include <errno.h>

#include "binary/binary.h"
#include "fibers/fibers.h"
#include "runtime/hooks.h"

uint64_t binary_state_mask;
uint64_t binary_state_size;
uint8_t binary_saves_compactly;

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

/* By its number in an encoding. */
static uint64_t register_value(const struct binary_registers *r, unsigned number)
{
	const uint64_t value[16] = {
		r->rax, r->rcx, r->rdx, r->rbx, (uintptr_t)(r + 1) + BINARY_RED_ZONE,
		r->rbp, r->rsi, r->rdi, r->r8,  r->r9,
		r->r10, r->r11, r->r12, r->r13, r->r14,
		r->r15,
	};

	return value[number];
}

static uint64_t address_of(const struct binary_registers *r, const struct binary_operand *o)
{
	uint64_t address = (int64_t)o->displacement;

	if (o->base != BINARY_NO_REGISTER)
		address += register_value(r, o->base);
	if (o->index != BINARY_NO_REGISTER)
		address += register_value(r, o->index) * o->scale;
	return address;
}

/* A range, and where it starts: string instructions may go down. */
static uint64_t range_of(const struct binary_registers *r, const struct binary_site *site,
			 const struct binary_operand *o, uint64_t *start)
{
	enum { DOWN = 1 << 10 };
	uint64_t size = o->size;

	*start = address_of(r, o);
	if (site->kind != BINARY_STRING)
		return size;
	size *= r->rcx;
	if (r->flags & DOWN && r->rcx)
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
	       in_window((void *)address_of(r, &site->operand[0]));
}

static void before_access(struct binary_registers *r, const struct binary_site *site)
{
	bool stores = false;

	if (site->locked) {
		if (fibers_on)
			hook_visible(site->operands ? (void *)address_of(r, &site->operand[0])
						    : NULL,
				     PERDURE_RMW | PERDURE_ASM | site->operand[0].size, &r->frame);
		if (!stores_to_pm(r, site)) /* whose hook has a fence of its own */
			hook_fence(PERDURE_RMW_FENCE, &r->frame);
	}
	for (unsigned i = 0; i < site->operands; i++) {
		const struct binary_operand *o = &site->operand[i];
		uint64_t start, size = range_of(r, site, o, &start);
		bool pm = in_window((void *)start) && size;

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

HIDDEN void binary_hit(struct binary_registers *r);

void binary_hit(struct binary_registers *r)
{
	const struct binary_site *site = &binary_sites[r->site & ~(uint64_t)BINARY_AFTER];
	int saved_errno = errno;

	r->frame.caller = (void *)r->rbp;
	r->frame.return_address = site->address + site->length;
	if (r->site & BINARY_AFTER) {
		after_access(r, site);
	} else if (site->kind == BINARY_FENCE) {
		__perdure_inline.stored = 1; /* nobody has watched ordinary memory */
		hook_fence(site->descriptor, &r->frame);
	} else if (site->kind == BINARY_PAUSE) {
		hook_visible(NULL, 0, &r->frame);
	} else if (site->kind == BINARY_REQUEST) {
		r->rdx = client_request(r->rdx, (const volatile uint64_t *)r->rax, &r->frame);
	} else if (site->kind == BINARY_FLUSH) {
		hook_flush((void *)address_of(r, &site->operand[0]), site->descriptor, &r->frame);
	} else {
		before_access(r, site);
	}
	errno = saved_errno;
}
