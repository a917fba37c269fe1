/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals that arrive in moved code, or while a hit is told. The program's handlers see registers
 * as if the code were where it was; a signal from outside that comes during a hit waits until that
 * is over. And traps: the program's handlers for them are called for all but our own, which must
 * not be blocked.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "binary/binary.h"
#include "races/races.h"
#include "runtime/execution.h"

enum { SIGNALS = 65, WAITING = 8 };

/* What the program wants, by signal. */
static struct sigaction wanted[SIGNALS];
static bool on;

static bool is_trap(int number)
{
	return number == SIGTRAP || number == SIGILL;
}

/* ---- signals that wait ---- */

__thread unsigned binary_waiting __attribute__((tls_model("initial-exec")));
static __thread struct {
	bool delivering;
	siginfo_t info[WAITING];
} waiting __attribute__((tls_model("initial-exec")));

/* Not by an instruction of the thread itself. */
static bool is_from_outside(int number, const siginfo_t *info)
{
	switch (number) {
	case SIGSEGV:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
	case SIGTRAP:
		return info->si_code <= 0;
	default:
		return true;
	}
}

static bool is_between(uintptr_t pc, const void *start, const void *end)
{
	return pc - (uintptr_t)start < (uintptr_t)end - (uintptr_t)start;
}

/* A load is being noted: the entry will look for signals when that is done. */
static bool is_brief(uintptr_t pc)
{
	return is_between(pc, binary_brief, binary_brief_restores) ||
	       is_between(pc, __start_races_brief, __stop_races_brief);
}

static bool has_to_wait(int number, const siginfo_t *info, uintptr_t pc)
{
	if (!(binary_hit_registers || is_brief(pc)) || waiting.delivering ||
	    !is_from_outside(number, info) || binary_waiting == WAITING)
		return false;
	waiting.info[binary_waiting++] = *info;
	return true;
}

void binary_deliver(void)
{
	if (!binary_waiting)
		return;
	waiting.delivering = true;
	while (binary_waiting) {
		siginfo_t info = waiting.info[0];

		memmove(waiting.info, waiting.info + 1, --binary_waiting * sizeof(info));
		if (info.si_code > 0 || syscall(SYS_rt_tgsigqueueinfo, getpid(),
						syscall(SYS_gettid), info.si_signo, &info) < 0)
			syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), info.si_signo);
	}
	waiting.delivering = false;
}

void binary_stop_delivering(void)
{
	waiting.delivering = false;
}

/* ---- registers as the program would have them ---- */

/* What was changed, to be changed back. */
struct shown {
	bool changed;
	gregset_t before, after;
};

static void show_hit(const struct binary_registers *r, greg_t *g)
{
	const struct binary_site *site = &binary_sites[r->site & BINARY_NUMBER];
	const uint64_t value[] = { r->r8,  r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15,
				   r->rdi, r->rsi, r->rbp, r->rbx, r->rdx, r->rax, r->rcx };

	for (unsigned i = 0; i < sizeof(value) / sizeof(*value); i++)
		g[REG_R8 + i] = (greg_t)value[i];
	g[REG_RSP] = (greg_t)((uintptr_t)(r + 1) + BINARY_RED_ZONE);
	g[REG_RIP] = (greg_t)(site->address + (r->site & BINARY_AFTER ? site->length : 0));
	g[REG_EFL] = (greg_t)r->flags;
}

static unsigned steps_between(uintptr_t start, uintptr_t pc)
{
	unsigned steps = 0, length;

	for (; start < pc && (length = binary_length(start)); start += length)
		steps++;
	return steps;
}

static unsigned words_popped(uintptr_t pc)
{
	enum { BUT_TWO = 14 };
	uintptr_t flags = (uintptr_t)binary_entry_flags, leaves = (uintptr_t)binary_entry_leaves;

	if (pc <= flags)
		return steps_between((uintptr_t)binary_entry_restores, pc);
	if (pc == leaves)
		return BUT_TWO + 2;
	return BUT_TWO + (pc > leaves ? steps_between(leaves + 1, pc) : 0);
}

