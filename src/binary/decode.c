/* SPDX-License-Identifier: BSD-3-Clause */
/* Instructions, through Zydis, which is loaded when it is needed. */
#include <dlfcn.h>
#include <string.h>

#include "binary/zydis.h"
#include "runtime/context.h"

struct binary_site *binary_sites;
uint32_t binary_site_count;
struct binary_counts binary_counts;

static ZydisDecoder decoder;
static __typeof__(ZydisDecoderDecodeFull) *decode_full;

bool binary_decoder_start(void)
{
	__typeof__(ZydisDecoderInit) *start;
	void *library;

	if (decode_full)
		return true;
	library = REAL(dlopen)("libZydis.so.4.0", RTLD_NOW | RTLD_LOCAL);
	start = library ? REAL(dlsym)(library, "ZydisDecoderInit") : NULL;
	decode_full = start ? REAL(dlsym)(library, "ZydisDecoderDecodeFull") : NULL;
	binary_sites = binary_room(BINARY_SITES_MAX * sizeof(*binary_sites));
	stack_places = binary_room(BINARY_SITES_MAX * sizeof(*stack_places));
	if (!decode_full || !binary_sites || !stack_places)
		return false;
	start(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return true;
}

bool zydis_decode(const struct binary_text *text, uint32_t offset, struct zydis_decoded *d)
{
	uint32_t left = text->size - offset;

	return ZYAN_SUCCESS(decode_full(&decoder, text->code + offset,
					left < BINARY_LONGEST ? left : BINARY_LONGEST, &d->is,
					d->operand));
}

bool zydis_decode_at(uintptr_t address, struct zydis_decoded *d)
{
	return ZYAN_SUCCESS(
		decode_full(&decoder, (const void *)address, BINARY_LONGEST, &d->is, d->operand));
}

unsigned binary_length(uintptr_t address)
{
	struct zydis_decoded d;

	return zydis_decode_at(address, &d) ? d.is.length : 0;
}

/* ---- what an instruction does to memory ---- */

uint8_t zydis_register(ZydisRegister r)
{
	if (r >= ZYDIS_REGISTER_RAX && r <= ZYDIS_REGISTER_R15)
		return r - ZYDIS_REGISTER_RAX;
	return BINARY_NO_REGISTER;
}

/* Any part of a general register as its number; BINARY_NO_REGISTER for others. */
uint8_t zydis_any_register(ZydisRegister r, bool *whole)
{
	static const uint8_t low[] = { 0, 1, 2, 3, 0,  1,  2,  3,  4,  5,
				       6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };

	*whole = false;
	if (r >= ZYDIS_REGISTER_AL && r <= ZYDIS_REGISTER_R15B)
		return low[r - ZYDIS_REGISTER_AL]; /* al … bl, ah … bh, spl … */
	if (r >= ZYDIS_REGISTER_AX && r <= ZYDIS_REGISTER_R15W)
		return r - ZYDIS_REGISTER_AX;
	*whole = true;
	if (r >= ZYDIS_REGISTER_EAX && r <= ZYDIS_REGISTER_R15D)
		return r - ZYDIS_REGISTER_EAX;
	return zydis_register(r);
}

static bool is_branch(const ZydisDecodedInstruction *is)
{
	switch (is->meta.category) {
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_RET:
		return true;
	default:
		return false;
	}
}

static bool touches_nothing(const ZydisDecodedInstruction *is)
{
	switch (is->mnemonic) {
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_LEA:
	case ZYDIS_MNEMONIC_ENDBR64:
	case ZYDIS_MNEMONIC_CLDEMOTE:
		return true;
	default:
		return is->meta.category == ZYDIS_CATEGORY_PREFETCH || is_branch(is);
	}
}

/* The stack, thread-local and static variables are no PM. `framed`: rbp is a frame pointer. */
static bool cannot_be_pm(const ZydisDecodedOperand *operand, bool framed)
{
	const ZydisDecodedOperandMem *mem = &operand->mem;

	return mem->base == ZYDIS_REGISTER_RSP || (mem->base == ZYDIS_REGISTER_RBP && framed) ||
	       mem->base == ZYDIS_REGISTER_RIP || mem->segment == ZYDIS_REGISTER_FS ||
	       mem->segment == ZYDIS_REGISTER_GS ||
	       (mem->base == ZYDIS_REGISTER_NONE && mem->index == ZYDIS_REGISTER_NONE);
}

static uint8_t actions_of(const ZydisDecodedOperand *operand)
{
	return (operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ ? BINARY_LOADS : 0) |
	       (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? BINARY_STORES : 0);
}

/* A static variable: threads may talk to each other there. */
static bool is_static(const ZydisDecodedOperand *operand)
{
	const ZydisDecodedOperandMem *mem = &operand->mem;

	return mem->segment != ZYDIS_REGISTER_FS && mem->segment != ZYDIS_REGISTER_GS &&
	       (mem->base == ZYDIS_REGISTER_RIP ||
		(mem->base == ZYDIS_REGISTER_NONE && mem->index == ZYDIS_REGISTER_NONE));
}

static void describe_static(struct binary_site *site, const ZydisDecodedOperand *operand)
{
	site->variable = (struct binary_variable){
		.displacement = (int32_t)operand->mem.disp.value,
		.relative = operand->mem.base == ZYDIS_REGISTER_RIP,
		.actions = actions_of(operand),
		.size = operand->size / 8,
	};
}

static bool add_operand(struct binary_site *site, const ZydisDecodedOperand *operand)
{
	const ZydisDecodedOperandMem *mem = &operand->mem;
	struct binary_operand *o = &site->operand[site->operands];
	bool gathers = mem->type == ZYDIS_MEMOP_TYPE_VSIB;

	if (site->operands == BINARY_OPERANDS)
		return false;
	*o = (struct binary_operand){
		.base = zydis_register(mem->base),
		.index = gathers ? BINARY_NO_REGISTER : zydis_register(mem->index),
		.scale = mem->scale,
		.displacement = mem->disp.has_displacement ? mem->disp.value : 0,
		.size = operand->size / 8,
	};
	o->actions = actions_of(operand);
	if (((mem->base || gathers) && o->base == BINARY_NO_REGISTER) ||
	    (mem->index && !gathers && o->index == BINARY_NO_REGISTER))
		return false;
	site->operands++;
	return true;
}

/* What Valgrind's requests look like: rol $3, $13, $61, $51 of rdi, and this. */
static bool is_request(const struct binary_text *text, uint32_t offset)
{
	static const uint8_t code[] = { 0x48, 0xc1, 0xc7, 0x03, 0x48, 0xc1, 0xc7, 0x0d, 0x48, 0xc1,
					0xc7, 0x3d, 0x48, 0xc1, 0xc7, 0x33, 0x48, 0x87, 0xdb };
	enum { BEFORE = sizeof(code) - 3 };

	return offset >= BEFORE && text->size - offset >= 3 &&
	       memcmp(text->code + offset - BEFORE, code, sizeof(code)) == 0;
}

static uint32_t fence_kind(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_SFENCE:
		return PERDURE_SFENCE;
	case ZYDIS_MNEMONIC_MFENCE:
		return PERDURE_MFENCE;
	default:
		return 0;
	}
}

