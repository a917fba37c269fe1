/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A call of a hooked library function: effects before it, the function itself with the arguments
 * as they are, effects after it. The hook's stub has put its number into r11. struct library_call
 * (library.h) is built on the stack.
 */
	.set	RAX, 48
	.set	STACK_WORDS, 56
	.set	VECTORS, 64
	.set	RESULT, 192
	.set	VECTOR_RESULT, 208
	.set	MORE_RESULTS, 352 /* static functions may return structures in more registers */
	.set	SIZE, 368

	.text
	.globl	library_call_entry
	.hidden	library_call_entry
	.type	library_call_entry, @function
library_call_entry:
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq	%rbx
	.cfi_offset %rbx, -24
	pushq	%rbx
	subq	$SIZE, %rsp
	movq	%rsp, %rbx
	movq	%rdi, (%rbx)
	movq	%rsi, 8(%rbx)
	movq	%rdx, 16(%rbx)
	movq	%rcx, 24(%rbx)
	movq	%r8, 32(%rbx)
	movq	%r9, 40(%rbx)
	movq	%rax, RAX(%rbx)
	movups	%xmm0, VECTORS(%rbx)
	movups	%xmm1, VECTORS + 16(%rbx)
	movups	%xmm2, VECTORS + 32(%rbx)
	movups	%xmm3, VECTORS + 48(%rbx)
	movups	%xmm4, VECTORS + 64(%rbx)
	movups	%xmm5, VECTORS + 80(%rbx)
	movups	%xmm6, VECTORS + 96(%rbx)
	movups	%xmm7, VECTORS + 112(%rbx)
	movq	%rbx, %rdi
	movl	%r11d, %esi
	movq	%rbp, %rdx
	call	library_before
	movq	%rax, %r11
	testq	%rax, %rax
	jz	2f
	/* Arguments on the stack, an even number of words of them. */
	movq	STACK_WORDS(%rbx), %rcx
	leaq	1(%rcx), %rax
	andq	$-2, %rax
	shlq	$3, %rax
	subq	%rax, %rsp
1:	testq	%rcx, %rcx
	jz	3f
	movq	8(%rbp,%rcx,8), %rax
	movq	%rax, -8(%rsp,%rcx,8)
	decq	%rcx
	jmp	1b
3:	movq	(%rbx), %rdi
	movq	8(%rbx), %rsi
	movq	16(%rbx), %rdx
	movq	24(%rbx), %rcx
	movq	32(%rbx), %r8
	movq	40(%rbx), %r9
	movq	RAX(%rbx), %rax
	movups	VECTORS(%rbx), %xmm0
	movups	VECTORS + 16(%rbx), %xmm1
	movups	VECTORS + 32(%rbx), %xmm2
	movups	VECTORS + 48(%rbx), %xmm3
	movups	VECTORS + 64(%rbx), %xmm4
	movups	VECTORS + 80(%rbx), %xmm5
	movups	VECTORS + 96(%rbx), %xmm6
	movups	VECTORS + 112(%rbx), %xmm7
	call	*%r11
	movq	%rbx, %rsp
	movq	%rax, RESULT(%rbx)
	movq	%rdx, RESULT + 8(%rbx)
	movq	%rcx, MORE_RESULTS(%rbx)
	movq	%r8, MORE_RESULTS + 8(%rbx)
	movups	%xmm0, VECTOR_RESULT(%rbx)
	movups	%xmm1, VECTOR_RESULT + 16(%rbx)
2:	movq	%rbx, %rdi
	call	library_after
	movq	RESULT(%rbx), %rax
	movq	RESULT + 8(%rbx), %rdx
	movq	MORE_RESULTS(%rbx), %rcx
	movq	MORE_RESULTS + 8(%rbx), %r8
	movups	VECTOR_RESULT(%rbx), %xmm0
	movups	VECTOR_RESULT + 16(%rbx), %xmm1
	leaq	-8(%rbp), %rsp
	popq	%rbx
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size	library_call_entry, . - library_call_entry
	.globl	library_call_end
	.hidden	library_call_end
library_call_end:

	/*
	 * dlsym(RTLD_NEXT, …) depends on who calls it, so it must be jumped to. library_dlsym tells
	 * what to do: an answer with its lowest bit set, or where to jump.
	 */
	.globl	dlsym
	.type	dlsym, @function
dlsym:
	.cfi_startproc
	pushq	%rdi
	.cfi_def_cfa_offset 16
	pushq	%rsi
	.cfi_def_cfa_offset 24
	subq	$8, %rsp
	.cfi_def_cfa_offset 32
	movq	24(%rsp), %rdx /* who calls */
	call	library_dlsym
	addq	$8, %rsp
	.cfi_def_cfa_offset 24
	popq	%rsi
	.cfi_def_cfa_offset 16
	popq	%rdi
	.cfi_def_cfa_offset 8
	testb	$1, %dl
	jnz	1f
	jmp	*%rax
1:	ret
	.cfi_endproc
	.size	dlsym, . - dlsym

	.section .note.GNU-stack, "", @progbits
