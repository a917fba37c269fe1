/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entry points of the hooks for symbolic values, called with LLVM's preserve_most convention like
 * those of runtime/hooks.S.
 */
#include "runtime/keep_registers.inc"
	.hidden	symbolic_frame
	.text

	.macro hook name
	keep_registers __perdure_sym_\name
	movq	%rbp, symbolic_frame(%rip)
	call	symbolic_hook_\name
	restore_registers __perdure_sym_\name, result
	.endm

	/* The same for those without a result. */
	.macro silent name
	keep_registers __perdure_sym_\name
	movq	%rbp, symbolic_frame(%rip)
	call	symbolic_hook_\name
	restore_registers __perdure_sym_\name
	.endm

	hook	binary
	hook	cast
	hook	select
	hook	load
	hook	store
	hook	now
	hook	fix
	hook	each
	hook	room
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
