/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entry points of the hooks that instrumented code calls with LLVM's preserve_most convention. Each passes its own frame as one more argument; the frame's return address is the event's place.
 */
#include "runtime/keep_registers.inc"
	.text

	.macro hook name, implementation, frame_argument
	keep_registers \name
	movq	%rbp, \frame_argument
	call	\implementation
	restore_registers \name
	.endm

	.hidden	perdure_load_wanted
	hook	perdure_load_wanted, hook_load, %rdx
	hook	__perdure_store, hook_store, %r8
	hook	__perdure_write_begin, hook_write_begin, %rcx
	hook	__perdure_write_end, hook_write_end, %r9
	hook	__perdure_lanes, hook_lanes, %r8
	hook	__perdure_flush, hook_flush, %rdx
	hook	__perdure_fence, hook_fence, %rsi
	hook	__perdure_unknown, hook_unknown, %rdx
	hook	__perdure_visible, hook_visible, %rdx

	/*
	 * Loads are the most frequent event and often nobody listens. The jump must not go through
	 * the PLT, where lazy binding would clobber a register.
	 */
	.globl	__perdure_load
	.type	__perdure_load, @function
__perdure_load:
	.cfi_startproc
	cmpb	$0, runtime_wants_loads(%rip)
	jne	perdure_load_wanted
	ret
	.cfi_endproc
	.size	__perdure_load, . - __perdure_load

	.section .note.GNU-stack, "", @progbits
