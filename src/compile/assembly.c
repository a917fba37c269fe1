/* SPDX-License-Identifier: BSD-3-Clause */
#include "compile/assembly.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATEMENT = 256, PARTS = 6 };

/* ---- constraints ---- */

static char fixed_register(const char *text, size_t length)
{
	static const struct {
		const char *name;
		char reg;
	} names[] = {
		{ "{ax}", 'a' },  { "{bx}", 'b' },  { "{cx}", 'c' },  { "{dx}", 'd' },
		{ "{si}", 'S' },  { "{di}", 'D' },  { "{rax}", 'a' }, { "{rbx}", 'b' },
		{ "{rcx}", 'c' }, { "{rdx}", 'd' }, { "{rsi}", 'S' }, { "{rdi}", 'D' },
		{ "{eax}", 'a' }, { "{ecx}", 'c' }, { "{edx}", 'd' },
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strlen(names[i].name) == length && strncmp(names[i].name, text, length) == 0)
			return names[i].reg;
	return 0;
}

static void parse_constraint(const char *text, size_t length, struct assembly *result)
{
	struct assembly_operand *operand = &result->operand[result->operands];
	const char *end = text + length;

	if (length && *text == '~') {
		result->clobbers_memory |= length == 9 && strncmp(text, "~{memory}", 9) == 0;
		return;
	}
	if (result->operands == ASSEMBLY_OPERANDS || (length && *text == '!')) {
		result->unknown = true;
		return;
	}
	*operand = (struct assembly_operand){ .argument = -1, .tied = -1 };
	for (; text < end && strchr("=&*+%", *text); text++) {
		operand->output |= *text == '=';
		operand->indirect |= *text == '*';
	}
	if (text < end && isdigit((unsigned char)*text))
		operand->tied = atoi(text);
	operand->reg = fixed_register(text, end - text);
	if (!operand->output || operand->indirect)
		operand->argument = result->arguments++;
	result->operands++;
}

static void parse_constraints(const char *text, size_t length, struct assembly *result)
{
	const char *end = text + length;

	while (text < end) {
		const char *comma = text;
		int braces = 0;

		for (; comma < end && (*comma != ',' || braces); comma++)
			braces += *comma == '{' ? 1 : *comma == '}' ? -1 : 0;
		parse_constraint(text, comma - text, result);
		text = comma + 1;
	}
	/* The value an in-out register starts with is that of the input tied to it. */
	for (unsigned i = 0; i < result->operands; i++) {
		struct assembly_operand *input = &result->operand[i];
		struct assembly_operand *output;

		if (input->tied < 0 || (unsigned)input->tied >= result->operands)
			continue;
		output = &result->operand[input->tied];
		if (output->argument < 0)
			output->argument = input->argument;
		if (!input->reg)
			input->reg = output->reg;
	}
}

/* ---- statements ---- */

struct statement {
	char text[STATEMENT];
	const char *mnemonic;
	char *part[PARTS];
	unsigned parts;
	bool lock, repeat, operand_size_prefix;
	bool coded, label;
};

static bool is_one_of(const char *word, const char *list)
{
	size_t length = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += length)
		if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
			return true;
	return false;
}

static void split_parts(char *text, struct statement *s)
{
	int depth = 0;

	s->parts = 0;
	while (isspace((unsigned char)*text))
		text++;
	if (!*text)
		return;
	s->part[s->parts++] = text;
	for (; *text; text++) {
		depth += *text == '(' || *text == '{' ? 1 : *text == ')' || *text == '}' ? -1 : 0;
		if (*text != ',' || depth || s->parts == PARTS)
			continue;
		*text++ = 0;
		while (isspace((unsigned char)*text))
			text++;
		s->part[s->parts++] = text--;
	}
}

/* A single byte that is a prefix of the next instruction. */
static bool is_prefix_byte(const char *text, struct statement *s)
{
	char *end;
	long byte = strtol(text, &end, 0);

	while (isspace((unsigned char)*end))
		end++;
	if (*end || end == text)
		return false;
	s->operand_size_prefix |= byte == 0x66;
	s->lock |= byte == 0xf0;
	s->repeat |= byte == 0xf3;
	return byte == 0x66 || byte == 0xf0 || byte == 0xf2 || byte == 0xf3 || byte == 0x3e ||
	       byte == 0x2e;
}

