/* SPDX-License-Identifier: BSD-3-Clause */
/* What printf and scanf formats say about memory. */
#ifndef RUNTIME_FORMAT_H
#define RUNTIME_FORMAT_H

#include <stdarg.h>

#include "runtime/runtime.h"

/* Strings that a printf format reads. */
HIDDEN void format_loads(const char *format, va_list arguments, const struct frame *frame);
/* What a scanf that converted `converted` items stored. */
HIDDEN void format_stores(const char *format, va_list arguments, int converted,
			  const struct frame *frame);

#endif
