# SPDX-License-Identifier: BSD-3-Clause
"""What a crash can leave, by brute force: Px86 as a machine that writes lines back whenever it likes.

A program is a list of words THREAD:OPERATION. Operations, where a value fills all bytes of an access:

    wOFFSET,SIZE=VALUE   store; wider than 8 bytes, or across lines: one after the other, 8 bytes each
    nOFFSET,8=VALUE      non-temporal store
    xOFFSET=VALUE        exchange, locked            cOFFSET=VALUE   compare-and-swap that fails
    fOFFSET oOFFSET bOFFSET     clflush, clflushopt, clwb
    s m r                sfence, mfence, locked instruction on ordinary memory
"""

import itertools
import re

LINE = 64


class Line:
    """All that one line may hold in PM: the contents it had in the cache, and which can still be there."""

    def __init__(self, content=bytes(LINE)):
        self.cache = content
        self.possible = {self.cache}  # what PM may hold now
        self.since = {}  # flushes that wait for a fence of their thread: contents since then
        self.streams = {}  # (thread, offset): what a non-temporal store will put there

    def store(self, offset, data):
        self.cache = self.cache[:offset] + data + self.cache[offset + len(data):]
        self.possible = self.possible | {self.cache}  # it may be written back at once, or later
        for contents in self.since.values():
            contents.add(self.cache)

    def flush(self, thread):
        self.since[thread] = {self.cache}

    def persist(self):
        self.possible = {self.cache}
        for thread in self.since:
            self.since[thread] = {self.cache}


def parts(offset, size):
    """An access as the machine makes it: never across 8 bytes unless it is one of at most 8 in a line."""
    if size <= 8 and offset % LINE + size <= LINE and offset % 8 + size <= 8:
        return [(offset, size)]
    result = []
    while size:
        part = min(8 - offset % 8, size)
        result.append((offset, part))
        offset, size = offset + part, size - part
    return result


class Machine:
    def __init__(self, memory):
        self.lines = [Line(memory[i:i + LINE]) for i in range(0, len(memory), LINE)]
        self.streams = []  # (thread, offset, data): each is there or not, until a fence
        self.states = {memory}

    def crash(self):
        """Adds every content that a crash could leave now."""
        for contents in itertools.product(*(line.possible for line in self.lines)):
            base = b"".join(contents)
            for there in itertools.product((False, True), repeat=len(self.streams)):
                memory = base
                for (_, offset, data), is_there in zip(self.streams, there):
                    if is_there:
                        memory = memory[:offset] + data + memory[offset + len(data):]
                self.states.add(memory)

    def store(self, offset, data):
        for at, size in parts(offset, len(data)):
            self.lines[at // LINE].store(at % LINE, data[at - offset:at - offset + size])
            self.crash()

    def fence(self, thread):
        for line in self.lines:
            if thread in line.since:
                line.possible = line.since.pop(thread)
        for _, offset, data in [s for s in self.streams if s[0] == thread]:
            # What another thread has streamed there before is overwritten.
            last = max(i for i, s in enumerate(self.streams) if s[0] == thread and s[1] == offset)
            self.streams = [s for i, s in enumerate(self.streams) if i >= last or s[1] != offset]
            line, at = self.lines[offset // LINE], offset % LINE
            line.cache = line.cache[:at] + data + line.cache[at + len(data):]
            line.possible = {c[:at] + data + c[at + len(data):] for c in line.possible}
            for key in line.since:
                line.since[key] = {c[:at] + data + c[at + len(data):] for c in line.since[key]}
        self.streams = [s for s in self.streams if s[0] != thread]

    def execute(self, word):
        thread, operation, rest = word[0], word[2], word[3:]
        numbers = [int(n) for n in re.findall(r"\d+", rest)]
        if operation == "w":
            self.store(numbers[0], bytes([numbers[2]]) * numbers[1])
        elif operation == "n":
            self.streams.append((thread, numbers[0], bytes([numbers[2]]) * 8))
        elif operation == "x":
            self.fence(thread)
            self.store(numbers[0], bytes([numbers[1]]) * 8)
            self.fence(thread)
        elif operation in "cmrs":
            self.fence(thread)
        elif operation == "f":
            self.lines[numbers[0] // LINE].persist()
        else:
            self.lines[numbers[0] // LINE].flush(thread)
        self.crash()


    def memory(self):
        """As the running program sees it."""
        memory = b"".join(line.cache for line in self.lines)
        for _, offset, data in self.streams:
            memory = memory[:offset] + data + memory[offset + len(data):]
        return memory


def step(memory, words, i):
    """Reads what word i says: the text of it, and the next word."""
    numbers = [int(n) for n in re.findall(r"\d+", words[i])]
    data = memory[numbers[0]:numbers[0] + numbers[1]]
    skips = len(numbers) == 4 and data[0] != numbers[2]
    return "".join("%x" % b for b in data) + " ", i + 1 + (numbers[3] if skips else 0)


def read(memory, program):
    """What the program after the crash reads, as the interpreter prints it."""
    text, words, i = "", program.split(), 0
    while i < len(words):
        more, i = step(memory, words, i)
        text += more
    return text


def run(memory, program):
    """All that a crash of this program can leave, of which some words read and skip others."""
    machine, words, i = Machine(memory), program.split(), 0
    while i < len(words):
        if words[i][1] == ":":
            machine.execute(words[i])
            i += 1
        else:
            _, i = step(machine.memory(), words, i)
    return machine.states


def outcomes(before, after, lines):
    return {read(memory, after) for memory in run(bytes(lines * LINE), before)}


def outcomes_of_two(before, between, after, lines):
    """With a crash before `between` is over, but not before it has stored anything."""
    result = set()
    for memory in run(bytes(lines * LINE), before):
        words, machine, i, stored = between.split(), Machine(memory), 0, False
        machine.states = set()
        while i < len(words):
            if words[i][1] == ":":
                stored |= words[i][2] in "wnx"
                machine.execute(words[i])
                if not stored:
                    machine.states = set()
                i += 1
            else:
                _, i = step(machine.memory(), words, i)
        result |= {read(state, after) for state in machine.states}
    return result
