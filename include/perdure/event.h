/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The event ABI: what a front-end tells the runtime about one access to memory.
 *
 * perdure-cc emits calls to the hooks named at the end of this file; the binary front-end and the
 * library models call the same ones. Code built against one ABI version runs only with a runtime
 * of that version: the version is in the note that every instrumented object carries.
 */
#ifndef PERDURE_EVENT_H
#define PERDURE_EVENT_H

#define PERDURE_ABI_VERSION 3
#define PERDURE_NOTE_NAME "Perdure"
#define PERDURE_NOTE_TYPE 1

/* All persistent memory lies in the one 1 TiB window whose addresses have this upper part. */
#define PERDURE_WINDOW_SHIFT 40
#define PERDURE_WINDOW_INDEX 0x20

#define PERDURE_LINE_SIZE 64

/* An access descriptor: size in the low half, these flags and the C11 memory order above it. */
#define PERDURE_SIZE_MASK 0xffffu
enum perdure_access_flag {
	PERDURE_ATOMIC = 1 << 16,      /* a source-level atomic access */
	PERDURE_VOLATILE = 1 << 17,    /* through a volatile lvalue */
	PERDURE_NONTEMPORAL = 1 << 18, /* bypasses the cache, needs a fence and no flush */
	PERDURE_RMW = 1 << 19,         /* locked read-modify-write: a full fence as well */
	PERDURE_BULK = 1 << 20,        /* memcpy, memset, struct copy, a system call */
	PERDURE_ASM = 1 << 21,         /* inside inline assembly */
	PERDURE_IF_CHANGED = 1 << 22, /* a compare-and-swap in assembly: a store if bytes changed */
	PERDURE_READ = 1 << 23,       /* __perdure_lanes only: they are loaded */
	PERDURE_STORES = 1 << 23,     /* __perdure_visible: it is a store; RMW: it loads nothing */
	PERDURE_ORDER_SHIFT = 24,     /* enum perdure_order, three bits */
};

/*
 * Above the descriptor of loads, stores, flushes and fences, in 32 more bits: which chain of
 * code without other stores it is in, and how many stores of this chain came before that may be to
 * PM. If the runtime has heard of all of these, nothing else was stored in between. 0: that is not
 * known.
 */
#define PERDURE_CHAIN_SHIFT 32
#define PERDURE_CHAIN_STORES 31u /* of the 32 bits; the others are the chain's own */

enum perdure_order {
	PERDURE_ORDER_NONE,
	PERDURE_ORDER_RELAXED,
	PERDURE_ORDER_ACQUIRE,
	PERDURE_ORDER_RELEASE,
	PERDURE_ORDER_ACQ_REL,
	PERDURE_ORDER_SEQ_CST,
};

enum perdure_flush {
	PERDURE_CLFLUSH = 1, /* ordered by itself */
	PERDURE_CLFLUSHOPT,  /* needs a fence of the same thread */
	PERDURE_CLWB,        /* the same as clflushopt as far as persistency goes */
};

enum perdure_fence {
	PERDURE_SFENCE = 1,
	PERDURE_MFENCE,
	PERDURE_LFENCE,    /* orders no store: seen, without effect */
	PERDURE_RMW_FENCE, /* a locked instruction anywhere in memory, or a pthread call */
	PERDURE_THREAD_FENCE_ACQUIRE, /* compiler-level fences: no instruction, no effect on PM */
	PERDURE_THREAD_FENCE_RELEASE,
};

/*
 * Hooks that perdure-cc calls (declared here for the reader; the calling convention is LLVM's
 * preserve_most, so they are not callable from ordinary C):
 *
 *   __perdure_load(p, descriptor)                    before the program's own load
 *   __perdure_store(p, value, descriptor, place)     instead of a store of 1, 2, 4 or 8 bytes
 *   __perdure_write_begin(p, size, descriptor)       before any other instruction that stores …
 *   __perdure_write_end(p, size, descriptor, done, place)
 *                                                    … and after it; done is 0 for a failed CAS
 *   __perdure_lanes(p, element, mask, flags)         vector lanes under a mask, or a range
 *   __perdure_flush(p, kind)                         instead of the flush
 *   __perdure_fence(kind)                            before the fence
 *   __perdure_unknown(text, p)                       before an instruction nobody understands
 *   __perdure_visible(p, descriptor)                 before an atomic or volatile access to any
 *                                                    memory; p is null for assembly that locks or
 *                                                    clobbers memory, and both are 0 for a pause
 *
 * Ordinary C functions: __perdure_memcpy, __perdure_memmove, __perdure_memset, with a place as
 * fourth argument; __perdure_rdtsc in place of the instruction.
 *
 * A place says which structures the target lies in, innermost first: for each a 32-bit offset and a
 * name ("struct node"), ended by an offset with an empty name. Null if that is not known.
 *
 * Functions start with a 5-byte nop (behind an endbr64), where the runtime can put a jump.
 * Inline code also touches the thread-local __perdure_inline: see struct below.
 */
struct perdure_inline {
	unsigned char stored;  /* set by any store outside the stack since the last fence */
	unsigned char pending; /* this thread has flushes or non-temporal stores to complete */
	unsigned char fibers;  /* this thread must say when others could see what it does */
};

#endif
