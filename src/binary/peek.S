/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uint64_t binary_peek(const void *p, uint64_t size): what lies there, as many bytes as a register can load at once, from its start on; 0 if nothing
 * does, as far as the program handles that: see signals.c. The instruction that a hook precedes shall fault, not the hook.
 */
	.text
	.globl	binary_peek
	.hidden	binary_peek
	.type	binary_peek, @function
binary_peek:
	.cfi_startproc
	cmpq	$8, %rsi
	jae	3f
	cmpq	$4, %rsi
	jae	2f
	cmpq	$2, %rsi
	jae	1f
	movzbl	(%rdi), %eax
	ret
1:	movzwl	(%rdi), %eax
	ret
2:	movl	(%rdi), %eax
	ret
3:	movq	(%rdi), %rax
	ret
	.globl	binary_peek_fails
	.hidden	binary_peek_fails
binary_peek_fails:
	xorl	%eax, %eax
	ret
	.cfi_endproc
	.size	binary_peek, . - binary_peek

	.section .note.GNU-stack, "", @progbits
