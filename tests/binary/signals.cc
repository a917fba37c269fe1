// SPDX-License-Identifier: BSD-3-Clause
// Signals at any instruction: signals POOL. A timer interrupts code that stores to PM and to ordinary
// memory; its handler looks at the stack it is on, stores to PM itself, and now and then jumps out. And
// the program's own traps, blocked ones, and faults that handlers repair.
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

static volatile uint64_t *pm;
static volatile uint64_t ordinary[64];
static volatile sig_atomic_t ticks, lost, outside, jumps;
static sigjmp_buf out;
static volatile sig_atomic_t may_jump;
static uintptr_t text_start, text_end;

extern "C" __attribute__((noinline, noipa)) void work(long rounds);

static _Unwind_Reason_Code find_work(struct _Unwind_Context *context, void *found)
{
	if (_Unwind_FindEnclosingFunction((void *)_Unwind_GetIP(context)) == (void *)work)
		*(bool *)found = true;
	return _URC_NO_REASON;
}

static void tick(int, siginfo_t *, void *context)
{
	uintptr_t pc = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	bool found = false;

	ticks = ticks + 1;
	// In the program's code, or a library's: but nowhere else.
	if (pc >= text_start && pc < text_end) {
		_Unwind_Backtrace(find_work, &found);
		if (!found)
			lost = lost + 1;
	} else {
		outside = outside + 1;
	}
	pm[40] = pm[40] + 1;
	if (may_jump && ticks % 16 == 0) {
		jumps = jumps + 1;
		siglongjmp(out, 1);
	}
}

extern "C" __attribute__((noinline, noipa)) void work(long rounds)
{
	for (long i = 0; i < rounds; i++) {
		pm[i % 32] = pm[i % 32] + i;
		ordinary[i % 64] = ordinary[i % 64] + i;
		__atomic_fetch_add(&pm[33], 1, __ATOMIC_RELAXED);
		__asm__ volatile("rep stosb" : : "D"(pm + 48), "a"(7), "c"(64) : "memory");
	}
}

static volatile sig_atomic_t traps;

static void trapped(int, siginfo_t *, void *)
{
	traps = traps + 1;
}

static void skip_illegal(int, siginfo_t *, void *context)
{
	traps = traps + 100;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

static char *readonly;

static void repair(int, siginfo_t *info, void *)
{
	if ((char *)info->si_addr >= readonly && (char *)info->si_addr < readonly + 4096) {
		mprotect(readonly, 4096, PROT_READ | PROT_WRITE);
		return;
	}
	_exit(66);
}

struct Thrown {
	int number;
};

__attribute__((noinline, noipa)) static void raise_it(volatile uint64_t *p, int number)
{
	p[0] = number;
	if (number > 2)
		throw Thrown{ number };
	raise_it(p + 1, number + 1);
	p[0] = p[0] + 1;
}

static int note_text(struct dl_phdr_info *info, size_t, void *)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
			text_start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			text_end = text_start + info->dlpi_phdr[i].p_memsz;
		}
	return 1; // only the program itself
}

static void set(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = {};

	action.sa_sigaction = handler;
	action.sa_flags = SA_SIGINFO | flags;
	sigaction(number, &action, nullptr);
}

int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	long rounds = argc > 2 ? atol(argv[2]) : 20000;
	struct itimerval often = { { 0, 150 }, { 0, 150 } }, never = {};
	sigset_t block, old;

	if (fd < 0 || ftruncate(fd, 65536) < 0)
		return 2;
	pm = (volatile uint64_t *)mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	dl_iterate_phdr(note_text, nullptr);

	// A handler that returns.
	set(SIGALRM, tick, SA_RESTART);
	setitimer(ITIMER_REAL, &often, nullptr);
	work(rounds);
	setitimer(ITIMER_REAL, &never, nullptr);
	printf("sums %lu %lu, ticks are counted in PM %d, stacks lost %d, some ticks %d\n", pm[33], ordinary[7],
	       pm[40] == (uint64_t)ticks, lost, ticks > 3);

	// One that jumps out.
	may_jump = 1;
	setitimer(ITIMER_REAL, &often, nullptr);
	for (volatile int i = 0; i < 200; i = i + 1)
		if (sigsetjmp(out, 1) == 0)
			work(rounds / 100);
	may_jump = 0;
	setitimer(ITIMER_REAL, &never, nullptr);

	// The program's own traps, while these are blocked and not.
	set(SIGTRAP, trapped, 0);
	set(SIGILL, skip_illegal, 0);
	__asm__ volatile("int3");
	__asm__ volatile("ud2");
	raise(SIGTRAP);
	sigemptyset(&block);
	sigaddset(&block, SIGTRAP);
	sigaddset(&block, SIGILL);
	sigprocmask(SIG_BLOCK, &block, nullptr);
	work(10);
	sigprocmask(SIG_SETMASK, nullptr, &old);
	printf("traps %d, blocked %d %d\n", traps, sigismember(&old, SIGTRAP), sigismember(&old, SIGILL));
	sigprocmask(SIG_UNBLOCK, &block, nullptr);
	struct sigaction before;
	sigaction(SIGTRAP, nullptr, &before);
	printf("handlers are the program's own: %d %d\n", before.sa_sigaction == trapped,
	       signal(SIGILL, SIG_DFL) == (sighandler_t)skip_illegal);

	// A fault in a store to PM, which the handler repairs.
	readonly = (char *)pm + 8192;
	mprotect(readonly, 4096, PROT_READ);
	set(SIGSEGV, repair, 0);
	for (int i = 0; i < 4096; i += 64)
		readonly[i] = (char)i;
	signal(SIGSEGV, SIG_DFL);
	int sum = 0;
	for (int i = 0; i < 4096; i++)
		sum += (unsigned char)readonly[i];
	printf("repaired %d\n", sum);

	// Exceptions through patched code.
	try {
		raise_it(pm + 100, 0);
	} catch (const Thrown &thrown) {
		printf("caught %d %lu\n", thrown.number, pm[103]);
	}

	// A child that dies of what it does.
	fflush(stdout);
	pid_t child = fork();
	if (!child) {
		signal(SIGTRAP, SIG_DFL);
		pm[200] = 1;
		__asm__ volatile("int3");
		_exit(0);
	}
	int status;
	waitpid(child, &status, 0);
	printf("child %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : -1);
	return 0;
}