static uint32_t flush_kind(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_CLFLUSH:
		return PERDURE_CLFLUSH;
	case ZYDIS_MNEMONIC_CLFLUSHOPT:
		return PERDURE_CLFLUSHOPT;
	case ZYDIS_MNEMONIC_CLWB:
		return PERDURE_CLWB;
	default:
		return 0;
	}
}

static bool is_streaming(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_MOVNTI:
	case ZYDIS_MNEMONIC_MOVNTQ:
	case ZYDIS_MNEMONIC_MOVNTDQ:
	case ZYDIS_MNEMONIC_MOVNTPS:
	case ZYDIS_MNEMONIC_MOVNTPD:
	case ZYDIS_MNEMONIC_VMOVNTDQ:
	case ZYDIS_MNEMONIC_VMOVNTPS:
	case ZYDIS_MNEMONIC_VMOVNTPD:
	case ZYDIS_MNEMONIC_MOVDIRI:
	case ZYDIS_MNEMONIC_MOVDIR64B:
	case ZYDIS_MNEMONIC_MASKMOVQ:
	case ZYDIS_MNEMONIC_MASKMOVDQU:
	case ZYDIS_MNEMONIC_VMASKMOVDQU:
		return true;
	default:
		return false;
	}
}

static bool is_compare_exchange(ZydisMnemonic mnemonic)
{
	return mnemonic == ZYDIS_MNEMONIC_CMPXCHG || mnemonic == ZYDIS_MNEMONIC_CMPXCHG8B ||
	       mnemonic == ZYDIS_MNEMONIC_CMPXCHG16B;
}

