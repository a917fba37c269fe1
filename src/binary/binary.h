/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Code that was not built with perdure-cc: patched when it is loaded, so that its accesses to PM,
 * its flushes and its fences reach the same hooks as those of instrumented code.
 *
 *   decode.c         instructions of an object, and which of them matter: sites
 *   liveness.c       which registers nobody needs
 *   plan.c           what is known of objects that were decoded before
 *   effects.c        what instructions do to registers
 *   flow.c, starts.c where regions around accesses to PM may start
 *   emit.c           copies of instructions, with a question before each site: is this PM?
 *   pieces.c         … and what each piece of that stands for
 *   space.c          room for copies, where a jump can reach it
 *   tactics.c        how a jump gets into the program and disturbs nothing else
 *   entry.S          where it comes to if it is PM
 *   quick.c          … if that is soon said
 *   hit.c            … and all the rest
 *   lanes.c          instructions that touch some elements of many
 *   objects.c        which objects, and when
 *
 * Runs before the program's main, or in dlopen: nothing here uses malloc.
 */
#ifndef BINARY_BINARY_H
#define BINARY_BINARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>

#include "runtime/runtime.h"

enum { BINARY_LONGEST = 15, BINARY_NO_REGISTER = 255, BINARY_OPERANDS = 2 };

/* ---- sites ---- */

enum binary_kind {
	BINARY_ACCESS,
	BINARY_STRING, /* with a repeat prefix: as many as rcx says */
	BINARY_LANES,
	BINARY_STATE,         /* xsave, xrstor */
	BINARY_COMPACT_STATE, /* xsavec, xsaves, xrstors */
	BINARY_FLUSH,
	BINARY_FENCE,
	BINARY_PAUSE,   /* it waits for another thread */
	BINARY_NAMED,   /* --acquire, --release: a function is called or returns */
	BINARY_START,   /* a region starts: races.h */
	BINARY_REQUEST, /* to Valgrind, about PM */
	BINARY_SYSCALL, /* not through the C library */
};

enum binary_action { BINARY_LOADS = 1, BINARY_STORES = 2 };

/* A memory operand; registers by their numbers in the encoding. */
struct binary_operand {
	uint8_t base, index, scale, actions;
	int32_t displacement;
	uint32_t size;
	bool in_stack; /* BINARY_START: the base is what lies in the stack, behind that register */
	int32_t slot;
};

/* Which elements an instruction touches; registers by their numbers. */
struct binary_lanes {
	uint8_t count, element; /* count 0: it is none of these instructions */
	uint8_t mask;           /* or BINARY_NO_REGISTER: all of them */
	bool vector_mask;       /* the highest bits of a vector's elements, not a mask register */
	bool compressed;        /* as many as there are, one behind the other */
	uint8_t index, index_size,
		scale; /* each at an index of its own; size 0: they are in a row */
};

/* A static variable that an instruction touches; size 0: it touches none. */
struct binary_variable {
	int32_t displacement;
	bool relative; /* to the next instruction */
	uint8_t actions;
	uint32_t size;
};

struct binary_site {
	uintptr_t address;
	uint8_t length, kind, operands;
	uint8_t bit; /* bt and its like: the register that says which bit; or BINARY_NO_REGISTER */
	uint8_t string; /* enum binary_string */
	uint8_t deed;   /* enum binary_deed */
	uint8_t source; /* of a deed: a register, BINARY_HIGH | one, BINARY_IMMEDIATE */
	int32_t immediate;
	bool keeps_carry;    /* inc and dec */
	bool locked;         /* a fence, wherever the operand is */
	bool if_equal;       /* stores only if the zero flag says so afterwards */
	uint32_t descriptor; /* of event.h: flags, or the kind of a flush or fence */
	uint32_t known;      /* enum races_learned */
	struct binary_operand operand[BINARY_OPERANDS];
	struct binary_lanes lanes;
	uint16_t dead;   /* registers that nobody reads from here on before they are overwritten */
	bool flags_dead; /* the same of the flags */
	struct binary_variable variable;
	uintptr_t access; /* BINARY_START: behind the instruction that it is about */
	uint32_t next;    /* … the next one that starts there, or BINARY_NO_SITE */
};

enum { BINARY_HIGH = 32, BINARY_IMMEDIATE = 64 };

