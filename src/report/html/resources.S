/* SPDX-License-Identifier: BSD-3-Clause */
/* The pieces of an HTML report, as they are in the source. */
	.section .rodata
	.macro	piece name file
	.globl	html_\name, html_\name\()_end
	.hidden	html_\name, html_\name\()_end
html_\name:
	.incbin	"\file"
html_\name\()_end:
	.endm

	piece	head, "src/report/html/head.html"
	piece	style, "src/report/html/report.css"
	piece	body, "src/report/html/body.html"
	piece	script, "src/report/html/report.js"
	.section .note.GNU-stack, "", @progbits
