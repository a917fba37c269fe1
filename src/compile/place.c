/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which structure a store goes to, and where in it: what the types of address computations tell.
 * `n->inner.x = 1` is in "struct inner" and in "struct node". A copy to a whole object has no such
 * computation; there the debug information of the variable is asked, and the other computations
 * that use the same pointer.
 */
#include "compile/instrument.h"

#include <ctype.h>
#include <dwarf.h>
#include <llvm-c/DebugInfo.h>
#include <stdio.h>
#include <string.h>

enum { LEVELS = 4, NAME = 96, USES = 64, STEPS = 16 };

struct level {
	uint32_t offset;
	char name[NAME];
};

/* "struct.node.12" is "struct node"; false for types without a name. */
static bool type_name(LLVMTypeRef type, char *name)
{
	const char *text =
		LLVMGetTypeKind(type) == LLVMStructTypeKind ? LLVMGetStructName(type) : NULL;
	const char *dot = text ? strchr(text, '.') : NULL;
	size_t length;

	if (!dot || !dot[1] || strcmp(dot + 1, "anon") == 0 || strncmp(dot + 1, "anon.", 5) == 0)
		return false;
	length = snprintf(name, NAME, "%.*s %s", (int)(dot - text), text, dot + 1);
	if (length >= NAME)
		return false;
	while (length && isdigit((unsigned char)name[length - 1]))
		length--;
	if (length && name[length - 1] == '.')
		name[length - 1] = 0;
	return true;
}

static bool is_gep(LLVMValueRef value)
{
	return LLVMIsAGetElementPtrInst(value) ||
	       (LLVMIsAConstantExpr(value) && LLVMGetConstOpcode(value) == LLVMGetElementPtr);
}

/*
 * The offset that the indices behind the first one make (unknown ones count as 0), and the type of
 * what lies there.
 */
static uint64_t gep_offset(struct instrumenter *in, LLVMValueRef gep, LLVMTypeRef *end)
{
	LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
	uint64_t offset = 0;

	for (int i = 2; i < LLVMGetNumOperands(gep); i++) {
		LLVMValueRef index = LLVMGetOperand(gep, i);
		uint64_t value = LLVMIsAConstantInt(index) ? LLVMConstIntGetZExtValue(index) : 0;

		if (LLVMGetTypeKind(type) == LLVMStructTypeKind) {
			offset += LLVMOffsetOfElement(in->layout, type, value);
			type = LLVMStructGetTypeAtIndex(type, value);
		} else if (LLVMGetTypeKind(type) == LLVMArrayTypeKind) {
			type = LLVMGetElementType(type);
			offset += value * LLVMABISizeOfType(in->layout, type);
		} else {
			break;
		}
	}
	*end = type;
	return offset;
}

/* A structure that some address computation takes this pointer for. */
static bool pointee_of_uses(LLVMValueRef pointer, char *name)
{
	unsigned count = 0;

	for (LLVMUseRef use = LLVMGetFirstUse(pointer); use && count < USES;
	     use = LLVMGetNextUse(use), count++) {
		LLVMValueRef user = LLVMGetUser(use);

		if (is_gep(user) && LLVMGetOperand(user, 0) == pointer &&
		    LLVMGetNumOperands(user) > 2 &&
		    type_name(LLVMGetGEPSourceElementType(user), name))
			return true;
	}
	return false;
}

/* The same for a variable that is still in memory: all its loads give the same kind of pointer. */
static bool pointee_of_variable(LLVMValueRef load, char *name)
{
	LLVMValueRef variable = LLVMIsALoadInst(load) ? LLVMGetOperand(load, 0) : NULL;
	unsigned count = 0;

	if (!variable || !LLVMIsAAllocaInst(variable))
		return false;
	for (LLVMUseRef use = LLVMGetFirstUse(variable); use && count < USES;
	     use = LLVMGetNextUse(use), count++)
		if (LLVMIsALoadInst(LLVMGetUser(use)) && pointee_of_uses(LLVMGetUser(use), name))
			return true;
	return false;
}

/* ---- debug information: the type that a variable was declared with ---- */

static const char mark[] = "perdure.pointee";

static unsigned mark_kind(LLVMContextRef context)
{
	return LLVMGetMDKindIDInContext(context, mark, sizeof(mark) - 1);
}

