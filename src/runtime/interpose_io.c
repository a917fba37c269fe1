/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * System calls and stdio on buffers in PM: what they fill in is stored, what they send out is
 * loaded.
 */
#include "runtime/format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "model/spin.h"
#include "fibers/fibers.h"
#include "races/races.h"
#include "runtime/execution.h"
#include "symbolic/network.h"
#include "symbolic/symbolic.h"

/* A function that fills [buffer, buffer + length) where `length` may use `result`. */
#define FILLS(type, name, parameters, call, buffer, length)                                        \
	PUBLIC type name parameters                                                                \
	{                                                                                          \
		type result = REAL(name) call;                                                     \
		int saved_errno = errno;                                                           \
		event_stored(buffer, length, FRAME);                                               \
		errno = saved_errno;                                                               \
		return result;                                                                     \
	}

/* The same, but before that it waits for something. */
#define FILLS_LATER(wait, function, type, name, parameters, call, buffer, length)                  \
	PUBLIC type name parameters                                                                \
	{                                                                                          \
		type result;                                                                       \
		int saved_errno;                                                                   \
		result = (wait) ? function(name) call : (type)(-1);                                \
		saved_errno = errno;                                                               \
		event_stored(buffer, length, FRAME);                                               \
		errno = saved_errno;                                                               \
		return result;                                                                     \
	}

#define STREAMS(...) FILLS_LATER((fiber_await_stream(f), true), REAL, __VA_ARGS__)

static void hand_over(int fd, bool given)
{
	if (runtime_races)
		races_handed(fd, given);
}

/* What a thread knows leaves the process. */
static void tell_others(void)
{
	if (runtime_races)
		races_output();
}

/* A function that reads [buffer, buffer + length) before it does its work. */
#define READS(type, name, parameters, call, buffer, length)                                        \
	PUBLIC type name parameters                                                                \
	{                                                                                          \
		event_load(buffer, length, FRAME);                                                 \
		tell_others();                                                                     \
		return REAL(name) call;                                                            \
	}

#undef fread_unlocked
#undef fwrite_unlocked
#define POSITIVE(n) ((n) > 0 ? (size_t)(n) : 0)

PUBLIC ssize_t recv(int fd, void *p, size_t n, int f)
{
	ssize_t result = fiber_await(fd, POLLIN) ? KERNEL(recv)(fd, p, n, f) : -1;
	int saved_errno = errno;

	hand_over(fd, false);
	network_filled(fd, p, POSITIVE(result) < n ? POSITIVE(result) : n, FRAME);
	errno = saved_errno;
	return result;
}

PUBLIC ssize_t recvfrom(int fd, void *restrict p, size_t n, int f, struct sockaddr *restrict a,
			socklen_t *restrict l)
{
	ssize_t result = fiber_await(fd, POLLIN) ? KERNEL(recvfrom)(fd, p, n, f, a, l) : -1;
	int saved_errno = errno;

	network_filled(fd, p, POSITIVE(result) < n ? POSITIVE(result) : n, FRAME);
	errno = saved_errno;
	return result;
}

FILLS(ssize_t, readlink, (const char *restrict path, char *restrict p, size_t n), (path, p, n), p,
      POSITIVE(result))
FILLS(char *, getcwd, (char *p, size_t n), (p, n), p, result &&p ? plain_length(p) + 1 : 0)
FILLS(int, gethostname, (char *p, size_t n), (p, n), p, result == 0 ? strnlen(p, n) : 0)
STREAMS(size_t, fread, (void *restrict p, size_t s, size_t n, FILE *restrict f), (p, s, n, f), p,
	result *s)
FILLS(size_t, fread_unlocked, (void *restrict p, size_t s, size_t n, FILE *restrict f),
      (p, s, n, f), p, result *s)
STREAMS(char *, fgets, (char *restrict p, int n, FILE *restrict f), (p, n, f), p,
	result ? plain_length(p) + 1 : 0)
FILLS(size_t, strftime,
      (char *restrict p, size_t n, const char *restrict f, const struct tm *restrict t),
      (p, n, f, t), p, result ? result + 1 : 0)
FILLS(struct tm *, gmtime_r, (const time_t *restrict t, struct tm *restrict p), (t, p), p,
      result ? sizeof(*p) : 0)
FILLS(struct tm *, localtime_r, (const time_t *restrict t, struct tm *restrict p), (t, p), p,
      result ? sizeof(*p) : 0)

FILLS_LATER(true, KERNEL, int, pipe, (int p[2]), (p), p, result == 0 ? 2 * sizeof(int) : 0)
FILLS_LATER(true, KERNEL, int, pipe2, (int p[2], int f), (p, f), p,
	    result == 0 ? 2 * sizeof(int) : 0)
