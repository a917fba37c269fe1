/* SPDX-License-Identifier: BSD-3-Clause */
/* run_snippet: all registers as in `machine`, the snippet, all registers into `result`. */
	.set	FLAGS, 128
	.set	VECTORS, 192
	.set	MASKS, VECTORS + 2048

	.data
saved_stack: .quad 0

	.text
	.globl	run_snippet, snippet_end
	.type	run_snippet, @function
run_snippet:
	pushq	%rbx
	pushq	%rbp
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	movq	%rsp, saved_stack(%rip)
	leaq	machine(%rip), %rax
	vmovdqu	VECTORS(%rax), %ymm0
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	vmovdqu	VECTORS + 64 * \n(%rax), %ymm\n
	.endr
	cmpb	$0, has_masks(%rip)
	je	1f
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	vmovdqu64 VECTORS + 64 * \n(%rax), %zmm\n
	.endr
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7
	kmovq	MASKS + 8 * \n(%rax), %k\n
	.endr
1:	.irp n, 0, 1, 2, 3, 4, 5, 6, 7
	movq	VECTORS + 64 * \n(%rax), %mm\n
	.endr
	pushq	FLAGS(%rax)
	popfq
	movq	8(%rax), %rcx
	movq	16(%rax), %rdx
	movq	24(%rax), %rbx
	movq	40(%rax), %rbp
	movq	48(%rax), %rsi
	movq	56(%rax), %rdi
	movq	64(%rax), %r8
	movq	72(%rax), %r9
	movq	80(%rax), %r10
	movq	88(%rax), %r11
	movq	96(%rax), %r12
	movq	104(%rax), %r13
	movq	112(%rax), %r14
	movq	120(%rax), %r15
	movq	(%rax), %rax
	jmp	*snippet_to_run(%rip)

snippet_end:
	movq	saved_stack(%rip), %rsp
	pushfq
	cld
	pushq	%rax
	leaq	result(%rip), %rax
	movq	%rcx, 8(%rax)
	movq	%rdx, 16(%rax)
	movq	%rbx, 24(%rax)
	movq	%rbp, 40(%rax)
	movq	%rsi, 48(%rax)
	movq	%rdi, 56(%rax)
	movq	%r8, 64(%rax)
	movq	%r9, 72(%rax)
	movq	%r10, 80(%rax)
	movq	%r11, 88(%rax)
	movq	%r12, 96(%rax)
	movq	%r13, 104(%rax)
	movq	%r14, 112(%rax)
	movq	%r15, 120(%rax)
	popq	(%rax)
	popq	FLAGS(%rax)
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	vmovdqu	%ymm\n, VECTORS + 64 * \n(%rax)
	.endr
	cmpb	$0, has_masks(%rip)
	je	1f
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	vmovdqu64 %zmm\n, VECTORS + 64 * \n(%rax)
	.endr
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7
	kmovq	%k\n, MASKS + 8 * \n(%rax)
	.endr
1:	emms
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbp
	popq	%rbx
	vzeroupper
	ret
	.size	run_snippet, . - run_snippet

	.section .note.GNU-stack, "", @progbits