/* An operand of a metadata node; null if it has not so many. */
static LLVMValueRef node_operand(LLVMValueRef node, unsigned index)
{
	LLVMValueRef operand[64];
	int count = LLVMIsAMDNode(node) ? LLVMGetMDNodeNumOperands(node) : 0;

	if (count <= (int)index || count > 64)
		return NULL;
	LLVMGetMDNodeOperands(node, operand);
	return operand[index];
}

static const char *node_text(LLVMValueRef node, unsigned index, unsigned *length)
{
	LLVMValueRef text = node_operand(node, index);

	return text && LLVMIsAMDString(text) ? LLVMGetMDString(text, length) : NULL;
}

/* The operands of a type, as LLVM numbers them. */
enum { TYPE_NAME = 2, TYPE_BASE = 3, VARIABLE_TYPE = 3 };

/* Behind const, volatile and names; the last name counts for a structure that has none. */
static bool structure_name(LLVMValueRef type, char *name)
{
	const char *text = NULL;
	unsigned length = 0;

	for (unsigned step = 0; type && step < STEPS; step++) {
		unsigned tag = LLVMGetDINodeTag(LLVMValueAsMetadata(type)), own_length;
		const char *own = node_text(type, TYPE_NAME, &own_length);
		bool structure = tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
				 tag == DW_TAG_union_type;

		if (own && own_length) {
			text = own;
			length = own_length;
		}
		if (structure) {
			while (length && memchr(text, '<', length))
				length--;
			return text && snprintf(name, NAME, "%s %.*s",
						tag == DW_TAG_union_type ? "union" : "struct",
						(int)length, text) < NAME;
		}
		if (tag != DW_TAG_typedef && tag != DW_TAG_const_type &&
		    tag != DW_TAG_volatile_type && tag != DW_TAG_restrict_type)
			return false;
		type = node_operand(type, TYPE_BASE);
	}
	return false;
}

/* The structure that a variable points to, if it is declared so. */
static bool declared_pointee(LLVMValueRef variable, char *name)
{
	LLVMValueRef type = node_operand(variable, VARIABLE_TYPE);

	while (type) {
		unsigned tag = LLVMGetDINodeTag(LLVMValueAsMetadata(type));

		if (tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
		    tag == DW_TAG_rvalue_reference_type)
			return structure_name(node_operand(type, TYPE_BASE), name);
		if (tag != DW_TAG_typedef && tag != DW_TAG_const_type &&
		    tag != DW_TAG_volatile_type && tag != DW_TAG_restrict_type)
			return false;
		type = node_operand(type, TYPE_BASE);
	}
	return false;
}

/* Marks what loads the variable: the mark stays when the variable becomes a value. */
static void mark_uses(LLVMContextRef context, LLVMValueRef pointer, LLVMValueRef text)
{
	for (LLVMUseRef use = LLVMGetFirstUse(pointer); use; use = LLVMGetNextUse(use)) {
		LLVMValueRef user = LLVMGetUser(use);
		LLVMValueRef callee = LLVMIsACallInst(user) ? LLVMGetCalledValue(user) : NULL;

		if (callee && LLVMIsAFunction(callee) && LLVMGetIntrinsicID(callee) &&
		    LLVMGetOperand(user, 0) == pointer)
			LLVMSetMetadata(user, mark_kind(context), text);
		else if (LLVMIsAStoreInst(user) && LLVMGetOperand(user, 1) == pointer)
			LLVMSetMetadata(user, mark_kind(context), text);
	}
}

static void mark_variable(LLVMContextRef context, LLVMValueRef declare)
{
	LLVMValueRef place = LLVMGetOperand(declare, 0), variable = LLVMGetOperand(declare, 1);
	LLVMValueRef slot, text;
	char name[NAME];

	/* The first operand is the variable's place, wrapped as metadata. */
	if (LLVMGetMDNodeNumOperands(place) != 1)
		return;
	LLVMGetMDNodeOperands(place, &slot);
	if (!slot || !LLVMIsAAllocaInst(slot) || !declared_pointee(variable, name))
		return;
	text = LLVMMDNodeInContext(
		context, (LLVMValueRef[]){ LLVMMDStringInContext(context, name, strlen(name)) }, 1);
	for (LLVMUseRef use = LLVMGetFirstUse(slot); use; use = LLVMGetNextUse(use))
		if (LLVMIsALoadInst(LLVMGetUser(use)))
			mark_uses(context, LLVMGetUser(use), text);
}

