/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What pointers may point to, by unification (Steensgaard): two pointers of which one may be copied
 * to the other point to the same. Sound, and nearly linear; what it merges needlessly only makes
 * the search look at more than it must. Everything that is handed to code that is not known belongs
 * to one object, which that code may store anywhere.
 */
#include <stdlib.h>
#include <string.h>

#include "steer/program.h"

/* Something that pointers point to, or a pointer; `to` is what it points to, if it is one. */
struct node {
	uint32_t parent, to;
	uint32_t first; /* functions: a list, in `link` */
	bool pm;
};

static struct node *node;
static uint32_t nodes, room;
struct link {
	long function;
	uint32_t next;
};
static struct link *link_list;
static uint32_t links;
static uint32_t unknown; /* the object of code that is not known */

struct slot {
	LLVMValueRef value;
	uint32_t node;
};
static struct slot *slots;
static size_t slots_size, slots_used;
static bool changed;

static uint32_t new_node(void)
{
	if (nodes == room) {
		room = room ? 2 * room : 4096;
		node = realloc(node, room * sizeof(*node));
		if (!node)
			abort();
	}
	node[nodes] = (struct node){ .parent = nodes };
	return nodes++;
}

static uint32_t root(uint32_t n)
{
	while (node[n].parent != n) {
		node[n].parent = node[node[n].parent].parent;
		n = node[n].parent;
	}
	return n;
}

static uint32_t pointee(uint32_t n)
{
	n = root(n);
	if (!node[n].to) {
		uint32_t to = new_node();

		node[n].to = to;
	}
	return root(node[n].to);
}

static void unify(uint32_t a, uint32_t b)
{
	while ((a = root(a)) != (b = root(b))) {
		uint32_t to_a = node[a].to, to_b = node[b].to, last;

		changed = true;
		node[b].parent = a;
		node[a].pm |= node[b].pm;
		if (!node[a].first) {
			node[a].first = node[b].first;
		} else if (node[b].first) {
			for (last = node[a].first; link_list[last].next;
			     last = link_list[last].next)
				;
			link_list[last].next = node[b].first;
		}
		node[a].to = to_a ? to_a : to_b;
		if (!to_a || !to_b)
			return;
		a = to_a;
		b = to_b;
	}
}

/* ---- values ---- */

static struct slot *slot_of(LLVMValueRef value)
{
	size_t at = ((uintptr_t)value >> 4) % slots_size;

	while (slots[at].value && slots[at].value != value)
		at = (at + 1) % slots_size;
	return &slots[at];
}

static void make_room(void)
{
	struct slot *old = slots;
	size_t old_size = slots_size;

	if (slots_used * 2 < slots_size)
		return;
	slots_size = slots_size ? 2 * slots_size : 1 << 16;
	slots = calloc(slots_size, sizeof(*slots));
	if (!slots)
		abort();
	for (size_t i = 0; i < old_size; i++)
		if (old[i].value)
			*slot_of(old[i].value) = old[i];
	free(old);
}

static const struct program *whole;

static uint32_t of(LLVMValueRef value);

static void add_function(uint32_t object, long number)
{
	link_list = realloc(link_list, (links + 1) * sizeof(*link_list));
	if (!link_list)
		abort();
	link_list[links] = (struct link){ number, node[root(object)].first };
	node[root(object)].first = links++;
}

/* What a global is made of points where its parts do. */
static void add_initial(uint32_t object, LLVMValueRef initial)
{
	if (!initial || !LLVMIsConstant(initial) || LLVMIsAConstantInt(initial))
		return;
	if (LLVMGetTypeKind(LLVMTypeOf(initial)) == LLVMPointerTypeKind)
		unify(pointee(object), pointee(of(initial)));
	for (int i = 0; i < LLVMGetNumOperands(initial); i++)
		if (LLVMIsAConstantStruct(initial) || LLVMIsAConstantArray(initial))
			add_initial(object, LLVMGetOperand(initial, (unsigned)i));
}