/* Takes prefixes off and finds mnemonic and operands. False for labels, directives, nothing. */
static bool dissect(struct statement *s)
{
	char *p = s->text;

	for (char *q = p; *q; q++)
		*q = tolower((unsigned char)*q);
	for (;;) {
		char *word, *end;

		while (isspace((unsigned char)*p))
			p++;
		word = p;
		while (*p && !isspace((unsigned char)*p))
			p++;
		end = p;
		if (end == word)
			return false;
		if (*end)
			*p++ = 0;
		if (end[-1] == ':') {
			s->label |= !isdigit((unsigned char)*word);
			continue;
		}
		if (strcmp(word, ".byte") == 0 && is_prefix_byte(p, s))
			return false;
		if (is_one_of(word, ".byte .long .quad .word .short .insn .2byte .4byte .8byte")) {
			s->coded = true; /* instructions as numbers */
			return false;
		}
		if (*word == '.')
			return false;
		if (is_one_of(word, "lock rep repe repz repne repnz data16 data32 ds cs notrack")) {
			s->lock |= strcmp(word, "lock") == 0;
			s->repeat |= strncmp(word, "rep", 3) == 0;
			s->operand_size_prefix |= strcmp(word, "data16") == 0;
			continue;
		}
		s->mnemonic = word;
		split_parts(p, s);
		return true;
	}
}

/* ---- operands ---- */

/* "$0", "${0:q}": the operand's number, -1 if it is something else. *end is behind it. */
static int operand_number(const char *p, const char **end)
{
	int number;

	if (*p != '$')
		return -1;
	p++;
	if (*p == '{') {
		if (!isdigit((unsigned char)p[1]))
			return -1;
		number = atoi(p + 1);
		p = strchr(p, '}');
		if (!p)
			return -1;
		*end = p + 1;
		return number;
	}
	if (!isdigit((unsigned char)*p))
		return -1;
	number = strtol(p, (char **)end, 10);
	return number;
}

/* A fixed register written out, "%rdi": the operand that is bound to it. */
static int register_operand(const struct assembly *a, const char *p)
{
	static const char names[][5] = { "rax", "rbx", "rcx", "rdx", "rsi", "rdi" };
	static const char regs[] = "abcdSD";

	while (*p == '%')
		p++;
	for (unsigned i = 0; i < 6; i++)
		if (strncmp(p, names[i], 3) == 0)
			for (unsigned o = 0; o < a->operands; o++)
				if (a->operand[o].reg == regs[i] && a->operand[o].argument >= 0)
					return o;
	return -1;
}

struct place {
	bool memory, understood, through_register;
	bool stack; /* relative to the stack pointer */
	int operand;
	int64_t displacement;
};

static struct place parse_place(const struct assembly *a, const char *text)
{
	struct place place = { .operand = -1 };
	const char *open = strchr(text, '('), *end = text;

	if (!open) {
		int number = operand_number(text, &end);

		if (number >= 0 && (unsigned)number < a->operands && !*end) {
			place.operand = number;
			place.memory = a->operand[number].indirect;
			place.understood = true;
		} else {
			place.understood = strchr(text, '[') == NULL;
			place.memory = false;
		}
		return place;
	}
	place.memory = place.through_register = true;
	place.stack = strncmp(open + 1, "%rsp", 4) == 0 || strncmp(open + 1, "%esp", 4) == 0;
	place.displacement = strtoll(text, (char **)&end, 0);
	if (end != open)
		return place;
	text = open + 1;
	place.operand = operand_number(text, &end);
	if (place.operand < 0) {
		place.operand = register_operand(a, text);
		end = strchr(text, ')');
	}
	place.understood = place.operand >= 0 && (unsigned)place.operand < a->operands &&
			   a->operand[place.operand].argument >= 0 && end && *end == ')';
	return place;
}

/* ---- instructions ---- */

static struct assembly_effect *add_effect(struct assembly *a, enum assembly_effect_kind kind)
{
	struct assembly_effect *effect;

	if (a->effects == ASSEMBLY_EFFECTS) {
		a->unknown = true;
		return NULL;
	}
	effect = &a->effect[a->effects++];
	*effect = (struct assembly_effect){ .kind = kind, .operand = -1, .width_of = -1 };
	return effect;
}

static void add_access(struct assembly *a, enum assembly_effect_kind kind,
		       const struct place *place, uint32_t size, uint32_t flags)
{
	struct assembly_effect *effect;

	if (!place->understood) {
		a->unknown = true;
		return;
	}
	effect = add_effect(a, kind);
	if (!effect)
		return;
	effect->operand = place->operand;
	effect->through_register = place->through_register;
	effect->displacement = place->displacement;
	effect->size = size; /* what an operand was declared as says less */
	effect->flags = flags | PERDURE_ASM;
}