/* What a hook can do in place of the instruction. */
enum binary_deed {
	BINARY_NO_DEED,
	BINARY_MOVE,
	BINARY_SWAP,    /* xchg */
	BINARY_COMPARE, /* lock cmpxchg */
	BINARY_ADD,     /* lock xadd */
	BINARY_PLUS,    /* the others with lock: add, inc, … */
	BINARY_MINUS,
	BINARY_AND,
	BINARY_OR,
	BINARY_XOR,
};

/* String instructions that may end early. */
enum binary_string { BINARY_ALL, BINARY_WHILE_EQUAL, BINARY_WHILE_DIFFERENT };

#define BINARY_NO_SITE UINT32_MAX
enum { BINARY_SITES_MAX = 1 << 22 };
extern HIDDEN struct binary_site *binary_sites;
extern HIDDEN uint32_t binary_site_count;

/* ---- one object's code ---- */

/* How an instruction can be moved. */
enum binary_move { BINARY_STAYS, BINARY_AS_IT_IS, BINARY_RELATIVE, BINARY_BRANCH, BINARY_CALL };

/* Positions are counted from the start of the text: what is found out about it is kept. */
struct binary_instruction {
	uint32_t offset;
	uint32_t site;          /* or BINARY_NO_SITE */
	uint32_t start;         /* the first region that starts there, or BINARY_NO_SITE */
	int32_t goal;           /* of a branch, a call, or a relative operand */
	uint16_t reads, writes; /* general registers, one bit each */
	uint8_t length;
	uint8_t how;             /* enum binary_move */
	uint8_t opcode;          /* of a conditional branch */
	uint8_t displacement_at; /* of a relative operand, in the instruction */
	bool bad : 1;            /* not understood */
	bool target : 1;         /* something is known to jump here */
	bool done : 1;           /* is somewhere else now */
	bool leaves : 1;         /* what follows is not reached from here */
	bool calls : 1;          /* what follows is a return address */
	bool conditional : 1;
	bool ends : 1; /* a call, a return, the kernel: who knows what they read */
	bool tests_flags : 1, sets_flags : 1; /* all of them */
};

struct binary_text {
	uintptr_t start;
	uint32_t size;
	uint32_t padding; /* bytes behind it that nobody uses */
	uint8_t *code;    /* as it was */
	uint8_t *result;  /* as it will be */
	uint8_t *taken;   /* bytes of the result that must stay */
	struct binary_instruction *list;
	uint32_t count;
	uint32_t *at; /* offset to number + 1 of the instruction that starts there; 0: none does */
};

/* Whose code it is. */
struct binary_object {
	const char *path; /* empty for the program */
	uintptr_t bias;
	const uint8_t *id; /* build-id */
	unsigned id_size;
};

/* What became of the sites. */
struct binary_counts {
	uint32_t sites, patched;
	uint32_t left, unknown; /* no room for a jump; operands that are not understood */
};
extern HIDDEN struct binary_counts binary_counts;

/* False if the disassembler is not there. */
HIDDEN bool binary_decoder_start(void);
/* Fills in list and at, for which there is room, and adds the sites. */
HIDDEN void binary_decode(struct binary_text *text);
/* Of the instruction at this address; 0 if there is none. */
HIDDEN unsigned binary_length(uintptr_t address);

/* ---- plan.c ---- */

/* The same from what is known of the object; false if there is nothing. */
HIDDEN bool binary_plan_load(const struct binary_object *object, struct binary_text *text);
/* Is there a plan, and does it say that the code leaves system calls to the C library? */
HIDDEN bool binary_plan_is_calm(const struct binary_object *object, const struct binary_text *text);
/* Keeps it. The sites are those from this one on. */
HIDDEN void binary_plan_save(const struct binary_object *object, const struct binary_text *text,
			     uint32_t first_site, uint32_t unknown);

/* ---- liveness.c ---- */

/* For each site: what is dead there. */
HIDDEN void binary_find_dead(const struct binary_text *text);

/* ---- starts.c ---- */

/* What a pointer to a function, filled in by the dynamic linker, is called; or null. */
typedef const char *binary_name_function(const void *context, uintptr_t slot);
/* Adds sites where regions of accesses to PM may start. */
HIDDEN void binary_find_starts(struct binary_text *text, binary_name_function *name_of,
			       const void *context);