/* ---- instructions that touch some elements ---- */

/* Of the elements of a vector of indices; 0 if the instruction has none. */
static unsigned index_size(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_VGATHERDPD:
	case ZYDIS_MNEMONIC_VGATHERDPS:
	case ZYDIS_MNEMONIC_VPGATHERDD:
	case ZYDIS_MNEMONIC_VPGATHERDQ:
	case ZYDIS_MNEMONIC_VSCATTERDPD:
	case ZYDIS_MNEMONIC_VSCATTERDPS:
	case ZYDIS_MNEMONIC_VPSCATTERDD:
	case ZYDIS_MNEMONIC_VPSCATTERDQ:
		return 4;
	case ZYDIS_MNEMONIC_VGATHERQPD:
	case ZYDIS_MNEMONIC_VGATHERQPS:
	case ZYDIS_MNEMONIC_VPGATHERQD:
	case ZYDIS_MNEMONIC_VPGATHERQQ:
	case ZYDIS_MNEMONIC_VSCATTERQPD:
	case ZYDIS_MNEMONIC_VSCATTERQPS:
	case ZYDIS_MNEMONIC_VPSCATTERQD:
	case ZYDIS_MNEMONIC_VPSCATTERQQ:
		return 8;
	default:
		return 0;
	}
}

static bool is_compressing(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_VPCOMPRESSB:
	case ZYDIS_MNEMONIC_VPCOMPRESSW:
	case ZYDIS_MNEMONIC_VPCOMPRESSD:
	case ZYDIS_MNEMONIC_VPCOMPRESSQ:
	case ZYDIS_MNEMONIC_VCOMPRESSPS:
	case ZYDIS_MNEMONIC_VCOMPRESSPD:
	case ZYDIS_MNEMONIC_VPEXPANDB:
	case ZYDIS_MNEMONIC_VPEXPANDW:
	case ZYDIS_MNEMONIC_VPEXPANDD:
	case ZYDIS_MNEMONIC_VPEXPANDQ:
	case ZYDIS_MNEMONIC_VEXPANDPS:
	case ZYDIS_MNEMONIC_VEXPANDPD:
		return true;
	default:
		return false;
	}
}

/* The size of elements whose highest bits, in the second operand, say whether they count. */
static unsigned vector_mask_element(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_VMASKMOVPS:
	case ZYDIS_MNEMONIC_VPMASKMOVD:
		return 4;
	case ZYDIS_MNEMONIC_VMASKMOVPD:
	case ZYDIS_MNEMONIC_VPMASKMOVQ:
		return 8;
	case ZYDIS_MNEMONIC_MASKMOVDQU:
	case ZYDIS_MNEMONIC_VMASKMOVDQU:
		return 1;
	default:
		return 0;
	}
}

static uint8_t vector_number(ZydisRegister r)
{
	if (r >= ZYDIS_REGISTER_XMM0 && r <= ZYDIS_REGISTER_XMM31)
		return r - ZYDIS_REGISTER_XMM0;
	if (r >= ZYDIS_REGISTER_YMM0 && r <= ZYDIS_REGISTER_YMM31)
		return r - ZYDIS_REGISTER_YMM0;
	if (r >= ZYDIS_REGISTER_ZMM0 && r <= ZYDIS_REGISTER_ZMM31)
		return r - ZYDIS_REGISTER_ZMM0;
	return BINARY_NO_REGISTER;
}

static unsigned vector_bytes(ZydisRegister r)
{
	return r >= ZYDIS_REGISTER_ZMM0 && r <= ZYDIS_REGISTER_ZMM31   ? 64
	       : r >= ZYDIS_REGISTER_YMM0 && r <= ZYDIS_REGISTER_YMM31 ? 32
								       : 16;
}

static void describe_gather(const struct zydis_decoded *d, const ZydisDecodedOperand *operand,
			    struct binary_lanes *lanes)
{
	bool loads = operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ;
	/* gather register, memory[, mask]; scatter memory, register */
	const ZydisDecodedOperand *data = loads ? &d->operand[0] : &d->operand[1];
	unsigned bytes = vector_bytes(data->reg.value), largest;

