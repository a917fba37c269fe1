/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

void message(const char *format, ...)
{
	char text[1024] = "perdure: ";
	va_list arguments;
	size_t length;
	int written;

	va_start(arguments, format);
	written = REAL(vsnprintf)(text + 9, sizeof(text) - 10, format, arguments);
	va_end(arguments);
	length = 9 + (written < 0 ? 0 : (size_t)written);
	if (length > sizeof(text) - 2)
		length = sizeof(text) - 2;
	text[length++] = '\n';
	syscall(SYS_write, STDERR_FILENO, text, length);
}
