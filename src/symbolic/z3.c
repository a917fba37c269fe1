/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perdure-solver: answers the questions on one desk with Z3, until the command ends. A process of
 * its own, so that paths stay small, and that one question too many takes nobody else down.
 *
 *   perdure-solver SESSION OFFSET
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <z3.h>

#include "session/explore.h"

enum { KNOWN = 1 << 16, ENOUGH = 1 << 15, BLAMED = 256 };

static struct explore_desk *desk;
static Z3_context z3;
static Z3_solver solver;

/* Terms of earlier questions, by the hash of their expressions. */
static struct known {
	uint64_t hash;
	Z3_ast vector, truth;
} known[KNOWN];
static uint32_t knowns;
static struct known *term[EXPLORE_NODES];

/* ---- terms ---- */

static Z3_sort bits(unsigned width)
{
	return Z3_mk_bv_sort(z3, width);
}

static Z3_ast vector_of(uint32_t number);

static Z3_ast compare(const struct explore_node *n, Z3_ast a, Z3_ast b)
{
	switch (n->op) {
	case SYMBOLIC_EQ:
		return Z3_mk_eq(z3, a, b);
	case SYMBOLIC_ULT:
		return Z3_mk_bvult(z3, a, b);
	case SYMBOLIC_ULE:
		return Z3_mk_bvule(z3, a, b);
	case SYMBOLIC_SLT:
		return Z3_mk_bvslt(z3, a, b);
	default:
		return Z3_mk_bvsle(z3, a, b);
	}
}

/* A condition as something that is true or false. */
static Z3_ast truth_of(uint32_t number)
{
	const struct explore_node *n = &desk->node[number];
	struct known *k = term[number];
	Z3_ast both[2];

	if (k->truth)
		return k->truth;
	if (n->op >= SYMBOLIC_EQ && n->op <= SYMBOLIC_SLE)
		return k->truth = compare(n, vector_of(n->a), vector_of(n->b));
	switch (n->op) {
	case SYMBOLIC_CONSTANT:
		return k->truth = n->constant ? Z3_mk_true(z3) : Z3_mk_false(z3);
	case SYMBOLIC_AND:
	case SYMBOLIC_OR:
		both[0] = truth_of(n->a);
		both[1] = truth_of(n->b);
		k->truth = n->op == SYMBOLIC_AND ? Z3_mk_and(z3, 2, both) : Z3_mk_or(z3, 2, both);
		return k->truth;
	case SYMBOLIC_XOR:
		return k->truth = Z3_mk_xor(z3, truth_of(n->a), truth_of(n->b));
	case SYMBOLIC_IF:
		return k->truth = Z3_mk_ite(z3, truth_of(n->a), truth_of(n->b), truth_of(n->c));
	default:
		return k->truth = Z3_mk_eq(z3, vector_of(number),
					   Z3_mk_unsigned_int64(z3, 1, bits(1)));
	}
}

static Z3_ast input(uint32_t number)
{
	return Z3_mk_const(z3, Z3_mk_int_symbol(z3, (int)number), bits(8));
}

static Z3_ast combine(const struct explore_node *n, Z3_ast a, Z3_ast b)
{
	switch (n->op) {
	case SYMBOLIC_ADD:
		return Z3_mk_bvadd(z3, a, b);
	case SYMBOLIC_SUB:
		return Z3_mk_bvsub(z3, a, b);
	case SYMBOLIC_MUL:
		return Z3_mk_bvmul(z3, a, b);
	case SYMBOLIC_UDIV:
		return Z3_mk_bvudiv(z3, a, b);
	case SYMBOLIC_SDIV:
		return Z3_mk_bvsdiv(z3, a, b);
	case SYMBOLIC_UREM:
		return Z3_mk_bvurem(z3, a, b);
	case SYMBOLIC_SREM:
		return Z3_mk_bvsrem(z3, a, b);
	case SYMBOLIC_SHL:
		return Z3_mk_bvshl(z3, a, b);
	case SYMBOLIC_LSHR:
		return Z3_mk_bvlshr(z3, a, b);
	case SYMBOLIC_ASHR:
		return Z3_mk_bvashr(z3, a, b);
	case SYMBOLIC_AND:
		return Z3_mk_bvand(z3, a, b);
	case SYMBOLIC_OR:
		return Z3_mk_bvor(z3, a, b);
	case SYMBOLIC_XOR:
		return Z3_mk_bvxor(z3, a, b);
	default:
		return Z3_mk_concat(z3, a, b);
	}
}