	lanes->index_size = index_size(d->is.mnemonic);
	lanes->index = vector_number(operand->mem.index);
	lanes->scale = operand->mem.scale;
	lanes->element = operand->element_size / 8;
	if (vector_bytes(operand->mem.index) > bytes)
		bytes = vector_bytes(operand->mem.index);
	largest = lanes->element > lanes->index_size ? lanes->element : lanes->index_size;
	lanes->count = bytes / largest;
	if (d->is.encoding == ZYDIS_INSTRUCTION_ENCODING_VEX) {
		lanes->vector_mask = true;
		lanes->mask = vector_number(d->operand[2].reg.value);
	}
}

static bool describe_lanes(const struct zydis_decoded *d, const ZydisDecodedOperand *operand,
			   struct binary_lanes *lanes)
{
	const ZydisDecodedInstruction *is = &d->is;
	bool masked = is->encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX &&
		      is->avx.mask.reg > ZYDIS_REGISTER_K0 && is->avx.mask.reg <= ZYDIS_REGISTER_K7;
	unsigned element = vector_mask_element(is->mnemonic);

	*lanes = (struct binary_lanes){ .mask = BINARY_NO_REGISTER };
	if (masked)
		lanes->mask = is->avx.mask.reg - ZYDIS_REGISTER_K0;
	if (operand->mem.type == ZYDIS_MEMOP_TYPE_VSIB) {
		describe_gather(d, operand, lanes);
		return lanes->element && lanes->index_size;
	}
	if (element) {
		lanes->vector_mask = true;
		lanes->mask = vector_number(d->operand[1].reg.value);
		lanes->element = element;
		lanes->count = operand->size / 8 / element;
	} else if (masked && !is->avx.broadcast.mode && operand->element_size) {
		lanes->element = operand->element_size / 8;
		lanes->count = operand->size / operand->element_size;
		lanes->compressed = is_compressing(is->mnemonic);
	}
	return lanes->count && lanes->count <= 64;
}

static enum binary_kind state_kind(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_XSAVE:
	case ZYDIS_MNEMONIC_XSAVE64:
	case ZYDIS_MNEMONIC_XSAVEOPT:
	case ZYDIS_MNEMONIC_XSAVEOPT64:
	case ZYDIS_MNEMONIC_XRSTOR:
	case ZYDIS_MNEMONIC_XRSTOR64:
		return BINARY_STATE;
	case ZYDIS_MNEMONIC_XSAVEC:
	case ZYDIS_MNEMONIC_XSAVEC64:
		return BINARY_COMPACT_STATE;
	default:
		return BINARY_ACCESS;
	}
}

static bool has_bit_offset(const struct zydis_decoded *d)
{
	return (d->is.mnemonic == ZYDIS_MNEMONIC_BT || d->is.mnemonic == ZYDIS_MNEMONIC_BTS ||
		d->is.mnemonic == ZYDIS_MNEMONIC_BTR || d->is.mnemonic == ZYDIS_MNEMONIC_BTC) &&
	       d->operand[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
}

static bool is_comparing(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_SCASB:
	case ZYDIS_MNEMONIC_SCASW:
	case ZYDIS_MNEMONIC_SCASD:
	case ZYDIS_MNEMONIC_SCASQ:
	case ZYDIS_MNEMONIC_CMPSB:
	case ZYDIS_MNEMONIC_CMPSW:
	case ZYDIS_MNEMONIC_CMPSD:
	case ZYDIS_MNEMONIC_CMPSQ:
		return true;
	default:
		return false;
	}
}

static void describe_string(const ZydisDecodedInstruction *is, struct binary_site *site)
{
	bool compares = is_comparing(is->mnemonic);

	if (is->meta.category != ZYDIS_CATEGORY_STRINGOP ||
	    !(is->attributes &
	      (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)))
		return;
	site->kind = BINARY_STRING;
	if (compares)
		site->string = is->attributes & ZYDIS_ATTRIB_HAS_REPE ? BINARY_WHILE_EQUAL
								      : BINARY_WHILE_DIFFERENT;
}