/* From `back` and `site` on. */
static void show_way_in(const uint64_t *top, greg_t *g)
{
	const struct binary_site *site = &binary_sites[top[1] & BINARY_NUMBER];

	if (top[1] & BINARY_BRIEF)
		g[REG_RDI] = (greg_t)binary_kept_rdi;
	g[REG_RIP] = (greg_t)(site->address + (top[1] & BINARY_AFTER ? site->length : 0));
	g[REG_RSP] = (greg_t)(top + 2) + BINARY_RED_ZONE;
}

/* A load has been noted, and two registers are restored, then the flags, then rax. */
static void show_brief(greg_t *g)
{
	enum { CHANGED = 0x8d5, LOW = 0xd5, OVERFLOW_BIT = 11, FLAGS_POPPED = 1, RAX_POPPED = 4 };
	uintptr_t pc = (uintptr_t)g[REG_RIP], flags = (uintptr_t)binary_brief_flags;
	unsigned popped = pc > flags ? 2 : steps_between((uintptr_t)binary_brief_restores, pc);
	unsigned steps = pc > flags ? steps_between(flags, pc) : 0;
	const struct binary_brief *kept;

	popped = (popped < 2 ? popped : 2) + (steps >= FLAGS_POPPED) + (steps >= RAX_POPPED);
	kept = (const void *)((const uint64_t *)g[REG_RSP] - popped);
	g[REG_RBP] = (greg_t)kept->rbp;
	g[REG_RSI] = (greg_t)kept->rsi;
	g[REG_RAX] = (greg_t)kept->rax;
	g[REG_EFL] = (g[REG_EFL] & ~(greg_t)CHANGED) | (greg_t)(kept->flags >> 8 & LOW) |
		     (greg_t)(kept->flags & 1) << OVERFLOW_BIT;
	show_way_in(&kept->back, g);
}

/* Registers while the entry saves or restores them; false if it is not there. */
static bool show_entry(greg_t *g)
{
	uintptr_t pc = (uintptr_t)g[REG_RIP], start = (uintptr_t)binary_entry,
		  saved = (uintptr_t)binary_entry_saved,
		  restores = (uintptr_t)binary_entry_restores, end = (uintptr_t)binary_entry_end;

	if (binary_is_way_in(pc) || (pc >= start && pc < saved)) {
		unsigned pushed = pc >= start && pc < saved ? steps_between(start, pc) : 0;

		show_way_in((const uint64_t *)g[REG_RSP] + pushed, g);
		return true;
	}
	if (is_between(pc, binary_brief_restores, binary_brief_end)) {
		show_brief(g);
		return true;
	}
	if (pc >= saved && pc < restores) {
		show_hit((const struct binary_registers *)g[REG_RBX], g);
		return true;
	}
	if (pc >= restores && pc < end) {
		uint64_t *top = (uint64_t *)g[REG_RSP] - words_popped(pc);

		/* What was popped is still there. */
		show_hit((const struct binary_registers *)(top - 2), g);
		return true;
	}
	return false;
}

static void raise_stack(greg_t *g, enum binary_stack stack)
{
	const greg_t *top = (const greg_t *)g[REG_RSP];

	switch (stack) {
	case BINARY_AS_IT_WAS:
		return;
	case BINARY_RETURN_PUSHED:
		g[REG_RSP] += 8;
		return;
	case BINARY_FLAGS_PUSHED:
		g[REG_EFL] = top[0];
		g[REG_RCX] = top[1];
		g[REG_RSP] += 16;
		break;
	case BINARY_RCX_PUSHED:
		g[REG_RCX] = top[0];
		g[REG_RSP] += 8;
		break;
	case BINARY_SITE_PUSHED:
		g[REG_RSP] += 8;
		break;
	case BINARY_SITE_PUSHED_RDI_KEPT:
		g[REG_RSP] += 8;
		g[REG_RDI] = (greg_t)binary_kept_rdi;
		break;
	case BINARY_RDI_KEPT:
		g[REG_RDI] = (greg_t)binary_kept_rdi;
		break;
	case BINARY_LOWERED:
		break;
	}
	g[REG_RSP] += BINARY_RED_ZONE;
}