/* Adds sites for functions that the user has named. */
HIDDEN void binary_find_named(struct binary_text *text, uintptr_t bias, const char *path);

/* ---- emit.c ---- */

enum { BINARY_GROUP = 8 };

/*
 * Moves `count` instructions; inner[i] is where the i-th one is. What follows them is copied as far
 * as that saves jumps. 0 if it cannot be done.
 */
HIDDEN uintptr_t binary_emit(const struct binary_text *text, uint32_t first, unsigned count,
			     uintptr_t inner[BINARY_GROUP]);

/* ---- pieces.c ---- */

enum { BINARY_BODY = 8192 }; /* no body is larger */

/* What lies on the stack besides the program's own. */
enum binary_stack {
	BINARY_AS_IT_WAS,
	BINARY_LOWERED, /* below the red zone */
	BINARY_RCX_PUSHED,
	BINARY_FLAGS_PUSHED, /* and rcx */
	BINARY_RDI_KEPT,     /* lowered, and rdi may be something else */
	BINARY_SITE_PUSHED,
	BINARY_SITE_PUSHED_RDI_KEPT,
	BINARY_RETURN_PUSHED, /* the return address of a call, no red zone */
};

/* From here on moved code stands for this, and the stack is so; `copy`: it is the instruction. */
HIDDEN void binary_note_piece(uintptr_t at, uintptr_t original, enum binary_stack stack, bool copy);
/* A jump out of it, which ends here. */
HIDDEN void binary_note_way_out(uintptr_t end, uintptr_t goal);
/* What was emitted last was for nothing. */
HIDDEN void binary_discard(uintptr_t body);
/* Everything is moved that will be: ways out lead to moved code where they can. */
HIDDEN void binary_shorten_ways(void);
/* What an address in moved code stands for; itself, if it is none. */
HIDDEN uintptr_t binary_original(uintptr_t address);
/* The same, and the stack there; false if it is no moved code. */
HIDDEN bool binary_look_up(uintptr_t address, uintptr_t *original, enum binary_stack *stack);

/* ---- space.c ---- */

/* Zeroed memory, of which only what is touched is used; null if there is none. */
HIDDEN void *binary_room(size_t size);
/* The same for what will be used everywhere, never to be given back: in large pages, if there are.
 */
HIDDEN void *binary_dense_room(size_t size);
HIDDEN void binary_release(void *memory, size_t size);

/* Room for code within reach of `near`, to be given back in reverse order; 0 if there is none. */
HIDDEN uint8_t *binary_allocate(uintptr_t near, size_t size);
HIDDEN bool binary_is_copy(uintptr_t address);
/* Is it the jump to the entry? */
HIDDEN bool binary_is_way_in(uintptr_t address);
/* From this address on. */
HIDDEN void binary_give_back(uint8_t *code);
/* Where a jump of the code that ends at `code` finds the entry for hits, or for brief ones. */
HIDDEN uintptr_t binary_entry_near(uintptr_t code, bool brief);

/* Which values each byte of a distance may have; a count of 0 stands for any. */
struct binary_bytes {
	uint16_t count;
	uint8_t value[32];
};
/* Five bytes for a jump, at such a distance behind `next`; 0 if there is no such place. */
HIDDEN uintptr_t binary_place_jump(uintptr_t next, const struct binary_bytes wanted[4],
				   uintptr_t goal);
/* Where such a jump leads to; any other address is what it is. */
HIDDEN uintptr_t binary_past_jump(uintptr_t address);
/* Makes everything executable that was written. */
HIDDEN void binary_seal(void);

/* ---- tactics.c ---- */

HIDDEN void binary_patch(struct binary_text *text);
/* Where an instruction that was moved is now; 0 if it was not. */
HIDDEN uintptr_t binary_moved_to(uintptr_t address);

/* ---- entry.S, quick.c, hit.c ---- */

/* What the entry keeps, from the stack up; the last two are the trampoline's. */
struct binary_registers {
	struct frame frame; /* as hooks want it */
	uint64_t r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rcx, rax;
	uint64_t flags, back, site;
};
/* With the number of a site: it has been executed; it may be told briefly. */
#define BINARY_AFTER (1u << 30)
#define BINARY_BRIEF (1u << 29)
#define BINARY_NUMBER (BINARY_BRIEF - 1)
enum { BINARY_RED_ZONE = 128 };