static enum binary_deed locked_deed(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_CMPXCHG:
		return BINARY_COMPARE;
	case ZYDIS_MNEMONIC_XADD:
		return BINARY_ADD;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_INC:
		return BINARY_PLUS;
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_DEC:
		return BINARY_MINUS;
	case ZYDIS_MNEMONIC_AND:
		return BINARY_AND;
	case ZYDIS_MNEMONIC_OR:
		return BINARY_OR;
	case ZYDIS_MNEMONIC_XOR:
		return BINARY_XOR;
	default:
		return BINARY_NO_DEED;
	}
}

static enum binary_deed deed_of(const ZydisDecodedInstruction *is, const struct binary_site *site)
{
	if (site->operands != 1 || site->operand[0].size > 8)
		return BINARY_NO_DEED;
	if (is->mnemonic == ZYDIS_MNEMONIC_MOV && site->operand[0].actions == BINARY_STORES)
		return BINARY_MOVE;
	if (is->mnemonic == ZYDIS_MNEMONIC_XCHG)
		return BINARY_SWAP;
	return site->locked ? locked_deed(is->mnemonic) : BINARY_NO_DEED;
}

static void describe_immediate(struct binary_site *site, int32_t value)
{
	site->source = BINARY_IMMEDIATE;
	site->immediate = value;
}

/* False if it cannot be told where it comes from. */
static bool describe_source(const struct zydis_decoded *d, enum binary_deed deed,
			    struct binary_site *site)
{
	const ZydisDecodedOperand *from = &d->operand[1];
	ZydisRegister r = from->reg.value;
	enum { RSP = 4 };
	uint8_t number;
	bool whole, high = r >= ZYDIS_REGISTER_AH && r <= ZYDIS_REGISTER_BH;

	site->keeps_carry =
		d->is.mnemonic == ZYDIS_MNEMONIC_INC || d->is.mnemonic == ZYDIS_MNEMONIC_DEC;
	if (site->keeps_carry || from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		describe_immediate(site, site->keeps_carry ? 1 : (int32_t)from->imm.value.s);
		return true;
	}
	if (from->type != ZYDIS_OPERAND_TYPE_REGISTER)
		return false;
	number = zydis_any_register(r, &whole);
	site->source = number | (high ? BINARY_HIGH : 0);
	return number != BINARY_NO_REGISTER && (deed == BINARY_MOVE || (!high && number != RSP));
}

/* A plain store, and locked instructions, can be done by the hook. */
static void describe_deed(const struct zydis_decoded *d, struct binary_site *site)
{
	enum binary_deed deed = deed_of(&d->is, site);

	if (deed && describe_source(d, deed, site))
		site->deed = deed;
}

/* Fills in a site; false if the instruction is none. */
static bool describe(const struct zydis_decoded *d, bool framed, struct binary_site *site)
{
	const ZydisDecodedInstruction *is = &d->is;
	bool lost = false, whole;
	struct binary_lanes lanes;

	if (is->address_width != 64)
		return false; /* the window is far above */
	if (fence_kind(is->mnemonic)) {
		site->kind = BINARY_FENCE;
		site->descriptor = fence_kind(is->mnemonic);
		return true;
	}
	if (is->mnemonic == ZYDIS_MNEMONIC_PAUSE) {
		site->kind = BINARY_PAUSE;
		return true;
	}
	if (is->mnemonic == ZYDIS_MNEMONIC_SYSCALL) {
		site->kind = BINARY_SYSCALL;
		return true;
	}
	if (touches_nothing(is))
		return false;
	for (unsigned i = 0; i < is->operand_count; i++) {
		const ZydisDecodedOperand *operand = &d->operand[i];

		if (operand->type != ZYDIS_OPERAND_TYPE_MEMORY ||
		    operand->mem.type == ZYDIS_MEMOP_TYPE_AGEN)
			continue;
		if (is_static(operand))
			describe_static(site, operand);
		if (cannot_be_pm(operand, framed))
			continue;
		lost |= !add_operand(site, operand);
		if (describe_lanes(d, operand, &lanes)) {
			site->lanes = lanes;
			site->kind = BINARY_LANES;
		}
	}
	binary_counts.unknown += lost;
	site->locked =
		is->attributes & ZYDIS_ATTRIB_HAS_LOCK ||
		(is->mnemonic == ZYDIS_MNEMONIC_XCHG && (site->operands || site->variable.size));
	if (!site->operands && !site->locked && !site->variable.size)
		return false;
	site->if_equal = is_compare_exchange(is->mnemonic);
	if (has_bit_offset(d))
		site->bit = zydis_any_register(d->operand[1].reg.value, &whole);
	if (site->kind == BINARY_ACCESS)
		site->kind = state_kind(is->mnemonic);
	if (flush_kind(is->mnemonic)) {
		site->kind = BINARY_FLUSH;
		site->descriptor = flush_kind(is->mnemonic);
	} else {
		describe_string(is, site);
	}
	describe_deed(d, site);
	if (is_streaming(is->mnemonic))
		site->descriptor |= PERDURE_NONTEMPORAL;
	if (site->locked && site->kind == BINARY_ACCESS)
		site->descriptor |= PERDURE_RMW;
	return true;
}

