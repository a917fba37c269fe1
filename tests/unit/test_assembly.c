/* SPDX-License-Identifier: BSD-3-Clause */
/* Inline assembly: every spelling that real programs use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "compile/assembly.h"

#define CLOBBERS ",~{memory},~{dirflag},~{fpsr},~{flags}"

static struct assembly parse(const char *text, const char *constraints)
{
	struct assembly a;

	assembly_parse(text, strlen(text), constraints, strlen(constraints), &a);
	return a;
}

static void test_flushes(void **state)
{
	static const struct {
		const char *text, *constraints;
		int kind;
	} cases[] = {
		{ "clwb $0", "=*m,*m" CLOBBERS, PERDURE_CLWB },
		{ "clwb ($0)", "r" CLOBBERS, PERDURE_CLWB },
		{ "CLWB ($0)", "r" CLOBBERS, PERDURE_CLWB },
		{ ".byte 0x66; xsaveopt $0", "=*m,*m" CLOBBERS, PERDURE_CLWB },
		{ ".byte 0x66\n\txsaveopt $0", "=*m,*m" CLOBBERS, PERDURE_CLWB },
		{ "clflush ${0:P}", "=*m,*m" CLOBBERS, PERDURE_CLFLUSH },
		{ ".byte 0x66; clflush $0", "=*m,*m" CLOBBERS, PERDURE_CLFLUSHOPT },
		{ "clflushopt 64($0)", "r" CLOBBERS, PERDURE_CLFLUSHOPT },
		{ "clflush (%rdi)", "{di}" CLOBBERS, PERDURE_CLFLUSH },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct assembly a = parse(cases[i].text, cases[i].constraints);

		assert_true(a.only_flush);
		assert_false(a.unknown);
		assert_int_equal(a.effects, 1);
		assert_int_equal(a.effect[0].kind, EFFECT_FLUSH);
		assert_int_equal(a.effect[0].detail, cases[i].kind);
		assert_int_equal(a.effect[0].operand, 0);
	}
}

static void test_fences(void **state)
{
	struct assembly a = parse("sfence", "~{memory}");

	(void)state;
	assert_int_equal(a.effects, 1);
	assert_int_equal(a.effect[0].detail, PERDURE_SFENCE);
	a = parse("mfence ; lfence", "~{memory}");
	assert_int_equal(a.effects, 2);
	assert_int_equal(a.effect[1].detail, PERDURE_LFENCE);
	assert_false(a.unknown);
}

static void test_flush_and_fence(void **state)
{
	struct assembly a = parse("movq $1, ($0)\n\tclwb ($0)\n\tsfence", "r,r" CLOBBERS);

	(void)state;
	assert_int_equal(a.effects, 3);
	assert_int_equal(a.effect[0].kind, EFFECT_STORE);
	assert_int_equal(a.effect[0].size, 8);
	assert_int_equal(a.effect[1].kind, EFFECT_FLUSH);
	assert_int_equal(a.effect[2].kind, EFFECT_FENCE);
	assert_false(a.only_flush);
}

static void test_stores(void **state)
{
	struct assembly a = parse("movnti $1, $0", "=*m,r" CLOBBERS);

	(void)state;
	assert_int_equal(a.effect[0].kind, EFFECT_STORE);
	assert_true(a.effect[0].flags & PERDURE_NONTEMPORAL);
	a = parse("movnti $0, 8($1)", "r,r" CLOBBERS);
	assert_int_equal(a.effect[0].displacement, 8);
	assert_int_equal(a.effect[0].operand, 1);
	a = parse("vmovntdq %ymm0, ($0)", "r" CLOBBERS);
	assert_int_equal(a.effect[0].size, 32);
	assert_true(a.effect[0].flags & PERDURE_NONTEMPORAL);
	a = parse("lock; xaddl $0, $1", "=r,=*m,0,*m" CLOBBERS);
	assert_true(a.locked);
	assert_true(a.effect[0].flags & PERDURE_RMW);
	a = parse("xchgq $0, $1", "=r,=*m,0,*m" CLOBBERS);
	assert_true(a.locked);
	a = parse("lock cmpxchg16b $0", "=*m,{ax},{dx},{bx},{cx},*m" CLOBBERS);
	assert_true(a.effect[0].flags & PERDURE_IF_CHANGED);
	a = parse("rep movsb", "={di},={si},={cx},0,1,2" CLOBBERS);
	assert_int_equal(a.effects, 2);
	assert_int_equal(a.effect[1].kind, EFFECT_STRING_STORE);
	assert_int_equal(a.effect[1].size, 1);
	assert_false(a.unknown);
}

static void test_harmless_and_unknown(void **state)
{
	struct assembly a = parse("", "~{memory}");

	(void)state;
	assert_int_equal(a.effects, 0);
	assert_false(a.unknown);
	assert_false(parse("pause", "~{memory}").unknown);
	assert_false(parse("rdtsc", "={ax},={dx}").unknown);
	assert_false(parse("1: nop # a comment; enqcmd", "").unknown);
	assert_true(parse("enqcmd ($0), %rax", "r" CLOBBERS).unknown);
	assert_false(parse("vgf2p8mulb %xmm0, %xmm1, %xmm2", "").unknown);
	a = parse("frobnicate $1, $0", "=*m,r");
	assert_false(a.unknown);
	assert_int_equal(a.effects, 1);
	assert_int_equal(a.effect[0].kind, EFFECT_STORE);
	assert_true(parse("movq %rax, ($0,$1,8)", "r,r" CLOBBERS).unknown);
	assert_true(
		parse("rolq $$3, %rdi ; rolq $$13, %rdi\n\trolq $$61, %rdi ; rolq $$51, %rdi\n\t"
		      "xchgq %rbx,%rbx",
		      "={dx},{ax},0" CLOBBERS)
			.client_request);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flushes),
		cmocka_unit_test(test_fences),
		cmocka_unit_test(test_flush_and_fence),
		cmocka_unit_test(test_stores),
		cmocka_unit_test(test_harmless_and_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