static Z3_ast make_vector(uint32_t number)
{
	const struct explore_node *n = &desk->node[number];
	unsigned inner = n->a ? desk->node[n->a].width : 0;

	if (n->op >= SYMBOLIC_EQ && n->op <= SYMBOLIC_SLE)
		return Z3_mk_ite(z3, truth_of(number), Z3_mk_unsigned_int64(z3, 1, bits(1)),
				 Z3_mk_unsigned_int64(z3, 0, bits(1)));
	switch (n->op) {
	case SYMBOLIC_CONSTANT:
		return Z3_mk_unsigned_int64(z3, n->constant, bits(n->width));
	case SYMBOLIC_INPUT:
		return input((uint32_t)n->constant);
	case SYMBOLIC_IF:
		return Z3_mk_ite(z3, truth_of(n->a), vector_of(n->b), vector_of(n->c));
	case SYMBOLIC_EXTRACT:
		return Z3_mk_extract(z3, (unsigned)n->constant + n->width - 1,
				     (unsigned)n->constant, vector_of(n->a));
	case SYMBOLIC_ZEXT:
		return Z3_mk_zero_ext(z3, n->width - inner, vector_of(n->a));
	case SYMBOLIC_SEXT:
		return Z3_mk_sign_ext(z3, n->width - inner, vector_of(n->a));
	default:
		return combine(n, vector_of(n->a), vector_of(n->b));
	}
}

static Z3_ast vector_of(uint32_t number)
{
	struct known *k = term[number];

	if (!k->vector)
		k->vector = make_vector(number);
	return k->vector;
}

static struct known *known_by(uint64_t hash)
{
	uint64_t at = hash % KNOWN;

	while (known[at].hash && known[at].hash != hash)
		at = (at + 1) % KNOWN;
	if (!known[at].hash)
		knowns++;
	known[at].hash = hash;
	return &known[at];
}

/* ---- questions ---- */

static void ignore_error(Z3_context context, Z3_error_code code)
{
	(void)context;
	(void)code;
}

static void start_again(void)
{
	Z3_config config = Z3_mk_config();

	if (z3) {
		Z3_solver_dec_ref(z3, solver);
		Z3_del_context(z3);
	}
	memset(known, 0, sizeof(known));
	knowns = 0;
	z3 = Z3_mk_context(config);
	Z3_del_config(config);
	Z3_set_error_handler(z3, ignore_error);
	solver = Z3_mk_solver(z3);
	Z3_solver_inc_ref(z3, solver);
}

static void limit_time(void)
{
	Z3_params params = Z3_mk_params(z3);

	Z3_params_inc_ref(z3, params);
	Z3_params_set_uint(z3, params, Z3_mk_string_symbol(z3, "timeout"), desk->milliseconds);
	Z3_solver_set_params(z3, solver, params);
	Z3_params_dec_ref(z3, params);
}

static void read_model(void)
{
	Z3_model model = Z3_solver_get_model(z3, solver);

	desk->values = 0;
	if (!model)
		return;
	Z3_model_inc_ref(z3, model);
	for (uint32_t i = 1; i < desk->nodes; i++) {
		uint64_t value = 0;
		Z3_ast result;

		if (desk->node[i].op != SYMBOLIC_INPUT || desk->values == EXPLORE_INPUTS)
			continue;
		if (Z3_model_eval(z3, model, vector_of(i), true, &result))
			Z3_get_numeral_uint64(z3, result, &value);
		desk->input[desk->values] = (uint16_t)desk->node[i].constant;
		desk->value[desk->values++] = (uint8_t)value;
	}
	Z3_model_dec_ref(z3, model);
}

