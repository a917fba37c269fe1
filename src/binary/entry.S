/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An access to PM in patched code. The trampoline has left the red zone alone, pushed the number of the site,
 * and called: everything is kept here, as struct binary_registers (binary.h), and restored.
 */
	.macro save instruction, operand
	\instruction \operand
	.cfi_adjust_cfa_offset 8
	.endm

	.macro restore instruction, operand
	\instruction \operand
	.cfi_adjust_cfa_offset -8
	.endm

	.text
	.globl	binary_entry
	.hidden	binary_entry
	.type	binary_entry, @function
binary_entry:
	.cfi_startproc
	save	pushfq
	save	pushq, %rax
	save	pushq, %rcx
	save	pushq, %rdx
	save	pushq, %rbx
	save	pushq, %rbp
	save	pushq, %rsi
	save	pushq, %rdi
	save	pushq, %r8
	save	pushq, %r9
	save	pushq, %r10
	save	pushq, %r11
	save	pushq, %r12
	save	pushq, %r13
	save	pushq, %r14
	save	pushq, %r15
	save	pushq, $0 /* no return address yet: there is nothing to unwind to */
	save	pushq, $0
	.cfi_remember_state
	movq	%rsp, %rbx
	.globl	binary_entry_saved
	.hidden	binary_entry_saved
binary_entry_saved:
	/* For unwinders: the caller is the code that was patched. */
	.cfi_def_cfa %rbx, 288
	.cfi_offset %rip, -280
	.cfi_offset %r15, -272
	.cfi_offset %r14, -264
	.cfi_offset %r13, -256
	.cfi_offset %r12, -248
	.cfi_offset %rbp, -192
	.cfi_offset %rbx, -184
	/* Strings go up in C code; they hardly ever go down here, and to say so takes long. */
	testb	$4, 137(%rbx)
	je	5f
	cld
5:	/* Mostly that is all; otherwise C code may use vectors. */
	movq	%rbx, %rdi
	andq	$-64, %rsp
	call	binary_quick
	testb	%al, %al
	jne	3f
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
	movq	%rsp, %rsi
	call	binary_hit
	movl	binary_state_mask(%rip), %eax
	xorl	%edx, %edx
	xrstor64 (%rsp)
3:	leaq	16(%rbx), %rsp
	.globl	binary_entry_restores
	.hidden	binary_entry_restores
binary_entry_restores:
	.cfi_restore_state
	.cfi_adjust_cfa_offset -16
	restore	popq, %r15
	restore	popq, %r14
	restore	popq, %r13
	restore	popq, %r12
	restore	popq, %r11
	restore	popq, %r10
	restore	popq, %r9
	restore	popq, %r8
	restore	popq, %rdi
	restore	popq, %rsi
	restore	popq, %rbp
	restore	popq, %rbx
	restore	popq, %rdx
	restore	popq, %rcx
	/* Flags without popfq, which takes long, unless strings go down. */
	.globl	binary_entry_flags
	.hidden	binary_entry_flags
binary_entry_flags:
	testb	$4, 9(%rsp)
	jne	4f
	movzwl	8(%rsp), %eax
	btl	$11, %eax
	setc	%ah
	addb	$127, %ah /* overflow, as it was */
	movb	%al, %ah
	sahf
	movq	(%rsp), %rax
	leaq	16(%rsp), %rsp
	.cfi_adjust_cfa_offset -16
	.globl	binary_entry_leaves
	.hidden	binary_entry_leaves
binary_entry_leaves:
	ret
4:	.cfi_adjust_cfa_offset 16
	restore	popq, %rax
	restore	popfq
	ret
	.cfi_endproc
	.size	binary_entry, . - binary_entry
	.globl	binary_entry_end
	.hidden	binary_entry_end
binary_entry_end:

/*
 * The same for an access that may be told briefly, whose address is in rdi. What is kept is struct binary_brief; flags as lahf
 * and seto have them.
 */
	.macro restore_flags
	restore	popq, %rax
	addb	$127, %al /* overflow */
	sahf
	.endm

	.globl	binary_brief
	.hidden	binary_brief
	.type	binary_brief, @function
binary_brief:
	.cfi_startproc
	save	pushq, %rax
	lahf
	seto	%al
	save	pushq, %rax
	save	pushq, %rsi
	save	pushq, %rbp
	.globl	binary_brief_saved
	.hidden	binary_brief_saved
binary_brief_saved:
	movq	%rsp, %rsi
	call	brief_access
	testb	%al, %al
	je	1f
	movq	binary_waiting@gottpoff(%rip), %rax
	cmpl	$0, %fs:(%rax)
	je	binary_brief_restores
1:	.cfi_remember_state
	restore	popq, %rbp
	restore	popq, %rsi
	movq	binary_kept_rdi@gottpoff(%rip), %rax
	movq	%fs:(%rax), %rdi
	restore_flags
	restore	popq, %rax
	movb	$0, 11(%rsp) /* the number without BINARY_BRIEF */
	jmp	binary_entry
	.globl	binary_brief_restores
	.hidden	binary_brief_restores
binary_brief_restores:
	.cfi_restore_state
	restore	popq, %rbp
	restore	popq, %rsi
	movq	binary_kept_rdi@gottpoff(%rip), %rax
	movq	%fs:(%rax), %rdi
	.globl	binary_brief_flags
	.hidden	binary_brief_flags
binary_brief_flags:
	restore_flags
	restore	popq, %rax
	ret
	.cfi_endproc
	.size	binary_brief, . - binary_brief
	.globl	binary_brief_end
	.hidden	binary_brief_end
binary_brief_end:

	.section .note.GNU-stack, "", @progbits