FILLS_LATER(true, KERNEL, int, socketpair, (int d, int t, int r, int p[2]), (d, t, r, p), p,
	    result == 0 ? 2 * sizeof(int) : 0)
FILLS(int, uname, (struct utsname * p), (p), p, result == 0 ? sizeof(*p) : 0)

PUBLIC ssize_t send(int fd, const void *p, size_t n, int f)
{
	hand_over(fd, true);
	event_load(p, n, FRAME);
	tell_others();
	return KERNEL(send)(fd, p, n, f);
}

PUBLIC ssize_t sendto(int fd, const void *p, size_t n, int f, const struct sockaddr *a, socklen_t l)
{
	event_load(p, n, FRAME);
	tell_others();
	return KERNEL(sendto)(fd, p, n, f, a, l);
}

READS(size_t, fwrite, (const void *restrict p, size_t s, size_t n, FILE *restrict f), (p, s, n, f),
      p, s *n)
READS(size_t, fwrite_unlocked, (const void *restrict p, size_t s, size_t n, FILE *restrict f),
      (p, s, n, f), p, s *n)

PUBLIC int fputs(const char *restrict text, FILE *restrict file)
{
	if (in_window(text))
		event_load_string(text, SIZE_MAX, FRAME);
	tell_others();
	return REAL(fputs)(text, file);
}

PUBLIC int puts(const char *text)
{
	if (in_window(text))
		event_load_string(text, SIZE_MAX, FRAME);
	tell_others();
	return REAL(puts)(text);
}

/* ---- vectors ---- */

static void stored_vector(int fd, const struct iovec *vector, int count, ssize_t n,
			  const struct frame *frame)
{
	for (int i = 0; i < count && n > 0; i++) {
		size_t part = vector[i].iov_len < (size_t)n ? vector[i].iov_len : (size_t)n;

		network_filled(fd, vector[i].iov_base, part, frame);
		n -= part;
	}
}

static void loaded_vector(const struct iovec *vector, int count, const struct frame *frame)
{
	for (int i = 0; i < count; i++)
		event_load(vector[i].iov_base, vector[i].iov_len, frame);
	tell_others();
}

PUBLIC ssize_t readv(int fd, const struct iovec *vector, int count)
{
	ssize_t result;

	if (symbolic_on)
		inputs_changed(fd, 0);
	result = fiber_await(fd, POLLIN) ? KERNEL(readv)(fd, vector, count) : -1;
	stored_vector(fd, vector, count, result, FRAME);
	return result;
}

PUBLIC ssize_t preadv(int fd, const struct iovec *vector, int count, off_t offset)
{
	ssize_t result = REAL(preadv)(fd, vector, count, offset);

	stored_vector(fd, vector, count, result, FRAME);
	return result;
}

PUBLIC ssize_t preadv64(int fd, const struct iovec *vector, int count, off64_t offset)
{
	ssize_t result = REAL(preadv64)(fd, vector, count, offset);

	stored_vector(fd, vector, count, result, FRAME);
	return result;
}

PUBLIC ssize_t recvmsg(int fd, struct msghdr *header, int flags)
{
	ssize_t result = fiber_await(fd, POLLIN) ? KERNEL(recvmsg)(fd, header, flags) : -1;

	hand_over(fd, false);
	stored_vector(fd, header->msg_iov, header->msg_iovlen, result, FRAME);
	return result;
}

PUBLIC ssize_t writev(int fd, const struct iovec *vector, int count)
{
	ssize_t result;

	hand_over(fd, true);
	loaded_vector(vector, count, FRAME);
	world_make_own(fd);
	result = KERNEL(writev)(fd, vector, count);
	world_note_content(fd);
	return result;
}

PUBLIC ssize_t pwritev(int fd, const struct iovec *vector, int count, off_t offset)
{
	ssize_t result;

	loaded_vector(vector, count, FRAME);
	world_make_own(fd);
	result = REAL(pwritev)(fd, vector, count, offset);
	world_note_content(fd);
	return result;
}

PUBLIC ssize_t sendmsg(int fd, const struct msghdr *header, int flags)
{
	hand_over(fd, true);
	loaded_vector(header->msg_iov, header->msg_iovlen, FRAME);
	return KERNEL(sendmsg)(fd, header, flags);
}

/* The C library makes these system calls itself. */
PUBLIC int eventfd_write(int fd, eventfd_t value)
{
	hand_over(fd, true);
	return KERNEL(eventfd_write)(fd, value);
}

PUBLIC int eventfd_read(int fd, eventfd_t *value)
{
	int result = fiber_await(fd, POLLIN) ? KERNEL(eventfd_read)(fd, value) : -1;

	hand_over(fd, false);
	return result;
}

