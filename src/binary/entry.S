/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An access to PM in patched code. The trampoline has left the red zone alone, pushed the number of the site,
 * and called: everything is kept here, as struct binary_registers (binary.h), and restored.
 */
	.text
	.globl	binary_entry
	.hidden	binary_entry
	.type	binary_entry, @function
binary_entry:
	.cfi_startproc
	pushfq
	pushq	%rax
	pushq	%rcx
	pushq	%rdx
	pushq	%rbx
	pushq	%rbp
	pushq	%rsi
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	subq	$16, %rsp
	movq	%rsp, %rbx
	/* For unwinders: the caller is the code that was patched. */
	.cfi_def_cfa %rbx, 288
	.cfi_offset %rip, -280
	.cfi_offset %r15, -272
	.cfi_offset %r14, -264
	.cfi_offset %r13, -256
	.cfi_offset %r12, -248
	.cfi_offset %rbp, -192
	.cfi_offset %rbx, -184
	cld
	subq	binary_state_size(%rip), %rsp
	andq	$-64, %rsp
	xorl	%eax, %eax
	movq	%rax, 512(%rsp)
	movq	%rax, 520(%rsp)
	movq	%rax, 528(%rsp)
	movq	%rax, 536(%rsp)
	movq	%rax, 544(%rsp)
	movq	%rax, 552(%rsp)
	movq	%rax, 560(%rsp)
	movq	%rax, 568(%rsp)
	movl	binary_state_mask(%rip), %eax
	xorl	%edx, %edx
	cmpb	$0, binary_saves_compactly(%rip)
	je	1f
	xsavec64 (%rsp)
	jmp	2f
1:	xsave64	(%rsp)
2:
	movq	%rbx, %rdi
	call	binary_hit
	movl	binary_state_mask(%rip), %eax
	xorl	%edx, %edx
	xrstor64 (%rsp)
	leaq	16(%rbx), %rsp
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdi
	popq	%rsi
	popq	%rbp
	popq	%rbx
	popq	%rdx
	popq	%rcx
	popq	%rax
	popfq
	ret
	.cfi_endproc
	.size	binary_entry, . - binary_entry

	.section .note.GNU-stack, "", @progbits
