/* SPDX-License-Identifier: BSD-3-Clause */
/* Included first by `perdure-cc --symbolic`: templates are built with the program, not taken from
 * libstdc++, whose code has no expressions. */
#if defined(__cplusplus) && __has_include(<bits/c++config.h>)
#include <bits/c++config.h>
#undef _GLIBCXX_EXTERN_TEMPLATE
#define _GLIBCXX_EXTERN_TEMPLATE 0
#endif