/* Which conditions contradict each other: a later question that has them all is answered, too. */
static void find_core(void)
{
	Z3_ast_vector core;
	unsigned size;

	desk->cores = 0;
	if (desk->conditions > BLAMED)
		return;
	Z3_solver_push(z3, solver);
	for (uint32_t i = 0; i < desk->conditions; i++)
		Z3_solver_assert_and_track(
			z3, solver, truth_of(desk->condition[i]),
			Z3_mk_const(z3, Z3_mk_int_symbol(z3, (int)(EXPLORE_INPUTS + i)),
				    Z3_mk_bool_sort(z3)));
	if (Z3_solver_check(z3, solver) == Z3_L_FALSE) {
		core = Z3_solver_get_unsat_core(z3, solver);
		Z3_ast_vector_inc_ref(z3, core);
		size = Z3_ast_vector_size(z3, core);
		for (unsigned i = 0; size <= EXPLORE_CORE && i < size; i++) {
			Z3_ast name = Z3_ast_vector_get(z3, core, i);
			Z3_func_decl declared = Z3_get_app_decl(z3, Z3_to_app(z3, name));
			int number = Z3_get_symbol_int(z3, Z3_get_decl_name(z3, declared));

			desk->core[desk->cores++] = (uint32_t)number - EXPLORE_INPUTS;
		}
		Z3_ast_vector_dec_ref(z3, core);
	}
	Z3_solver_pop(z3, solver, 1);
}

static void answer(void)
{
	Z3_lbool result;

	if (knowns > ENOUGH || desk->nodes > ENOUGH)
		start_again();
	if (desk->nodes > KNOWN / 2) {
		desk->answer = EXPLORE_UNKNOWN;
		return;
	}
	for (uint32_t i = 1; i < desk->nodes; i++) {
		term[i] = known_by(desk->node[i].hash ? desk->node[i].hash : 1);
		if (desk->node[i].width == 1)
			truth_of(i); /* in order, so that nothing is deep */
		else
			vector_of(i);
	}
	limit_time();
	Z3_solver_push(z3, solver);
	for (uint32_t i = 0; i < desk->conditions; i++)
		Z3_solver_assert(z3, solver, truth_of(desk->condition[i]));
	result = Z3_solver_check(z3, solver);
	desk->answer = result == Z3_L_TRUE    ? EXPLORE_SAT
		       : result == Z3_L_FALSE ? EXPLORE_UNSAT
					      : EXPLORE_UNKNOWN;
	if (result == Z3_L_TRUE)
		read_model();
	Z3_solver_pop(z3, solver, 1);
	if (result == Z3_L_FALSE)
		find_core();
}

int main(int argc, char **argv)
{
	struct rlimit no_core = { 0, 0 };
	uint32_t done;
	int fd;

	if (argc != 3)
		return 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &no_core);
	fd = open(argv[1], O_RDWR | O_CLOEXEC);
	desk = fd < 0 ? MAP_FAILED
		      : mmap(NULL, sizeof(*desk), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			     (off_t)strtoull(argv[2], NULL, 0));
	if (desk == MAP_FAILED) {
		fprintf(stderr, "perdure-solver: cannot open %s: %s\n", argv[1], strerror(errno));
		return 3;
	}
	start_again();
	done = desk->answered;
	for (;;) {
		uint32_t asked = __atomic_load_n(&desk->asked, __ATOMIC_ACQUIRE);

		if (asked == done) {
			syscall(SYS_futex, &desk->asked, FUTEX_WAIT, done, NULL, NULL, 0);
			continue;
		}
		answer();
		done = asked;
		__atomic_store_n(&desk->answered, done, __ATOMIC_RELEASE);
		syscall(SYS_futex, &desk->answered, FUTEX_WAKE, 1, NULL, NULL, 0);
	}
}