static int flush_kind(const struct statement *s)
{
	if (strcmp(s->mnemonic, "clwb") == 0)
		return PERDURE_CLWB;
	if (strcmp(s->mnemonic, "clflushopt") == 0)
		return PERDURE_CLFLUSHOPT;
	if (strcmp(s->mnemonic, "clflush") == 0)
		return s->operand_size_prefix ? PERDURE_CLFLUSHOPT : PERDURE_CLFLUSH;
	if (strcmp(s->mnemonic, "xsaveopt") == 0 && s->operand_size_prefix)
		return PERDURE_CLWB;
	return 0;
}

static int fence_kind(const char *mnemonic)
{
	if (strcmp(mnemonic, "sfence") == 0)
		return PERDURE_SFENCE;
	if (strcmp(mnemonic, "mfence") == 0)
		return PERDURE_MFENCE;
	if (strcmp(mnemonic, "lfence") == 0)
		return PERDURE_LFENCE;
	return 0;
}

static unsigned suffix_size(char suffix)
{
	return suffix == 'b'                    ? 1
	       : suffix == 'w'                  ? 2
	       : suffix == 'l' || suffix == 'd' ? 4
	       : suffix == 'q'                  ? 8
						: 0;
}

/* rep stosb, movsq, … */
static bool string_instruction(struct assembly *a, const struct statement *s)
{
	size_t length = strlen(s->mnemonic);
	bool moves = strncmp(s->mnemonic, "movs", 4) == 0 && length == 5;
	bool fills = strncmp(s->mnemonic, "stos", 4) == 0 && length == 5;
	struct assembly_effect *effect;
	unsigned size;

	if ((!moves && !fills) || s->parts)
		return is_one_of(s->mnemonic, "lodsb lodsw lodsl lodsq scasb scasw scasl scasq "
					      "cmpsb cmpsw cmpsl cmpsq");
	size = suffix_size(s->mnemonic[4]);
	if (moves && (effect = add_effect(a, EFFECT_STRING_LOAD))) {
		effect->size = size;
		effect->operand = register_operand(a, "%rsi");
		effect->detail = s->repeat;
		effect->flags = PERDURE_BULK | PERDURE_ASM;
		a->unknown |= effect->operand < 0;
	}
	if ((effect = add_effect(a, EFFECT_STRING_STORE))) {
		effect->size = size;
		effect->operand = register_operand(a, "%rdi");
		effect->detail = s->repeat;
		effect->flags = PERDURE_BULK | PERDURE_ASM;
		a->unknown |= effect->operand < 0;
	}
	return true;
}

/* The size that a modifier of a register operand, as in ${0:w}, stands for. */
static uint32_t modifier_size(const char *part)
{
	const char *colon = part[0] == '$' && part[1] == '{' ? strchr(part, ':') : NULL;

	switch (colon ? colon[1] : 0) {
	case 'b':
	case 'h':
		return 1;
	case 'w':
		return 2;
	case 'k':
		return 4;
	case 'q':
		return 8;
	case 'x':
		return 16;
	case 't':
		return 32;
	case 'g':
		return 64;
	default:
		return 0;
	}
}

static uint32_t vector_register_size(const char *part)
{
	return strstr(part, "%zmm")   ? 64
	       : strstr(part, "%ymm") ? 32
	       : strstr(part, "%xmm") ? 16
				      : 0;
}