static void show(struct shown *view, greg_t *g)
{
	enum binary_stack stack;
	uintptr_t original;

	memcpy(view->before, g, sizeof(view->before));
	if (binary_look_up((uintptr_t)g[REG_RIP], &original, &stack)) {
		raise_stack(g, stack);
		g[REG_RIP] = (greg_t)original;
	} else if (!show_entry(g)) {
		return;
	}
	memcpy(view->after, g, sizeof(view->after));
	view->changed = true;
}

/* A handler that has left everything where it was goes on where it was stopped. */
static void hide(const struct shown *view, greg_t *g)
{
	if (!view->changed)
		return;
	if (g[REG_RIP] != view->after[REG_RIP] || g[REG_RSP] != view->after[REG_RSP]) {
		thread_abandon();
		return;
	}
	for (unsigned i = 0; i < NGREG; i++)
		if (g[i] == view->after[i])
			g[i] = view->before[i];
}

/* ---- handlers ---- */

static void call(const struct sigaction *action, int number, siginfo_t *info, void *context)
{
	if (action->sa_flags & SA_SIGINFO)
		action->sa_sigaction(number, info, context);
	else
		action->sa_handler(number);
}

/* Nobody handles it: it happens again, without us. */
static void happen_again(int number, const siginfo_t *info, const struct sigaction *action)
{
	if (action->sa_handler == SIG_IGN && is_from_outside(number, info))
		return;
	REAL(sigaction)(number, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
	if (number == SIGTRAP || is_from_outside(number, info))
		syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
}

static bool is_peek(uintptr_t pc)
{
	return pc - (uintptr_t)binary_peek < (uintptr_t)binary_peek_fails - (uintptr_t)binary_peek;
}

static void handle(int number, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	struct sigaction action;
	struct shown view = { .changed = false };
	uint64_t kept_rdi = binary_kept_rdi; /* the handler may be patched code, too */

	if ((is_trap(number) && binary_redirect(number, context)) ||
	    has_to_wait(number, info, (uintptr_t)g[REG_RIP]))
		return;
	if (!is_from_outside(number, info) && is_peek((uintptr_t)g[REG_RIP])) {
		g[REG_RIP] = (greg_t)(uintptr_t)binary_peek_fails;
		return;
	}
	action = wanted[number];
	if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) {
		happen_again(number, info, &action);
		return;
	}
	if (action.sa_flags & (int)SA_RESETHAND)
		wanted[number].sa_handler = SIG_DFL;
	if (binary_hit_registers && waiting.delivering) {
		ucontext_t shown = *(ucontext_t *)context;

		show_hit(binary_hit_registers, shown.uc_mcontext.gregs);
		call(&action, number, info, &shown);
		return;
	}
	show(&view, g);
	call(&action, number, info, context);
	hide(&view, g);
	binary_kept_rdi = kept_rdi;
}

static int install(int number, const struct sigaction *action)
{
	struct sigaction ours = *action;

	if (is_trap(number))
		ours.sa_flags &= ~(int)SA_RESETHAND; /* we stay */
	else if (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN)
		return REAL(sigaction)(number, action, NULL);
	ours.sa_sigaction = handle;
	ours.sa_flags |= SA_SIGINFO;
	if (is_trap(number))
		ours.sa_flags |= SA_NODEFER;
	sigdelset(&ours.sa_mask, SIGTRAP);
	sigdelset(&ours.sa_mask, SIGILL);
	return REAL(sigaction)(number, &ours, NULL);
}