void place_mark(LLVMModuleRef module)
{
	LLVMContextRef context = LLVMGetModuleContext(module);
	LLVMValueRef declare;

	LLVMSetIsNewDbgInfoFormat(module, false); /* variables as instructions, which can be read */
	declare = LLVMGetNamedFunction(module, "llvm.dbg.declare");
	for (LLVMUseRef use = declare ? LLVMGetFirstUse(declare) : NULL; use;
	     use = LLVMGetNextUse(use))
		if (LLVMIsACallInst(LLVMGetUser(use)))
			mark_variable(context, LLVMGetUser(use));
}

static bool marked(LLVMValueRef instruction, char *name)
{
	LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(
		LLVMGetBasicBlockParent(LLVMGetInstructionParent(instruction))));
	LLVMValueRef node = LLVMGetMetadata(instruction, mark_kind(context));
	unsigned length;
	const char *text = node ? node_text(node, 0, &length) : NULL;

	return text && snprintf(name, NAME, "%.*s", (int)length, text) < NAME;
}

/* ---- all of it ---- */

/* The structure that the pointer leads to as a whole. */
static bool find_whole(struct instrumenter *in, LLVMValueRef instruction, LLVMValueRef pointer,
		       char *name)
{
	LLVMTypeRef type;

	if (is_gep(pointer)) {
		gep_offset(in, pointer, &type);
		if (type_name(type, name))
			return true;
	}
	return marked(instruction, name) || pointee_of_uses(pointer, name) ||
	       pointee_of_variable(pointer, name);
}

/* Innermost structure first. */
static unsigned find_levels(struct instrumenter *in, LLVMValueRef instruction, LLVMValueRef pointer,
			    struct level *level)
{
	unsigned levels = find_whole(in, instruction, pointer, level[0].name);
	uint64_t offset = 0;
	LLVMTypeRef type;

	level[0].offset = 0;
	for (unsigned step = 0; step < STEPS && is_gep(pointer) && levels < LEVELS; step++) {
		offset += gep_offset(in, pointer, &type);
		if (LLVMGetNumOperands(pointer) > 2 &&
		    type_name(LLVMGetGEPSourceElementType(pointer), level[levels].name))
			level[levels++].offset = offset;
		pointer = LLVMGetOperand(pointer, 0);
	}
	return levels;
}

/* As event.h has it: offset and name, level by level, ended by an empty name. */
static size_t encode(const struct level *level, unsigned levels, char *text)
{
	size_t used = 0;

	for (unsigned i = 0; i < levels; i++) {
		memcpy(text + used, &level[i].offset, sizeof(level[i].offset));
		used += sizeof(level[i].offset);
		used += strlen(strcpy(text + used, level[i].name)) + 1;
	}
	memset(text + used, 0, 5);
	return used + 5;
}

LLVMValueRef place_of(struct instrumenter *in, LLVMValueRef instruction, LLVMValueRef pointer)
{
	struct level level[LEVELS];
	unsigned levels = find_levels(in, instruction, pointer, level);
	char text[LEVELS * (NAME + 4) + 8], name[LEVELS * NAME + 64];
	LLVMValueRef global, content;
	size_t size, length;

	if (!levels)
		return LLVMConstNull(in->pointer);
	size = encode(level, levels, text);
	length = snprintf(name, sizeof(name), "__perdure.place");
	for (unsigned i = 0; i < levels; i++)
		length += snprintf(name + length, sizeof(name) - length, ".%u.%s", level[i].offset,
				   level[i].name);
	global = LLVMGetNamedGlobal(in->module, name);
	if (global)
		return global;
	content = LLVMConstStringInContext2(in->context, text, size, true);
	global = LLVMAddGlobal(in->module, LLVMTypeOf(content), name);
	LLVMSetInitializer(global, content);
	LLVMSetGlobalConstant(global, true);
	LLVMSetLinkage(global, LLVMPrivateLinkage);
	LLVMSetAlignment(global, 4);
	return global;
}
