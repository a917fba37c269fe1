/* SPDX-License-Identifier: BSD-3-Clause */
	.text

	/*
	 * void fiber_swap(void **from, void *to, uintptr_t tls): leaves this stack, with what a
	 * function call keeps on it, and goes on where the other one left; FS goes with it.
	 */
	.globl	fiber_swap
	.hidden	fiber_swap
	.type	fiber_swap, @function
fiber_swap:
	pushq	%rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	subq	$8, %rsp
	stmxcsr	(%rsp)
	fnstcw	4(%rsp)
	movq	%rsp, (%rdi)
	movq	%rsi, %rsp
	cmpb	$0, fiber_has_wrfsbase(%rip)
	je	1f
	wrfsbase %rdx
2:	ldmxcsr	(%rsp)
	fldcw	4(%rsp)
	addq	$8, %rsp
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	ret
1:	movl	$158, %eax	/* arch_prctl(ARCH_SET_FS, tls) */
	movl	$0x1002, %edi
	movq	%rdx, %rsi
	syscall
	jmp	2b
	.size	fiber_swap, . - fiber_swap

	/* Where a new fiber starts: the outermost frame, as unwinders want it. */
	.globl	fiber_entry
	.hidden	fiber_entry
	.type	fiber_entry, @function
fiber_entry:
	.cfi_startproc
	.cfi_undefined %rip
	xorl	%ebp, %ebp
	call	fiber_main
	ud2
	.cfi_endproc
	.size	fiber_entry, . - fiber_entry

	.section .note.GNU-stack, "", @progbits
