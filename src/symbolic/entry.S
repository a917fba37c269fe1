/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entry points of the hooks for symbolic values, called with LLVM's preserve_most convention like
 * those of runtime/hooks.S: all general registers are kept but r11 and the one for the result.
 */
	.hidden	symbolic_frame
	.text

	.macro hook name
	.globl	__perdure_sym_\name
	.type	__perdure_sym_\name, @function
__perdure_sym_\name:
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%rax
	movq	%rbp, symbolic_frame(%rip)
	call	symbolic_hook_\name
	addq	$8, %rsp
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%rcx
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size	__perdure_sym_\name, . - __perdure_sym_\name
	.endm

	/* The same for those without a result. */
	.macro silent name
	.globl	__perdure_sym_\name
	.type	__perdure_sym_\name, @function
__perdure_sym_\name:
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%rax
	movq	%rbp, symbolic_frame(%rip)
	call	symbolic_hook_\name
	popq	%rax
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%rcx
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size	__perdure_sym_\name, . - __perdure_sym_\name
	.endm

	hook	binary
	hook	cast
	hook	select
	hook	load
	hook	store
	hook	now
	hook	fix
	hook	each
	hook	target
	hook	divisor
	hook	argument
	hook	branch
	hook	switch
	hook	returns
	hook	printed
	silent	shown
	silent	printed_memory
	silent	assembly
	silent	fix_memory
	silent	clear
	silent	copy
	silent	copy_text
	silent	copy_part
	silent	append_text
	silent	measure
	silent	moves
	silent	moved
	silent	made
	silent	take_variable
	silent	va_start
	silent	va_end
	silent	fill
	silent	freed

	.section .note.GNU-stack, "", @progbits