/* ---- what it does to registers, and how it can be moved ---- */

static bool overwrites_flags(const ZydisDecodedInstruction *is)
{
	const uint32_t all = ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_ZF |
			     ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF | ZYDIS_CPUFLAG_AF;

	/* A shift, or a string, of length 0 leaves them as they are. */
	if (!is->cpu_flags || is->meta.category == ZYDIS_CATEGORY_SHIFT ||
	    is->meta.category == ZYDIS_CATEGORY_ROTATE ||
	    is->meta.category == ZYDIS_CATEGORY_STRINGOP)
		return false;
	return !(all & ~(is->cpu_flags->modified | is->cpu_flags->set_0 | is->cpu_flags->set_1));
}

static void note_register(ZydisRegister r, bool reads, bool writes, bool always, uint32_t *read,
			  uint32_t *written)
{
	bool whole;
	uint8_t number = zydis_any_register(r, &whole);

	if (number == BINARY_NO_REGISTER)
		return;
	if (reads || (writes && (!whole || !always)))
		*read |= 1u << number; /* a part that stays is as good as read */
	else if (writes)
		*written |= 1u << number;
}

static void registers_of(const struct zydis_decoded *d, uint32_t *read, uint32_t *written)
{
	*read = *written = 0;
	for (unsigned i = 0; i < d->is.operand_count; i++) {
		const ZydisDecodedOperand *operand = &d->operand[i];

		if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			note_register(operand->mem.base, true, false, true, read, written);
			note_register(operand->mem.index, true, false, true, read, written);
		} else if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			note_register(operand->reg.value,
				      operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ,
				      operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE,
				      operand->actions & ZYDIS_OPERAND_ACTION_WRITE, read, written);
		}
	}
	*written &= ~*read;
}

static bool set_goal(struct binary_instruction *instruction, int64_t distance)
{
	int64_t goal = (int64_t)instruction->offset + instruction->length + distance;

	instruction->goal = (int32_t)goal;
	return goal == (int32_t)goal;
}