/* ---- formatted output and input ---- */

static int print_to(char *to, size_t room, const char *format, va_list arguments,
		    const struct frame *frame)
{
	int length;

	format_loads(format, arguments, frame);
	length = REAL(vsnprintf)(to, room, format, arguments);
	if (room && length >= 0)
		event_stored(to, (size_t)length < room ? (size_t)length + 1 : room, frame);
	return length;
}

/* Calls `expression` with a started va_list called arguments. */
#define WITH_ARGUMENTS(last, expression)                                                           \
	({                                                                                         \
		va_list arguments;                                                                 \
		__typeof__(expression) value_;                                                     \
		va_start(arguments, last);                                                         \
		value_ = (expression);                                                             \
		va_end(arguments);                                                                 \
		value_;                                                                            \
	})

/* vsprintf has no bound; INT_MAX is what it could write at most. */
#define UNBOUNDED 0x7fffffff

PUBLIC int vsnprintf(char *restrict to, size_t n, const char *restrict format, va_list arguments)
{
	return print_to(to, n, format, arguments, FRAME);
}

PUBLIC int vsprintf(char *restrict to, const char *restrict format, va_list arguments)
{
	return print_to(to, UNBOUNDED, format, arguments, FRAME);
}

PUBLIC int snprintf(char *restrict to, size_t n, const char *restrict format, ...)
{
	const struct frame *frame = FRAME;

	return WITH_ARGUMENTS(format, print_to(to, n, format, arguments, frame));
}

PUBLIC int sprintf(char *restrict to, const char *restrict format, ...)
{
	const struct frame *frame = FRAME;

	return WITH_ARGUMENTS(format, print_to(to, UNBOUNDED, format, arguments, frame));
}

int __vsprintf_chk(char *to, int flag, size_t room, const char *format, va_list arguments);
PUBLIC int __vsnprintf_chk(char *to, size_t n, int flag, size_t room, const char *format,
			   va_list arguments);

/* With libc's own checks, which end the program when the buffer is too small. */
static int print_checked(char *to, size_t n, int flag, size_t room, const char *format,
			 va_list arguments, const struct frame *frame)
{
	int length;

	format_loads(format, arguments, frame);
	length = REAL(__vsnprintf_chk)(to, n, flag, room, format, arguments);
	if (n && length >= 0)
		event_stored(to, (size_t)length < n ? (size_t)length + 1 : n, frame);
	return length;
}

static int print_unbounded(char *to, int flag, size_t room, const char *format, va_list arguments,
			   const struct frame *frame)
{
	int length;

	format_loads(format, arguments, frame);
	length = REAL(__vsprintf_chk)(to, flag, room, format, arguments);
	if (length >= 0)
		event_stored(to, (size_t)length + 1, frame);
	return length;
}

PUBLIC int __vsnprintf_chk(char *to, size_t n, int flag, size_t room, const char *format,
			   va_list arguments)
{
	return print_checked(to, n, flag, room, format, arguments, FRAME);
}

PUBLIC int __snprintf_chk(char *to, size_t n, int flag, size_t room, const char *format, ...);
PUBLIC int __snprintf_chk(char *to, size_t n, int flag, size_t room, const char *format, ...)
{
	const struct frame *frame = FRAME;

	(void)flag;
	return WITH_ARGUMENTS(format, print_to(to, n < room ? n : room, format, arguments, frame));
}

PUBLIC int __sprintf_chk(char *to, int flag, size_t room, const char *format, ...);
PUBLIC int __sprintf_chk(char *to, int flag, size_t room, const char *format, ...)
{
	const struct frame *frame = FRAME;

	return WITH_ARGUMENTS(format, print_unbounded(to, flag, room, format, arguments, frame));
}

PUBLIC int __vsprintf_chk(char *to, int flag, size_t room, const char *format, va_list arguments);
PUBLIC int __vsprintf_chk(char *to, int flag, size_t room, const char *format, va_list arguments)
{
	return print_unbounded(to, flag, room, format, arguments, FRAME);
}

static int print_file(FILE *file, const char *format, va_list arguments, const struct frame *frame)
{
	format_loads(format, arguments, frame);
	return REAL(vfprintf)(file, format, arguments);
}

PUBLIC int vfprintf(FILE *restrict file, const char *restrict format, va_list arguments)
{
	return print_file(file, format, arguments, FRAME);
}

PUBLIC int vprintf(const char *restrict format, va_list arguments)
{
	return print_file(stdout, format, arguments, FRAME);
}

PUBLIC int fprintf(FILE *restrict file, const char *restrict format, ...)
{
	const struct frame *frame = FRAME;

	return WITH_ARGUMENTS(format, print_file(file, format, arguments, frame));
}

