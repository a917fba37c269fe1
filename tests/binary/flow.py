#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes a function of random blocks: loops, branches forward and back, loads and stores of PM and other memory.

flow.py SEED > flow.s; see flow.c. rdi and rsi are the two areas, rdx the steps left, r8 the stores to PM, rax a random
number; r9, r10 and r11 hold offsets, values and addresses, rcx what branches count in."""

import random
import sys

BLOCKS = 40
SIZES = (("b", "%r10b", 1), ("w", "%r10w", 2), ("l", "%r10d", 4), ("q", "%r10", 8))
CONDITIONS = ("z", "nz", "c", "nc", "s", "ns", "o", "no", "be", "a", "l", "ge", "le", "g", "p", "np")


def stir(rnd):
    return ["imulq $%d, %%rax, %%rax" % (2 * rnd.randrange(1 << 20) + 1), "addq $%d, %%rax" % rnd.randrange(1 << 30)]


def store(rnd):
    """One store to somewhere; r8 counts those that go to PM."""
    suffix, value, size = rnd.choice(SIZES)
    place = "%d" % (size * rnd.randrange(64))
    code = ["movq %rax, %r10"]
    kind = rnd.randrange(6)
    if kind < 2:
        code += ["mov%s %s, %s(%%rdi)" % (suffix, value, place)]
    elif kind == 2:
        code += ["incq %r8", "mov%s %s, %s(%%rsi)" % (suffix, value, place)]
    elif kind == 3:
        code += ["movl %eax, %r9d", "andl $0x3f8, %r9d", "mov%s %s, %s(%%rdi,%%r9)" % (suffix, value, place)]
    elif kind == 4:  # a base that is not where the access is
        code += ["movl %eax, %r9d", "andl $0x3f8, %r9d", "incq %r8", "addq %rsi, %r9",
                 "mov%s %s, %s(%%r9)" % (suffix, value, place)]
    else:  # here or there
        code += ["leaq 1(%r8), %r9", "movq %rdi, %r11", "testl $%d, %%eax" % (1 << rnd.randrange(8, 31)),
                 "cmovnzq %rsi, %r11", "cmovnzq %r9, %r8", "mov%s %s, %s(%%r11)" % (suffix, value, place)]
    if rnd.random() < 0.1:  # while strings go down
        code[-1:] = ["std", code[-1], "cld"]
    elif rnd.random() < 0.3 and kind != 5:  # flags that live across it
        code.insert(len(code) - 1, "cmpb $%d, %%al" % rnd.randrange(256))
        code.append("j%s %df" % (rnd.choice(CONDITIONS), 1))
        code += stir(rnd) + ["1:"]
    return code


def load(rnd):
    """One load from somewhere, on which everything else depends."""
    instruction, size = rnd.choice((("movzbl %s, %%r10d", 1), ("movzwl %s, %%r10d", 2), ("movl %s, %%r10d", 4),
                                    ("movq %s, %%r10", 8)))
    place = "%d(%%r%si)" % (size * rnd.randrange(64), rnd.choice("sssd"))
    code = []
    if rnd.random() < 0.3:
        code = ["movl %eax, %r9d", "andl $0x3f8, %r9d"]
        place = place.replace(")", ",%r9)")
    code += [instruction % place]
    if rnd.random() < 0.4:  # flags that live across it
        code[-1:] = ["cmpb $%d, %%al" % rnd.randrange(256), code[-1], "j%s 1f" % rnd.choice(CONDITIONS)] + stir(rnd) + ["1:"]
    return code + ["addq %r10, %rax"]


def block(rnd, number):
    code = [".Lblock%d:" % number, "decq %rdx", "jz .Lend"]
    for _ in range(rnd.randrange(1, 5)):
        code += rnd.choice((stir, store, store, load, load))(rnd)
    kind, goal = rnd.randrange(8), rnd.randrange(max(0, number - 3), min(BLOCKS, number + 5))
    if kind == 0:
        code += ["jmp .Lblock%d" % rnd.randrange(BLOCKS)]
    elif kind == 1:  # a small loop of its own
        code += ["movl $%d, %%ecx" % rnd.randrange(1, 20), "2:"] + stir(rnd) + store(rnd) + ["decl %ecx", "jnz 2b"]
    elif kind == 2:
        code += ["movl $%d, %%ecx" % rnd.randrange(1, 9), "3:", "movq %rax, %r10", "movq %r10, 8(%rdi,%rcx,8)", "loop 3b"]
    elif kind == 3:
        code += ["movl %eax, %ecx", "andl $1, %ecx", "jrcxz 4f", "movl %eax, 24(%rdi)", "4:"]
    else:
        code += stir(rnd) + ["testl $%d, %%eax" % (1 << rnd.randrange(8, 31)), "j%s .Lblock%d" % (rnd.choice(("z", "nz")), goal)]
    return code


def main():
    rnd = random.Random(int(sys.argv[1]))
    code = ["endbr64", "movq %rcx, %rax", "xorl %r8d, %r8d"]
    for number in range(BLOCKS):
        code += block(rnd, number)
    code += ["jmp .Lblock0", ".Lend:", "movq %r8, %rax", "ret"]
    print(".text\n.globl flow, flow_end\n.type flow, @function\nflow:\n\t.cfi_startproc")
    print("\n".join(line if line.endswith(":") else "\t" + line for line in code))
    print("\t.cfi_endproc\n.size flow, . - flow\nflow_end:\n.section .note.GNU-stack, \"\", @progbits")


main()
