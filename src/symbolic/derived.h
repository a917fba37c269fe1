/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations that are made of others: bits counted and turned, sums that do not fit, and the like.
 */
#ifndef SYMBOLIC_DERIVED_H
#define SYMBOLIC_DERIVED_H

#include "symbolic/expression.h"

/* Those of abi.h from SYMBOLIC_OPS on, as expression_make. */
uint32_t derived_make(enum symbolic_op op, unsigned width, uint32_t a, uint32_t b);

#endif