/* The entry for accesses that may be told briefly; what it keeps. rdi is in binary_kept_rdi. */
struct binary_brief {
	uint64_t rbp, rsi, flags, rax, back, site;
};
extern HIDDEN __thread uint64_t binary_kept_rdi __attribute__((tls_model("initial-exec")));
HIDDEN void binary_brief(void);
HIDDEN void binary_brief_saved(void); /* from here on signals wait, to `restores` */
HIDDEN void binary_brief_restores(void);
HIDDEN void binary_brief_flags(void);
HIDDEN void binary_brief_end(void);

/* Up to `saved` registers are pushed; rbx has them from there to `restores`, where they are popped.
 */
HIDDEN void binary_entry(void);
HIDDEN void binary_entry_saved(void);
HIDDEN void binary_entry_restores(void);
HIDDEN void binary_entry_flags(void);  /* all but rax and the flags have been popped */
HIDDEN void binary_entry_leaves(void); /* everything has; behind it is another way to do the rest */
HIDDEN void binary_entry_end(void);
extern HIDDEN uint64_t binary_state_mask;
extern HIDDEN uint64_t binary_state_size;
extern HIDDEN uint8_t binary_saves_compactly; /* xsavec leaves out what is not in use */
HIDDEN void binary_entry_start(void);

/* ---- peek.S ---- */

/* What lies there, up to eight bytes; 0 if nothing does and the program handles that. */
HIDDEN uint64_t binary_peek(const void *p, uint64_t size);
HIDDEN void binary_peek_fails(void);

/* ---- lanes.c ---- */

enum { BINARY_PARTS = 64 };
struct binary_parts {
	unsigned count;
	struct binary_part {
		uint64_t address, size;
	} part[BINARY_PARTS];
};
/* `state`: vector registers as xsave or xsavec have kept them. */
HIDDEN void binary_list_lanes(const struct binary_lanes *lanes, uint64_t address,
			      const unsigned char *state, struct binary_parts *parts);
HIDDEN void binary_list_state(uint64_t address, uint64_t wanted, bool compact,
			      struct binary_parts *parts);

/* The program's registers at the hit that is under way in this thread; null if none is. */
extern HIDDEN __thread struct binary_registers *binary_hit_registers
	__attribute__((tls_model("initial-exec")));
/* One access to one place, and nothing else? */
HIDDEN bool binary_is_simple(const struct binary_site *site);
/* False: there is more to do than can be done without vectors; see hit.c. */
HIDDEN bool binary_quick(struct binary_registers *r);
/* What a hit has to tell. */
HIDDEN void binary_tell(struct binary_registers *r, const struct binary_site *site);
/* It has been told, only signals are left to deliver. */
extern HIDDEN __thread bool binary_told __attribute__((tls_model("initial-exec")));
/* The hit was left by a jump. */
HIDDEN void binary_abandon(void);

/* ---- signals.c ---- */

HIDDEN void binary_signals_start(void);
/* pthread_sigmask, but traps are never blocked: it only looks so. */
HIDDEN int binary_set_mask(int how, const sigset_t *set, sigset_t *old);
/* How many signals wait for the end of this thread's hit. */
extern HIDDEN __thread unsigned binary_waiting __attribute__((tls_model("initial-exec")));
HIDDEN void binary_stop_delivering(void);
/* Signals that came during a hit, which is over. */
HIDDEN void binary_deliver(void);

/* ---- objects.c ---- */

/* A trap: if it was a jump to an instruction that has been moved, lets it go on there. */
HIDDEN bool binary_redirect(int number, void *context);
/* Does the address lie in an object that was patched? */
HIDDEN bool binary_is_patched(uintptr_t address);
/* Patches what is loaded, at once or when it is needed. */
HIDDEN void binary_start(void);
/* Code has to look for PM at this address, too: false if it is too late for that. */
HIDDEN bool binary_ask_also(uintptr_t address);
/* Which part of memory that is, or PERDURE_WINDOW_INDEX. */
extern HIDDEN uint8_t binary_second_window;
/* There is going to be PM. */
HIDDEN void binary_needed(void);
/* From now on code runs that cannot be changed. */
HIDDEN void binary_thread_starts(void);
/* Libraries have come. */
HIDDEN void binary_update(void);
/* Something was unloaded: what comes next may lie where it was. */
HIDDEN void binary_unloaded(void);

#endif
