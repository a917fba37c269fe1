/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * System calls that programs make by number, through libc's syscall: those that concern PM are
 * those of the functions that stand in for libc's. The runtime's own are made as they are.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fibers/fibers.h"
#include "runtime/runtime.h"

/* Where this library's own code is. */
extern const char __ehdr_start[] HIDDEN, __etext[] HIDDEN;

static long call_kernel(long number, const long argument[6])
{
	register long r10 __asm__("r10") = argument[3], r8 __asm__("r8") = argument[4],
			  r9 __asm__("r9") = argument[5];
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(argument[0]), "S"(argument[1]), "d"(argument[2]),
			   "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	if ((unsigned long)result > -4096ul) {
		errno = (int)-result;
		return -1;
	}
	return result;
}

long kernel_futex(uint32_t *word, int operation, uint32_t value, const struct timespec *time)
{
	const long argument[6] = { (long)word, operation, value, (long)time };

	return call_kernel(SYS_futex, argument);
}

PUBLIC long syscall(long number, ...)
{
	uintptr_t caller = (uintptr_t)__builtin_return_address(0);
	long argument[6], a, b, c, d, e, result;
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		argument[i] = va_arg(list, long);
	va_end(list);
	if (fibers_on && fiber_system_call(number, argument, &result))
		return result;
	if (!runtime_session || (caller >= (uintptr_t)__ehdr_start && caller < (uintptr_t)__etext))
		return call_kernel(number, argument);
	a = argument[0];
	b = argument[1];
	c = argument[2];
	d = argument[3];
	e = argument[4];
	switch (number) {
	case SYS_mmap:
		return (long)mmap((void *)a, (size_t)b, (int)c, (int)d, (int)e, argument[5]);
	case SYS_munmap:
		return munmap((void *)a, (size_t)b);
	case SYS_mremap:
		return (long)mremap((void *)a, (size_t)b, (size_t)c, (int)d, (void *)e);
	case SYS_msync:
		return msync((void *)a, (size_t)b, (int)c);
	case SYS_open:
		return open((const char *)a, (int)b, (mode_t)c);
	case SYS_openat:
		return openat((int)a, (const char *)b, (int)c, (mode_t)d);
	case SYS_close:
		return close((int)a);
	case SYS_ftruncate:
		return ftruncate((int)a, b);
	case SYS_read:
		return read((int)a, (void *)b, (size_t)c);
	case SYS_pread64:
		return pread((int)a, (void *)b, (size_t)c, d);
	case SYS_write:
		return write((int)a, (const void *)b, (size_t)c);
	case SYS_pwrite64:
		return pwrite((int)a, (const void *)b, (size_t)c, d);
	case SYS_readv:
		return readv((int)a, (const struct iovec *)b, (int)c);
	default:
		return call_kernel(number, argument);
	}
}