static bool is_shared_name(LLVMValueRef global)
{
	LLVMLinkage linkage = LLVMGetLinkage(global);

	return linkage != LLVMInternalLinkage && linkage != LLVMPrivateLinkage;
}

/* Globals of the same name are the same. */
static void join_by_name(LLVMValueRef global, uint32_t n)
{
	for (size_t m = 0; m < whole->modules && is_shared_name(global); m++) {
		LLVMValueRef other = LLVMGetNamedGlobal(whole->module[m], LLVMGetValueName(global));

		if (other && other != global && is_shared_name(other) && slot_of(other)->value)
			unify(n, slot_of(other)->node);
	}
}

static uint32_t of(LLVMValueRef value)
{
	struct slot *slot;
	uint32_t n;

	make_room();
	slot = slot_of(value);
	if (slot->value)
		return root(slot->node);
	n = new_node();
	*slot = (struct slot){ value, n };
	slots_used++;
	if (LLVMIsAFunction(value)) {
		long number = program_number(whole, value);

		if (number >= 0)
			add_function(pointee(n), number);
	} else if (LLVMIsAGlobalVariable(value)) {
		pointee(n);
		join_by_name(value, n);
		if (!LLVMIsDeclaration(value))
			add_initial(pointee(n), LLVMGetInitializer(value));
	} else if (LLVMIsAConstantExpr(value)) {
		unify(pointee(n), pointee(of(LLVMGetOperand(value, 0))));
	}
	return root(n);
}

/* ---- functions whose code is not there ---- */

static bool starts(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_among(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(*list, name) == 0)
			return true;
	return false;
}

static bool allocates(const char *name)
{
	static const char *const names[] = { "malloc", "calloc",         "realloc", "aligned_alloc",
					     "valloc", "memalign",       "strdup",  "_Znwm",
					     "_Znam",  "posix_memalign", NULL };

	return is_among(name, names);
}

/* They keep no pointer that they are given. */
static bool keeps_nothing(const char *name)
{
	static const char *const names[] = {
		"printf", "fprintf", "puts",     "fputs",     "putchar", "perror",  "free",
		"strlen", "strcmp",  "strncmp",  "memcmp",    "bcmp",    "write",   "read",
		"pread",  "pwrite",  "fread",    "fwrite",    "fgets",   "atoi",    "atol",
		"strtol", "strtoul", "exit",     "abort",     "close",   "open",    "fopen",
		"fclose", "munmap",  "msync",    "ftruncate", "_ZdlPv",  "_ZdaPv",  "fstat",
		"stat",   "unlink",  "snprintf", "sprintf",   "sscanf",  "getline", "getchar",
		"fgetc",  "feof",    "usleep",   "sleep",     "rand",    "srand",   "time",
		"clock",  NULL
	};

	return is_among(name, names) || starts(name, "__perdure") || starts(name, "pthread_") ||
	       starts(name, "llvm.") || starts(name, "pmem_persist") ||
	       starts(name, "pmem_flush") || starts(name, "pmem_drain") ||
	       starts(name, "pmemobj_persist") || starts(name, "pmemobj_flush") ||
	       starts(name, "__assert");
}

static bool copies(const char *name)
{
	return starts(name, "memcpy") || starts(name, "memmove") || starts(name, "mempcpy") ||
	       starts(name, "llvm.memcpy") || starts(name, "llvm.memmove") ||
	       starts(name, "pmem_memcpy") || starts(name, "pmem_memmove");
}

/* A mapping of a file may be PM; so is what libraries for it give out. */
static bool gives_pm(const char *name, LLVMValueRef call)
{
	if ((strcmp(name, "mmap") == 0 || strcmp(name, "mmap64") == 0) &&
	    LLVMGetNumArgOperands(call) == 6) {
		LLVMValueRef fd = LLVMGetOperand(call, 4);

		return !LLVMIsAConstantInt(fd) || LLVMConstIntGetSExtValue(fd) >= 0;
	}
	return starts(name, "pmem_map") || starts(name, "pmem2_map") || starts(name, "pmemobj_") ||
	       strcmp(name, "__perdure_root_get") == 0 || (whole->heap && allocates(name));
}