static void describe_move(struct binary_instruction *instruction, const struct zydis_decoded *d)
{
	const ZydisDecodedInstruction *is = &d->is;

	instruction->how = BINARY_STAYS;
	if (is->mnemonic == ZYDIS_MNEMONIC_XBEGIN)
		return;
	if (is_branch(is) && is->operand_count_visible &&
	    d->operand[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && d->operand[0].imm.is_relative) {
		if (set_goal(instruction, d->operand[0].imm.value.s))
			instruction->how = is->meta.category == ZYDIS_CATEGORY_CALL ? BINARY_CALL
										    : BINARY_BRANCH;
		instruction->conditional = is->meta.category == ZYDIS_CATEGORY_COND_BR;
		instruction->opcode = is->opcode;
		return;
	}
	if (is->meta.category == ZYDIS_CATEGORY_CALL)
		return;
	instruction->how = BINARY_AS_IT_IS;
	if (!(is->attributes & ZYDIS_ATTRIB_IS_RELATIVE))
		return;
	instruction->displacement_at = is->raw.disp.offset;
	instruction->how = is->raw.disp.size == 32 && set_goal(instruction, is->raw.disp.value)
				   ? BINARY_RELATIVE
				   : BINARY_STAYS;
}

static void describe_registers(struct binary_instruction *instruction,
			       const struct zydis_decoded *d)
{
	uint32_t read, written;

	registers_of(d, &read, &written);
	instruction->reads = (uint16_t)read;
	instruction->writes = (uint16_t)written;
	instruction->tests_flags = d->is.cpu_flags && d->is.cpu_flags->tested;
	instruction->sets_flags = overwrites_flags(&d->is);
	instruction->ends = d->is.meta.category == ZYDIS_CATEGORY_CALL ||
			    d->is.meta.category == ZYDIS_CATEGORY_RET ||
			    d->is.meta.category == ZYDIS_CATEGORY_SYSCALL ||
			    d->is.meta.category == ZYDIS_CATEGORY_INTERRUPT;
}

/* ---- a whole object ---- */

static void note_branch(struct binary_instruction *instruction, const struct zydis_decoded *d)
{
	instruction->calls = d->is.meta.category == ZYDIS_CATEGORY_CALL ||
			     d->is.meta.category == ZYDIS_CATEGORY_SYSCALL;
	instruction->target |= d->is.mnemonic == ZYDIS_MNEMONIC_ENDBR64;
	instruction->leaves = d->is.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
			      d->is.meta.category == ZYDIS_CATEGORY_RET;
}

/* Does rbp become, or stop being, the frame pointer of the function? */
static bool still_framed(const struct zydis_decoded *d, bool framed)
{
	const ZydisDecodedOperand *to = &d->operand[0], *from = &d->operand[1];

	if (d->is.meta.category == ZYDIS_CATEGORY_RET)
		return false;
	if (!d->is.operand_count || to->type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    to->reg.value != ZYDIS_REGISTER_RBP || !(to->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return framed;
	return d->is.mnemonic == ZYDIS_MNEMONIC_MOV && from->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       from->reg.value == ZYDIS_REGISTER_RSP;
}

/* Loads are patched if anybody wants to know of them. */
static bool is_worth_it(const struct binary_site *site)
{
	unsigned actions = 0;

	for (unsigned i = 0; i < site->operands; i++)
		actions |= site->operand[i].actions;
	if (runtime_session->races.on)
		return true;
	if (!site->operands && site->kind == BINARY_ACCESS && !site->locked)
		return false; /* a variable only */
	return runtime_session->stream.on || runtime_session->executions.on || site->locked ||
	       actions & BINARY_STORES ||
	       (site->kind >= BINARY_FLUSH && site->kind != BINARY_PAUSE);
}

static void decode_one(struct binary_text *text, uint32_t offset, bool *framed)
{
	struct binary_instruction *instruction = &text->list[text->count];
	struct binary_site site = { .bit = BINARY_NO_REGISTER, .source = BINARY_NO_REGISTER };
	struct zydis_decoded d;

	*instruction = (struct binary_instruction){
		.offset = offset,
		.length = 1,
		.bad = true,
		.site = BINARY_NO_SITE,
		.start = BINARY_NO_SITE,
	};
	text->at[offset] = ++text->count;
	if (!zydis_decode(text, offset, &d)) {
		*framed = false;
		return;
	}
	instruction->bad = false;
	instruction->length = d.is.length;
	note_branch(instruction, &d);
	describe_move(instruction, &d);
	describe_registers(instruction, &d);
	*framed = still_framed(&d, *framed);
	site.address = text->start + offset;
	site.length = d.is.length;
	if (is_request(text, offset))
		site.kind = BINARY_REQUEST;
	else if (!describe(&d, *framed, &site) || !is_worth_it(&site))
		return;
	if (binary_site_count < BINARY_SITES_MAX) {
		instruction->site = binary_site_count;
		binary_sites[binary_site_count++] = site;
		binary_counts.sites++;
	}
}

void binary_decode(struct binary_text *text)
{
	bool framed = false;

	for (uint32_t offset = 0; offset < text->size; offset += text->list[text->count - 1].length)
		decode_one(text, offset, &framed);
	for (uint32_t i = 0; i < text->count; i++) {
		const struct binary_instruction *instruction = &text->list[i];
		uint32_t goal = (uint32_t)instruction->goal;

		if (instruction->calls && i + 1 < text->count)
			text->list[i + 1].target = true;
		if (instruction->how >= BINARY_RELATIVE && goal < text->size && text->at[goal])
			text->list[text->at[goal] - 1].target = true;
	}
	binary_find_dead(text);
}
