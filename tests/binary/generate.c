/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes assembly of random instructions: generate COUNT SEED. Each snippet starts with registers
 * of its own, among them addresses in ordinary memory and in PM, executes one to three
 * instructions, and is left by a jump. Instructions come from random bytes, as far as a program may
 * execute them without losing its stack or its thread; addresses relative to the code get a place
 * to go to.
 */
#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 15, REGISTERS = 16, RSP = 4, MIDDLE = 2048 };

static uint64_t state;

static uint64_t number(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1dull >> 16;
}

struct instruction {
	ZydisDecodedInstruction is;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
	uint8_t bytes[LONGEST];
};

static ZydisDecoder decoder;

static bool is_stack(ZydisRegister r)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r) ==
	       ZYDIS_REGISTER_RSP;
}

/* What would end the test, or gives another result each time. */
static bool is_harmful(const struct instruction *i)
{
	switch (i->is.meta.category) {
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSTEM:
	case ZYDIS_CATEGORY_SEGOP:
	case ZYDIS_CATEGORY_IO:
	case ZYDIS_CATEGORY_IOSTRINGOP:
	case ZYDIS_CATEGORY_RDRAND:
	case ZYDIS_CATEGORY_RDSEED:
	case ZYDIS_CATEGORY_RDWRFSGS:
	case ZYDIS_CATEGORY_RDPID:
	case ZYDIS_CATEGORY_XSAVE:
	case ZYDIS_CATEGORY_XSAVEOPT:
	case ZYDIS_CATEGORY_PKU:
	case ZYDIS_CATEGORY_VTX:
	case ZYDIS_CATEGORY_SGX:
	case ZYDIS_CATEGORY_MPX:
	case ZYDIS_CATEGORY_CET:
	case ZYDIS_CATEGORY_AMX_TILE:
	case ZYDIS_CATEGORY_PADLOCK:
	case ZYDIS_CATEGORY_KEYLOCKER:
	case ZYDIS_CATEGORY_UINTR:
	case ZYDIS_CATEGORY_ENQCMD:
	case ZYDIS_CATEGORY_X87_ALU:
		return true;
	default:
		break;
	}
	switch (i->is.mnemonic) {
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFQ:
	case ZYDIS_MNEMONIC_STD:
	case ZYDIS_MNEMONIC_STI:
	case ZYDIS_MNEMONIC_CLI:
	case ZYDIS_MNEMONIC_LDMXCSR:
	case ZYDIS_MNEMONIC_VLDMXCSR:
	case ZYDIS_MNEMONIC_STMXCSR:
	case ZYDIS_MNEMONIC_VSTMXCSR:
	case ZYDIS_MNEMONIC_FXRSTOR:
	case ZYDIS_MNEMONIC_FXRSTOR64:
	case ZYDIS_MNEMONIC_FXSAVE:
	case ZYDIS_MNEMONIC_FXSAVE64:
	case ZYDIS_MNEMONIC_CPUID:
	case ZYDIS_MNEMONIC_RDTSC:
	case ZYDIS_MNEMONIC_RDTSCP:
	case ZYDIS_MNEMONIC_XGETBV:
	case ZYDIS_MNEMONIC_UMWAIT:
	case ZYDIS_MNEMONIC_TPAUSE:
	case ZYDIS_MNEMONIC_XLAT:
	case ZYDIS_MNEMONIC_MOVDIR64B:
	case ZYDIS_MNEMONIC_MASKMOVQ:
	case ZYDIS_MNEMONIC_BSWAP: /* makes addresses of others' memory */
		return true;
	default:
		return i->is.meta.isa_set == ZYDIS_ISA_SET_RTM;
	}
}

static bool is_usable(const struct instruction *i)
{
	if (is_harmful(i) || i->is.address_width != 64)
		return false;
	for (unsigned k = 0; k < i->is.operand_count; k++) {
		const ZydisDecodedOperand *o = &i->operand[k];

		if (o->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (is_stack(o->reg.value) ||
		     ZydisRegisterGetClass(o->reg.value) == ZYDIS_REGCLASS_SEGMENT))
			return false;
		if (o->type != ZYDIS_OPERAND_TYPE_MEMORY)
			continue;
		if (o->mem.segment == ZYDIS_REGISTER_FS || o->mem.segment == ZYDIS_REGISTER_GS ||
		    (o->mem.base && is_stack(o->mem.base)) || o->mem.base == ZYDIS_REGISTER_NONE)
			return false;
	}
	return true;
}

static void generate_one(struct instruction *i)
{
	static const uint8_t starts[][3] = { { 0 },          { 0x0f },       { 0xf0 },
					     { 0xf3 },       { 0xf2 },       { 0x66 },
					     { 0x66, 0x0f }, { 0x48 },       { 0x48, 0x0f },
					     { 0xc5 },       { 0xc4, 0xe2 }, { 0x62, 0xf1 },
					     { 0x62, 0xf2 }, { 0xf3, 0x48 }, { 0xf0, 0x48, 0x0f } };

	for (;;) {
		const uint8_t *start = starts[number() % (sizeof(starts) / sizeof(*starts))];

		for (unsigned k = 0; k < LONGEST; k++)
			i->bytes[k] = k < 3 && start[k] ? start[k] : number();
		if (ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, i->bytes, LONGEST, &i->is,
							i->operand)) &&
		    is_usable(i))
			return;
	}
}