static void call_outside(LLVMValueRef call, const char *name)
{
	uint32_t result = of(call);

	if (gives_pm(name, call))
		node[pointee(result)].pm = true;
	if (copies(name) && LLVMGetNumArgOperands(call) >= 2) {
		unify(pointee(pointee(of(LLVMGetOperand(call, 0)))),
		      pointee(pointee(of(LLVMGetOperand(call, 1)))));
		unify(pointee(result), pointee(of(LLVMGetOperand(call, 0))));
		return;
	}
	if (strcmp(name, "realloc") == 0)
		unify(pointee(result), pointee(of(LLVMGetOperand(call, 0))));
	if (allocates(name) || keeps_nothing(name) || gives_pm(name, call))
		return;
	for (unsigned i = 0; i < LLVMGetNumArgOperands(call); i++) {
		LLVMValueRef argument = LLVMGetOperand(call, i);

		if (LLVMGetTypeKind(LLVMTypeOf(argument)) == LLVMPointerTypeKind)
			unify(pointee(of(argument)), unknown);
	}
	unify(pointee(result), unknown);
}

/* ---- instructions ---- */

/* Operands are the function's parameters, and its result that of the call. */
static void bind(LLVMValueRef call, LLVMValueRef function)
{
	unsigned count = LLVMGetNumArgOperands(call), wanted = LLVMCountParams(function);
	LLVMBasicBlockRef b;

	for (unsigned i = 0; i < count; i++)
		unify(pointee(of(LLVMGetOperand(call, i))),
		      pointee(i < wanted ? of(LLVMGetParam(function, i)) : of(function)));
	for (b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b)) {
		LLVMValueRef end = LLVMGetBasicBlockTerminator(b);

		if (end && LLVMIsAReturnInst(end) && LLVMGetNumOperands(end))
			unify(pointee(of(call)), pointee(of(LLVMGetOperand(end, 0))));
	}
}

static void visit_call(LLVMValueRef call)
{
	LLVMValueRef callee = LLVMGetCalledValue(call), body;

	if (LLVMIsAInlineAsm(callee))
		return;
	if (LLVMIsAFunction(callee)) {
		body = program_body(whole, callee);
		if (body)
			bind(call, body);
		else
			call_outside(call, LLVMGetValueName(callee));
		return;
	}
	for (uint32_t l = node[pointee(of(callee))].first; l; l = link_list[l].next)
		bind(call, whole->function[link_list[l].function]);
}

static void visit(LLVMValueRef i)
{
	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMLoad:
		unify(pointee(of(i)), pointee(pointee(of(LLVMGetOperand(i, 0)))));
		break;
	case LLVMStore:
		unify(pointee(pointee(of(LLVMGetOperand(i, 1)))),
		      pointee(of(LLVMGetOperand(i, 0))));
		break;
	case LLVMAtomicRMW:
	case LLVMAtomicCmpXchg:
		for (int n = 1; n < LLVMGetNumOperands(i); n++)
			unify(pointee(pointee(of(LLVMGetOperand(i, 0)))),
			      pointee(of(LLVMGetOperand(i, (unsigned)n))));
		unify(pointee(of(i)), pointee(pointee(of(LLVMGetOperand(i, 0)))));
		break;
	case LLVMAlloca:
		pointee(of(i));
		break;
	case LLVMCall:
	case LLVMInvoke:
		visit_call(i);
		break;
	case LLVMICmp:
	case LLVMFCmp:
	case LLVMBr:
	case LLVMSwitch:
	case LLVMRet:
	case LLVMFence:
		break;
	default: /* what is computed from a pointer is one to the same */
		for (int n = 0; n < LLVMGetNumOperands(i); n++) {
			LLVMValueRef operand = LLVMGetOperand(i, (unsigned)n);

			if (!LLVMValueIsBasicBlock(operand) && !LLVMIsAConstantInt(operand) &&
			    !LLVMIsUndef(operand) && !LLVMIsNull(operand))
				unify(pointee(of(i)), pointee(of(operand)));
		}
	}
}