/* Which traps the program thinks are blocked: bit 0 for SIGTRAP, bit 1 for SIGILL. */
static __thread unsigned blocked __attribute__((tls_model("initial-exec")));

/* The program may have blocked them before anything was patched. */
static void take_over_mask(void)
{
	sigset_t now, traps;

	sigemptyset(&traps);
	sigaddset(&traps, SIGTRAP);
	sigaddset(&traps, SIGILL);
	if (REAL(pthread_sigmask)(SIG_UNBLOCK, &traps, &now) == 0)
		blocked = (unsigned)(sigismember(&now, SIGTRAP) | sigismember(&now, SIGILL) << 1);
}

void binary_signals_start(void)
{
	for (int i = 1; i < SIGNALS; i++)
		REAL(sigaction)(i, NULL, &wanted[i]);
	on = true;
	for (int i = 1; i < SIGNALS; i++)
		if (is_trap(i) ||
		    (wanted[i].sa_handler != SIG_DFL && wanted[i].sa_handler != SIG_IGN))
			install(i, &wanted[i]);
	take_over_mask();
}

PUBLIC int sigaction(int number, const struct sigaction *restrict action,
		     struct sigaction *restrict old)
{
	struct sigaction before;

	if (!on || number <= 0 || number >= SIGNALS)
		return REAL(sigaction)(number, action, old);
	before = wanted[number];
	if (action) {
		struct sigaction copy = *action;
		int result;

		wanted[number] = copy; /* first: it may come at once */
		result = install(number, &copy);
		if (result < 0) {
			wanted[number] = before;
			return result;
		}
	}
	if (old)
		*old = before;
	return 0;
}

static sighandler_t set_handler(int number, sighandler_t handler, int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags }, old;

	if (!(flags & (int)SA_NODEFER) && number > 0 && number < SIGNALS)
		sigaddset(&action.sa_mask, number);
	return handler == SIG_ERR || sigaction(number, &action, &old) < 0 ? SIG_ERR
									  : old.sa_handler;
}

PUBLIC sighandler_t signal(int number, sighandler_t handler)
{
	return set_handler(number, handler, SA_RESTART);
}

PUBLIC sighandler_t bsd_signal(int number, sighandler_t handler);

PUBLIC sighandler_t bsd_signal(int number, sighandler_t handler)
{
	return set_handler(number, handler, SA_RESTART);
}

PUBLIC sighandler_t __sysv_signal(int number, sighandler_t handler);

PUBLIC sighandler_t __sysv_signal(int number, sighandler_t handler)
{
	return set_handler(number, handler, (int)(SA_RESETHAND | SA_NODEFER | SA_INTERRUPT));
}

PUBLIC sighandler_t sysv_signal(int number, sighandler_t handler)
{
	return set_handler(number, handler, (int)(SA_RESETHAND | SA_NODEFER | SA_INTERRUPT));
}

/* ---- masks ---- */

int binary_set_mask(int how, const sigset_t *set, sigset_t *old)
{
	unsigned traps = 0, before = blocked;
	sigset_t copy;
	int result;

	if (!on)
		return REAL(pthread_sigmask)(how, set, old);
	if (set) {
		copy = *set;
		traps = (unsigned)(sigismember(&copy, SIGTRAP) | sigismember(&copy, SIGILL) << 1);
		if (how != SIG_UNBLOCK) {
			sigdelset(&copy, SIGTRAP);
			sigdelset(&copy, SIGILL);
		}
	}
	result = REAL(pthread_sigmask)(how, set ? &copy : NULL, old);
	if (result)
		return result;
	if (set)
		blocked = how == SIG_BLOCK     ? before | traps
			  : how == SIG_UNBLOCK ? before & ~traps
					       : traps;
	if (old && before & 1)
		sigaddset(old, SIGTRAP);
	if (old && before & 2)
		sigaddset(old, SIGILL);
	return 0;
}