/* A displacement of four bytes stays near; the place that a relative one leads to has a name. */
static void write_instruction(const struct instruction *i)
{
	unsigned at = i->is.raw.disp.offset;
	bool relative = i->is.attributes & ZYDIS_ATTRIB_IS_RELATIVE && i->is.raw.disp.size == 32;

	for (unsigned k = 0; k < i->is.length; k++) {
		if (at && i->is.raw.disp.size == 32 && k == at) {
			if (relative)
				printf("\t.long static_memory + %lu - (. + %u)\n",
				       MIDDLE + number() % 256, i->is.length - k);
			else
				printf("\t.long %ld\n", (long)(number() % 512) - 256);
			k += 3;
		} else {
			printf("\t.byte %u\n", i->bytes[k]);
		}
	}
}

static int number_of(ZydisRegister r)
{
	return r >= ZYDIS_REGISTER_RAX && r <= ZYDIS_REGISTER_R15 ? (int)(r - ZYDIS_REGISTER_RAX)
								  : -1;
}

/* No sums of addresses, no other changes, and none as the length of a string: there may be
 * anything. */
static bool adds_addresses(const struct instruction *list, unsigned count)
{
	unsigned bases = 0, indices = 0, counts = 0, written = 0;

	for (unsigned n = 0; n < count; n++)
		for (unsigned k = 0; k < list[n].is.operand_count; k++) {
			const ZydisDecodedOperandMem *mem = &list[n].operand[k].mem;

			if (list[n].is.meta.category == ZYDIS_CATEGORY_STRINGOP)
				counts = 1u << 1;
			if (list[n].operand[k].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			    list[n].operand[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) {
				int r = number_of(ZydisRegisterGetLargestEnclosing(
					ZYDIS_MACHINE_MODE_LONG_64, list[n].operand[k].reg.value));

				written |= r < 0 ? 0 : 1u << r;
			}
			if (list[n].operand[k].type != ZYDIS_OPERAND_TYPE_MEMORY)
				continue;
			bases |= number_of(mem->base) < 0 ? 0 : 1u << number_of(mem->base);
			indices |= number_of(mem->index) < 0 ? 0 : 1u << number_of(mem->index);
		}
	return bases & (indices | counts | written);
}

/* Registers that are part of addresses, and how. */
static void choose_registers(const struct instruction *list, unsigned count, bool pm)
{
	const char *base[REGISTERS] = { 0 };
	bool index[REGISTERS] = { false };

	for (unsigned n = 0; n < count; n++)
		for (unsigned k = 0; k < list[n].is.operand_count; k++) {
			const ZydisDecodedOperandMem *mem = &list[n].operand[k].mem;

			/* bts and its like address bits, far away */
			if (list[n].operand[k].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			    list[n].is.meta.category == ZYDIS_CATEGORY_BITBYTE) {
				int r = ZydisRegisterGetLargestEnclosing(
						ZYDIS_MACHINE_MODE_LONG_64,
						list[n].operand[k].reg.value) -
					ZYDIS_REGISTER_RAX;

				if (r >= 0 && r < REGISTERS)
					index[r] = true;
			}
			if (list[n].operand[k].type != ZYDIS_OPERAND_TYPE_MEMORY)
				continue;
			if (mem->base >= ZYDIS_REGISTER_RAX && mem->base <= ZYDIS_REGISTER_R15)
				base[mem->base - ZYDIS_REGISTER_RAX] =
					pm ? "0x200000000000" : "static_memory";
			if (mem->index >= ZYDIS_REGISTER_RAX && mem->index <= ZYDIS_REGISTER_R15)
				index[mem->index - ZYDIS_REGISTER_RAX] = true;
		}
	for (unsigned r = 0; r < REGISTERS; r++) {
		if (base[r])
			printf("\t.quad %s + %lu\n", base[r],
			       MIDDLE + number() % 8 * (number() % 4 ? 64 : 8));
		else if (index[r] || r == 1)
			printf("\t.quad %lu\n", number() % 16);
		else
			printf("\t.quad 0x%lx\n", number() << number() % 48);
	}
}

int main(int argc, char **argv)
{
	unsigned count = argc > 1 ? atoi(argv[1]) : 100;

	state = (argc > 2 ? atoi(argv[2]) : 1) * 0x9e3779b97f4a7c15ull + 1;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	printf("\t.globl snippet_count, snippets, registers\n\t.section .rodata\nsnippet_count: .quad %u\n",
	       count);
	for (unsigned i = 0; i < count; i++) {
		struct instruction list[3];
		unsigned length = 1 + number() % 3;

		do {
			for (unsigned k = 0; k < length; k++)
				generate_one(&list[k]);
		} while (adds_addresses(list, length));
		printf("\t.text\n\t.globl snippet_%u\n\t.type snippet_%u, @function\nsnippet_%u:\n"
		       /* as run_snippet has left the stack */
		       "\t.cfi_startproc\n\t.cfi_def_cfa rsp, 56\n\t.cfi_offset rbx, -16\n"
		       "\t.cfi_offset rbp, -24\n\t.cfi_offset r12, -32\n\t.cfi_offset r13, -40\n"
		       "\t.cfi_offset r14, -48\n\t.cfi_offset r15, -56\n",
		       i, i, i);
		for (unsigned k = 0; k < length; k++)
			write_instruction(&list[k]);
		printf("\tjmp snippet_end\n\t.cfi_endproc\n\t.size snippet_%u, . - snippet_%u\n", i,
		       i);
		printf("\t.section .rodata\nregisters_%u:\n", i);
		choose_registers(list, length, number() % 2);
	}
	printf("\t.section .rodata\nsnippets:\n");
	for (unsigned i = 0; i < count; i++)
		printf("\t.quad snippet_%u\n", i);
	printf("registers:\n");
	for (unsigned i = 0; i < count; i++)
		printf("\t.quad registers_%u\n", i);
	printf("\t.section .note.GNU-stack, \"\", @progbits\n");
	return 0;
}