PUBLIC int printf(const char *restrict format, ...)
{
	const struct frame *frame = FRAME;

	return WITH_ARGUMENTS(format, print_file(stdout, format, arguments, frame));
}

PUBLIC int __printf_chk(int flag, const char *format, ...);
PUBLIC int __printf_chk(int flag, const char *format, ...)
{
	const struct frame *frame = FRAME;

	(void)flag;
	return WITH_ARGUMENTS(format, print_file(stdout, format, arguments, frame));
}

PUBLIC int __fprintf_chk(FILE *file, int flag, const char *format, ...);
PUBLIC int __fprintf_chk(FILE *file, int flag, const char *format, ...)
{
	const struct frame *frame = FRAME;

	(void)flag;
	return WITH_ARGUMENTS(format, print_file(file, format, arguments, frame));
}

static int scan_text(const char *text, const char *format, va_list arguments,
		     const struct frame *frame)
{
	va_list again;
	int converted;

	if (in_window(text))
		event_load_string(text, SIZE_MAX, frame);
	va_copy(again, arguments);
	converted = REAL(vsscanf)(text, format, arguments);
	format_stores(format, again, converted, frame);
	va_end(again);
	return converted;
}

static int scan_file(FILE *file, const char *format, va_list arguments, const struct frame *frame)
{
	va_list again;
	int converted;

	va_copy(again, arguments);
	fiber_await_stream(file);
	converted = REAL(vfscanf)(file, format, arguments);
	format_stores(format, again, converted, frame);
	va_end(again);
	return converted;
}

/* Each name also as what <stdio.h> of C99 renames it to. */
#define SCANNERS(prefix)                                                                           \
	PUBLIC int prefix##sscanf(const char *restrict text, const char *restrict format, ...);    \
	PUBLIC int prefix##fscanf(FILE *restrict file, const char *restrict format, ...);          \
	PUBLIC int prefix##scanf(const char *restrict format, ...);                                \
	PUBLIC int prefix##sscanf(const char *restrict text, const char *restrict format, ...)     \
	{                                                                                          \
		const struct frame *frame = FRAME;                                                 \
		return WITH_ARGUMENTS(format, scan_text(text, format, arguments, frame));          \
	}                                                                                          \
	PUBLIC int prefix##fscanf(FILE *restrict file, const char *restrict format, ...)           \
	{                                                                                          \
		const struct frame *frame = FRAME;                                                 \
		return WITH_ARGUMENTS(format, scan_file(file, format, arguments, frame));          \
	}                                                                                          \
	PUBLIC int prefix##scanf(const char *restrict format, ...)                                 \
	{                                                                                          \
		const struct frame *frame = FRAME;                                                 \
		return WITH_ARGUMENTS(format, scan_file(stdin, format, arguments, frame));         \
	}
SCANNERS(__isoc99_)

/* ---- fortified system calls ---- */

PUBLIC ssize_t __read_chk(int fd, void *p, size_t n, size_t room);
PUBLIC ssize_t __read_chk(int fd, void *p, size_t n, size_t room)
{
	ssize_t result = REAL(__read_chk)(fd, p, n, room);

	event_stored(p, POSITIVE(result), FRAME);
	return result;
}

PUBLIC ssize_t __pread_chk(int fd, void *p, size_t n, off_t offset, size_t room);
PUBLIC ssize_t __pread_chk(int fd, void *p, size_t n, off_t offset, size_t room)
{
	ssize_t result = REAL(__pread_chk)(fd, p, n, offset, room);

	event_stored(p, POSITIVE(result), FRAME);
	return result;
}

PUBLIC ssize_t __recv_chk(int fd, void *p, size_t n, size_t room, int flags);
PUBLIC ssize_t __recv_chk(int fd, void *p, size_t n, size_t room, int flags)
{
	ssize_t result = REAL(__recv_chk)(fd, p, n, room, flags);

	event_stored(p, POSITIVE(result) < n ? POSITIVE(result) : n, FRAME);
	return result;
}

PUBLIC size_t __fread_chk(void *p, size_t room, size_t size, size_t n, FILE *file);
PUBLIC size_t __fread_chk(void *p, size_t room, size_t size, size_t n, FILE *file)
{
	size_t result = REAL(__fread_chk)(p, room, size, n, file);

	event_stored(p, result * size, FRAME);
	return result;
}

PUBLIC char *__fgets_chk(char *p, size_t room, int n, FILE *file);
PUBLIC char *__fgets_chk(char *p, size_t room, int n, FILE *file)
{
	char *result = REAL(__fgets_chk)(p, room, n, file);

	event_stored(p, result ? plain_length(p) + 1 : 0, FRAME);
	return result;
}