void points_find(const struct program *program)
{
	whole = program;
	new_node(); /* 0 is none */
	links = 1;
	link_list = calloc(1, sizeof(*link_list));
	unknown = new_node();
	unify(pointee(unknown), unknown);
	do { /* functions that pointers may call come one after the other */
		changed = false;
		for (size_t f = 0; f < program->functions; f++)
			for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(program->function[f]); b;
			     b = LLVMGetNextBasicBlock(b))
				for (LLVMValueRef i = LLVMGetFirstInstruction(b); i;
				     i = LLVMGetNextInstruction(i))
					visit(i);
	} while (changed);
}

/* ---- answers ---- */

static bool is_pm(LLVMValueRef pointer)
{
	return node[pointee(of(pointer))].pm;
}

static bool assembly_changes(LLVMValueRef call)
{
	LLVMValueRef callee = LLVMGetCalledValue(call);
	size_t length;
	const char *text = LLVMGetInlineAsmAsmString(callee, &length);

	if (strstr(text, "sfence") || strstr(text, "mfence"))
		return true;
	if (!strstr(text, "clwb") && !strstr(text, "clflush") && !strstr(text, "xsaveopt") &&
	    !strstr(text, "movnt"))
		return false;
	for (unsigned i = 0; i < LLVMGetNumArgOperands(call); i++)
		if (LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(call, i))) == LLVMPointerTypeKind &&
		    is_pm(LLVMGetOperand(call, i)))
			return true;
	return false;
}

static bool call_changes(LLVMValueRef call)
{
	LLVMValueRef callee = LLVMGetCalledValue(call);
	const char *name;

	if (LLVMIsAInlineAsm(callee))
		return assembly_changes(call);
	if (!LLVMIsAFunction(callee) || program_body(whole, callee))
		return false;
	name = LLVMGetValueName(callee);
	if (starts(name, "llvm.x86.sse.sfence") || starts(name, "llvm.x86.sse2.mfence") ||
	    starts(name, "pmem_") || starts(name, "pmemobj_tx_") ||
	    starts(name, "pmemobj_persist") || starts(name, "pmemobj_mem"))
		return !starts(name, "pmem_map") && !starts(name, "pmem_is");
	if (starts(name, "llvm.x86.clflush") || starts(name, "llvm.x86.clwb") ||
	    starts(name, "llvm.x86.sse2.clflush") || starts(name, "llvm.memset") ||
	    starts(name, "memset") || starts(name, "str") || copies(name))
		return LLVMGetNumArgOperands(call) && is_pm(LLVMGetOperand(call, 0));
	return false;
}

bool points_changes_pm(LLVMValueRef i)
{
	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMStore:
		return is_pm(LLVMGetOperand(i, 1));
	case LLVMAtomicRMW:
	case LLVMAtomicCmpXchg:
		return is_pm(LLVMGetOperand(i, 0));
	case LLVMCall:
	case LLVMInvoke:
		return call_changes(i);
	default:
		return false;
	}
}

void points_each_callee(const struct program *program, LLVMValueRef call,
			void (*each)(long number, void *context), void *context)
{
	LLVMValueRef callee = LLVMGetCalledValue(call);
	long number;

	if (LLVMIsAInlineAsm(callee))
		return;
	if (LLVMIsAFunction(callee)) {
		number = program_number(program, callee);
		if (number >= 0)
			each(number, context);
		return;
	}
	for (uint32_t l = node[pointee(of(callee))].first; l; l = link_list[l].next)
		each(link_list[l].function, context);
}