/* Instructions whose name says how much they move. */
static uint32_t named_size(const char *m)
{
	static const struct {
		const char *names;
		uint32_t size;
	} table[] = {
		{ "movss vmovss movd vmovd movntil stmxcsr extractps vextractps", 4 },
		{ "movsd vmovsd movq vmovq movlps movhps movlpd movhpd vmovlps vmovhps movntiq cmpxchg8b",
		  8 },
		{ "movdqu movdqa movups movaps movupd movapd movntdq movntps movntpd lddqu cmpxchg16b",
		  16 },
		{ "fxsave", 512 },
	};

	if (strncmp(m, "set", 3) == 0)
		return 1;
	for (unsigned i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (is_one_of(m, table[i].names))
			return table[i].size;
	return 0;
}

static const char sized_stems[] =
	"mov add sub and or xor inc dec neg not xadd xchg cmpxchg adc sbb "
	"shl shr sar rol ror bts btr btc cmp test";

/* How much an instruction moves when its memory operand is only an address. */
static void access_width(const struct statement *s, uint32_t *size, int *width_of)
{
	size_t length = strlen(s->mnemonic);
	char stem[32];

	*width_of = -1;
	*size = 0;
	for (unsigned i = 0; i < s->parts && !*size; i++)
		if (s->mnemonic[0] == 'v' || strncmp(s->mnemonic, "movnt", 5) == 0)
			*size = vector_register_size(s->part[i]);
	if (!*size)
		*size = named_size(s->mnemonic);
	if (!*size && length > 1 && length < sizeof(stem)) {
		memcpy(stem, s->mnemonic, length - 1);
		stem[length - 1] = 0;
		if (is_one_of(stem, sized_stems))
			*size = suffix_size(s->mnemonic[length - 1]);
	}
	for (unsigned i = 0; i < s->parts && !*size && *width_of < 0; i++) {
		const char *end;

		*size = modifier_size(s->part[i]);
		if (!strchr(s->part[i], '('))
			*width_of = operand_number(s->part[i], &end);
	}
}

/* Memory in the last operand is written, except by these. */
static const char reading[] =
	"cmp cmpb cmpw cmpl cmpq test testb testw testl testq bt btl btq push "
	"pushq jmp call mul mulq imul div divq idiv ldmxcsr fxrstor xrstor";

/* Instructions whose effect on memory is what their operands say. */
static bool is_plain(const char *m)
{
	static const char *const stems[] = {
		"mov",   "vmov", "add",    "sub",   "and",   "or",      "xor",     "inc",
		"dec",   "neg",  "not",    "xadd",  "xchg",  "cmpxchg", "adc",     "sbb",
		"shl",   "shr",  "sar",    "rol",   "ror",   "bts",     "btr",     "btc",
		"set",   "cmov", "cmp",    "test",  "bt",    "lea",     "pxor",    "por",
		"pand",  "pcmp", "vpcmp",  "vpxor", "imul",  "mul",     "div",     "idiv",
		"bsf",   "bsr",  "popcnt", "lzcnt", "tzcnt", "bswap",   "crc32",   "cvt",
		"p",     "vp",   "vadd",   "vmul",  "vxor",  "stmxcsr", "ldmxcsr", "fxsave",
		"xsave",
	};

	for (unsigned i = 0; i < sizeof(stems) / sizeof(*stems); i++)
		if (strncmp(m, stems[i], strlen(stems[i])) == 0)
			return true;
	return false;
}

/* No effect on the program's memory, whatever their operands. */
static const char harmless[] =
	"nop pause rdtsc rdtscp cpuid xgetbv rdrand rdseed xbegin xend xabort xtest hlt ud2 int3 cld "
	"std cli sti push pop pushf popf pushfq popfq endbr64 vzeroupper vzeroall emms rdpid rdpmc "
	"wrfsbase rdfsbase wrgsbase rdgsbase jmp je jne jz jnz ja jae jb jbe jg jge jl jle js jns jc "
	"jnc jo jno jrcxz loop prefetcht0 prefetcht1 prefetcht2 prefetchnta prefetchw prefetch int "
	"cltq cqto cdq ret leave fnstcw fldcw fninit";

static uint32_t plain_flags(const struct statement *s, bool *exchange)
{
	uint32_t flags = 0;

	*exchange = s->lock || strncmp(s->mnemonic, "xchg", 4) == 0;
	if (*exchange)
		flags |= PERDURE_RMW;
	if (strncmp(s->mnemonic, "cmpxchg", 7) == 0)
		flags |= PERDURE_IF_CHANGED;
	if (strncmp(s->mnemonic, "movnt", 5) == 0 || strncmp(s->mnemonic, "vmovnt", 6) == 0 ||
	    strncmp(s->mnemonic, "movdir", 6) == 0)
		flags |= PERDURE_NONTEMPORAL;
	return flags;
}

static void plain_instruction(struct assembly *a, const struct statement *s)
{
	bool exchange;
	uint32_t flags = plain_flags(s, &exchange), size;
	int width_of;

	if (strncmp(s->mnemonic, "lea", 3) == 0)
		return;
	access_width(s, &size, &width_of);
	for (unsigned i = 0; i < s->parts; i++) {
		struct place place = parse_place(a, s->part[i]);
		bool last = i + 1 == s->parts || strncmp(s->mnemonic, "xchg", 4) == 0;

		if (place.stack)
			a->locked |= exchange;
		if (place.stack || (!place.memory && place.understood))
			continue;
		if (last && !is_one_of(s->mnemonic, reading)) {
			a->locked |= exchange;
			add_access(a, EFFECT_STORE, &place, size, flags);
		} else {
			add_access(a, EFFECT_LOAD, &place, size, 0);
		}
		if (a->effects)
			a->effect[a->effects - 1].width_of = width_of;
	}
}

static void instruction(struct assembly *a, const struct statement *s, unsigned *flushes)
{
	struct assembly_effect *effect;
	int kind;

	if ((kind = flush_kind(s))) {
		struct place place = parse_place(a, s->parts ? s->part[s->parts - 1] : "");
		unsigned before = a->effects;

		++*flushes;
		add_access(a, EFFECT_FLUSH, &place, 1, 0);
		if (a->effects > before)
			a->effect[before].detail = kind;
	} else if ((kind = fence_kind(s->mnemonic))) {
		if ((effect = add_effect(a, EFFECT_FENCE)))
			effect->detail = kind;
	} else if (string_instruction(a, s) || is_one_of(s->mnemonic, harmless)) {
		/* A nop alone is what loops that wait are filled with. */
		a->pauses |= strcmp(s->mnemonic, "pause") == 0 || strcmp(s->mnemonic, "nop") == 0;
	} else if (is_plain(s->mnemonic)) {
		plain_instruction(a, s);
	} else {
		a->unrecognised = true;
	}
}

/* Of an instruction nobody knows the constraints tell what it does, unless they leave it open. */
static void trust_constraints(struct assembly *a, const char *text, size_t length)
{
	if (a->clobbers_memory || memchr(text, '(', length)) {
		a->unknown = true;
		return;
	}
	for (unsigned i = 0; i < a->operands; i++)
		if (a->operand[i].indirect)
			add_access(
				a, a->operand[i].output ? EFFECT_STORE : EFFECT_LOAD,
				&(struct place){ .memory = true, .understood = true, .operand = i },
				0, 0);
}

/* The next statement, ended by a newline or semicolon; the AT&T half of {att|intel}. */
static const char *next_statement(const char *p, const char *end, char *out)
{
	size_t length = 0;
	bool intel = false, comment = false;

	for (; p < end && *p != '\n' && (*p != ';' || comment); p++) {
		const char *close;

		if (*p == '/' && p + 1 < end && p[1] == '*' &&
		    (close = memmem(p, end - p, "*/", 2))) {
			p = close + 1;
			continue;
		}
		comment |= *p == '#';
		if (*p == '$' && p + 1 < end && strchr("()|", p[1])) {
			intel = p[1] == '|';
			p++;
		} else if (!intel && !comment && length + 1 < STATEMENT) {
			out[length++] = *p == '\t' ? ' ' : *p;
		}
	}
	out[length] = 0;
	return p < end ? p + 1 : p;
}

/* Data that a probe puts into a section of its own is not executed. */
static bool other_section(const char *text, bool *elsewhere)
{
	if (strstr(text, ".pushsection"))
		*elsewhere = true;
	if (strstr(text, ".popsection") || strstr(text, ".previous")) {
		*elsewhere = false;
		return true;
	}
	return *elsewhere;
}

/* Four rotations that add up to nothing, and an exchange of a register with itself. */
static bool is_client_request(const char *text, size_t length)
{
	return memmem(text, length, "rolq $$3,", 9) && memmem(text, length, "rolq $$51,", 10) &&
	       memmem(text, length, "xchgq %rbx,%rbx", 15);
}

void assembly_parse(const char *text, size_t text_length, const char *constraints,
		    size_t constraints_length, struct assembly *result)
{
	const char *start = text, *end = text + text_length;
	bool prefix = false, lock = false, repeat = false, elsewhere = false;
	unsigned statements = 0, flushes = 0;

	*result = (struct assembly){ 0 };
	result->client_request = is_client_request(text, text_length);
	parse_constraints(constraints, constraints_length, result);
	while (text < end) {
		struct statement s = { .operand_size_prefix = prefix,
				       .lock = lock,
				       .repeat = repeat };
		bool found;

		text = next_statement(text, end, s.text);
		if (other_section(s.text, &elsewhere))
			continue;
		found = dissect(&s);
		result->unrecognised |= s.coded;
		result->has_label |= s.label;
		/* A prefix may be a statement of its own: "lock; xadd …". */
		prefix = !found && s.operand_size_prefix;
		lock = !found && s.lock;
		repeat = !found && s.repeat;
		if (!found)
			continue;
		statements++;
		instruction(result, &s, &flushes);
	}
	if (result->unrecognised)
		trust_constraints(result, start, text_length);
	result->only_flush = statements == 1 && flushes == 1 && !result->unknown;
}
