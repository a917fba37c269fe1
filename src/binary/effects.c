/* SPDX-License-Identifier: BSD-3-Clause */
#include "binary/effects.h"

#include <Zydis/Zydis.h>

#include "binary/zydis.h"

enum { RSP = 4, RBP = 5, WORD = 8 };

static bool is_stack(uint8_t number)
{
	return number == RSP || number == RBP;
}

static void describe_store(const ZydisDecodedOperand *operand, struct binary_effect *e)
{
	uint8_t base = zydis_register(operand->mem.base);

	if (!is_stack(base))
		return;
	e->stores_in_stack = true;
	e->stack_base = base;
	e->stored_at = (int32_t)operand->mem.disp.value;
	e->stored_size = operand->mem.index ? INT32_MAX : operand->size / 8;
}

static void describe_lea(const struct binary_text *text, uint32_t offset,
			 const struct zydis_decoded *d, struct binary_effect *e)
{
	const ZydisDecodedOperandMem *mem = &d->operand[1].mem;

	e->from = zydis_register(mem->base);
	e->index = zydis_register(mem->index);
	e->scale = mem->scale ? mem->scale : 1;
	e->number = (int32_t)mem->disp.value;
	e->takes_address = is_stack(e->from);
	if (mem->base == ZYDIS_REGISTER_RIP) {
		e->has_table = true;
		e->table = (int32_t)(offset + d->is.length + mem->disp.value);
		return;
	}
	(void)text;
	e->kind = BINARY_FORMS;
}

static void describe_mov(const struct zydis_decoded *d, struct binary_effect *e)
{
	const ZydisDecodedOperand *from = &d->operand[1];

	if (from->type == ZYDIS_OPERAND_TYPE_REGISTER) {
		e->from = zydis_register(from->reg.value);
		e->kind = e->from == BINARY_NO_REGISTER ? BINARY_OTHER : BINARY_COPIES;
	} else if (from->type == ZYDIS_OPERAND_TYPE_MEMORY && !from->mem.index &&
		   is_stack(zydis_register(from->mem.base)) &&
		   from->mem.segment != ZYDIS_REGISTER_FS &&
		   from->mem.segment != ZYDIS_REGISTER_GS) {
		e->from = zydis_register(from->mem.base);
		e->number = (int32_t)from->mem.disp.value;
		e->kind = BINARY_RELOADS;
	}
}

static void describe_arithmetic(const struct zydis_decoded *d, struct binary_effect *e)
{
	const ZydisDecodedOperand *from = &d->operand[1];
	bool number = d->is.operand_count > 1 && from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;

	switch (d->is.mnemonic) {
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		if (!number)
			return;
		e->kind = BINARY_ADDS;
		e->number = (int32_t)(d->is.mnemonic == ZYDIS_MNEMONIC_ADD ? from->imm.value.s
									   : -from->imm.value.s);
		break;
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
		e->kind = BINARY_ADDS;
		e->number = d->is.mnemonic == ZYDIS_MNEMONIC_INC ? 1 : -1;
		break;
	case ZYDIS_MNEMONIC_SHL:
		if (!number)
			return;
		e->kind = BINARY_SHIFTS;
		e->number = (int32_t)from->imm.value.u;
		break;
	default:
		break;
	}
}

static void describe_stack(const struct zydis_decoded *d, struct binary_effect *e)
{
	const ZydisDecodedOperand *to = &d->operand[0];

	switch (d->is.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		e->stack_change = -WORD;
		break;
	case ZYDIS_MNEMONIC_POP:
		e->stack_change = WORD;
		break;
	default:
		if (d->is.operand_count && to->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    to->reg.value == ZYDIS_REGISTER_RSP && e->kind == BINARY_ADDS)
			e->stack_change = e->number;
		else if (e->written >> RSP & 1 && !e->calls)
			e->moves_stack = true;
	}
}

static void describe_goal(const struct binary_text *text, uint32_t offset,
			  const struct zydis_decoded *d, struct binary_effect *e)
{
	const ZydisDecodedOperand *to = &d->operand[0];
	uintptr_t next = text->start + offset + d->is.length;

	if (to->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && to->imm.is_relative)
		e->goal = next + (uintptr_t)to->imm.value.s;
	else if (to->type == ZYDIS_OPERAND_TYPE_MEMORY && to->mem.base == ZYDIS_REGISTER_RIP)
		e->slot = next + (uintptr_t)to->mem.disp.value;
	e->jumps_anywhere = !e->goal;
}

bool binary_effect_of(const struct binary_text *text, uint32_t offset, struct binary_effect *e)
{
	struct zydis_decoded d;
	const ZydisDecodedOperand *to = &d.operand[0];
	bool whole;

	*e = (struct binary_effect){ .from = BINARY_NO_REGISTER, .index = BINARY_NO_REGISTER };
	if (!zydis_decode(text, offset, &d))
		return false;
	for (unsigned i = 0; i < d.is.operand_count; i++) {
		const ZydisDecodedOperand *operand = &d.operand[i];
		bool writes = operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;

		if (writes && operand->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			uint8_t number = zydis_any_register(operand->reg.value, &whole);

			if (number != BINARY_NO_REGISTER)
				e->written |= 1u << number;
		}
		if (writes && operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    operand->visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN)
			describe_store(operand, e);
	}
	e->calls = d.is.meta.category == ZYDIS_CATEGORY_CALL;
	if (e->calls || d.is.meta.category == ZYDIS_CATEGORY_UNCOND_BR)
		describe_goal(text, offset, &d, e);
	e->to = d.is.operand_count && to->type == ZYDIS_OPERAND_TYPE_REGISTER
			? zydis_register(to->reg.value)
			: BINARY_NO_REGISTER;
	if (e->to != BINARY_NO_REGISTER && to->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) {
		if (d.is.mnemonic == ZYDIS_MNEMONIC_LEA)
			describe_lea(text, offset, &d, e);
		else if (d.is.mnemonic == ZYDIS_MNEMONIC_MOV)
			describe_mov(&d, e);
		else
			describe_arithmetic(&d, e);
	}
	describe_stack(&d, e);
	return true;
}

uintptr_t binary_stub_slot(uintptr_t address)
{
	struct zydis_decoded d;
	uintptr_t at = address;

	/* endbr64 and a bnd prefix may come first. */
	for (unsigned i = 0; i < 2; i++) {
		if (!zydis_decode_at(at, &d))
			return 0;
		if (d.is.mnemonic != ZYDIS_MNEMONIC_ENDBR64)
			break;
		at += d.is.length;
	}
	if (d.is.mnemonic != ZYDIS_MNEMONIC_JMP || d.operand[0].type != ZYDIS_OPERAND_TYPE_MEMORY ||
	    d.operand[0].mem.base != ZYDIS_REGISTER_RIP)
		return 0;
	return at + d.is.length + (uintptr_t)d.operand[0].mem.disp.value;
}
