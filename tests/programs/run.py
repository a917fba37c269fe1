#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds the test programs with perdure-cc, runs them, and compares findings with the sources.

A program of a protocol that can be got wrong in N ways says "variants: N" and is built with -DBUG=1
to N, where the findings belong to lines with "expect-1: …", and with -DBUG=0, where it is silent.

A line with "expect: KIND [KIND …]" must be the shown place of exactly those findings, and no
finding may be anywhere else. Built with -DFIXED, a program must be silent. Other directives:
"command: check" for that instead of run, "options: …" for it, "flags: …" for the compiler, "exit: N" for the command's status,
"limit: TEXT" for a text that must be among the limits, "findings: N" for their exact number,
"model-only: KIND" and "model-limit: TEXT" for what is said only if a prebuilt library is known by its
model (--models), and not patched, "signal: N" for a program that dies, "threads: …" for stacks that do not end in main, "no-pm: …"
for PM that is known without --pm, "needs: …" for a processor's flag.

With --compiler the programs are built by gcc or clang as they are, and patched when they are loaded.
Findings are the same, but what only perdure-cc can know: "perdure-cc: …" says why a program is left
out, "left-out: LEVELS: …" the same for some levels of optimisation. "merged: …" says what optimisers
do with its stores: then only the kinds are compared. Fences are not judged.

What recovery reads too early is also a store that may be torn: a torn-store at the line of a
cross-failure-race is not compared, unless the program names it at all.
"""

import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def directives(text, name):
    return re.findall(r"/\* %s: (.*?) \*/" % name, text)


def marked(text, mark):
    return [(kind, number) for number, line in enumerate(text.splitlines(), 1)
            for kinds in re.findall(r"/\* %s: ([a-z -]+?) \*/" % mark, line) for kind in kinds.split()]


def expectations(text, fixed, variant, models):
    wanted = marked(text, "always")
    if not fixed:
        wanted += marked(text, "expect-%d" % variant if variant else "expect")
        wanted += marked(text, "model-only") if models else []
    return sorted(wanted)


def cpu_has(flag):
    return re.search(r"^flags.*\b%s\b" % flag, pathlib.Path("/proc/cpuinfo").read_text(), re.M)


def run_one(tools, source, level, fixed, variant, directory, other, models):
    text = source.read_text()
    compiler = "perdure-c++" if source.suffix == ".cc" else "perdure-cc"
    program = directory / "program"
    flags = [shlex.split(f) for f in directives(text, "flags")]
    command = [tools / compiler, level, "-Wall", "-Wno-unused-value", source, "-o", program]
    if other:
        command[:1] = [{"gcc": "g++", "clang": "clang++"}[other] if source.suffix == ".cc" else other, "-g", "-w",
                       "-I", HERE.parent.parent / "include"]
    command += ["-DFIXED"] if fixed else []
    command += ["-DBUG=%d" % variant] if directives(text, "variants") else []
    command += [word for group in flags for word in group] + ["-pthread"]
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode or built.stdout or built.stderr:
        return "does not build silently:\n" + built.stdout + built.stderr
    result_file = directory / "result.json"
    options = [word for o in directives(text, "options") for word in shlex.split(o)]
    options += ["--no-patch", "libpmem*"] if models else []
    if not directives(text, "no-pm"):
        options += ["--pm", "*/pool"]
    try:
        ran = subprocess.run(
            [tools / "perdure", *(directives(text, "command") or ["run"]), "--json", result_file, *options, "--",
             program, directory / "pool"], capture_output=True, text=True, timeout=120, cwd=directory)
    except subprocess.TimeoutExpired:
        return "no end in two minutes"
    try:
        result = json.loads(result_file.read_text())
    except (OSError, ValueError):
        return "no result:\n" + ran.stderr
    found = sorted((f["kind"], f["sites"][0]["line"]) for f in result["findings"])
    wanted = expectations(text, fixed, variant, models)
    if "torn-store" not in text:
        found = [f for f in found if f[0] != "torn-store" or ("cross-failure-race", f[1]) not in found]
    if other:
        wanted = [pair for pair in wanted if pair[0] != "redundant-fence"]
    if other and level != "-O0" and directives(text, "merged"):
        found, wanted = [sorted({(kind, 0) for kind, _ in pairs}) for pairs in (found, wanted)]
    if sorted(set(found)) != sorted(set(wanted)):
        return "found %s\nwanted %s\n%s" % (found, wanted, ran.stderr)
    count = directives(text, "findings")
    if count and not fixed and not other and len(found) != int(count[0]):
        return "%d findings, not %s\n%s" % (len(found), count[0], ran.stderr)
    for f in result["findings"]:
        if f["sites"][0]["stack"][-1]["function"] != "main" and not directives(text, "threads"):
            return "stack does not reach main: %s" % f["sites"][0]["stack"]
    status = directives(text, "exit")
    if status and result["target"]["exit"] != int(status[0]):
        return "target ended with %s, not %s" % (result["target"], status[0])
    if not status and result["target"]["exit"] != 0 and not directives(text, "signal"):
        return "target ended with %s\n%s" % (result["target"], ran.stderr)
    if ran.returncode != (1 if wanted else 0):
        return "perdure ended with %d" % ran.returncode
    limits = directives(text, "limit") + (directives(text, "model-limit") if models else [])
    if other:
        # Assembly is seen as it is, and signals wait.
        limits = [limit for limit in limits if "assembly" not in limit and "signal" not in limit]
        result["limits"] = [limit for limit in result["limits"]
                            if "not built with perdure-cc" not in limit and "signal" not in limit]
    for limit in limits:
        if not any(limit in line for line in result["limits"]):
            return "limit %r missing in %s" % (limit, result["limits"])
    if result["limits"] and not limits:
        return "unexpected limits: %s" % result["limits"]
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--levels", default="-O0,-O2")
    parser.add_argument("--compiler", help="gcc or clang: programs that were not built with perdure-cc")
    parser.add_argument("--models", action="store_true", help="PMDK's libraries are not patched")
    parser.add_argument("rules", nargs="*", help="directories or files below tests/programs")
    arguments = parser.parse_args()
    tools = arguments.tools.resolve()
    sources = []
    for rule in arguments.rules or sorted(p.name for p in HERE.iterdir() if p.is_dir()):
        path = HERE / rule
        sources += [path] if path.is_file() else sorted([*path.glob("*.c"), *path.glob("*.cc")])
    passed = failed = skipped = 0
    for source in sources:
        if not all(cpu_has(flag) for flag in directives(source.read_text(), "needs")) or (
                arguments.compiler and directives(source.read_text(), "perdure-cc")):
            skipped += 1
            continue
        variants = int((directives(source.read_text(), "variants") or ["0"])[0])
        ways = [(True, 0)] + [(False, i) for i in range(1 if variants else 0, variants + 1)]
        left_out = directives(source.read_text(), "left-out") if arguments.compiler else []
        for level in arguments.levels.split(","):
            if any(level in why.partition(":")[0].split() for why in left_out):
                skipped += 1
                continue
            for fixed, variant in ways:
                name = "%s %s%s%s" % (source.relative_to(HERE), level, " fixed" if fixed else "",
                                      " bug %d" % variant if variant else "")
                with tempfile.TemporaryDirectory() as directory:
                    problem = run_one(tools, source, level, fixed, variant,
                                      pathlib.Path(directory), arguments.compiler, arguments.models)
                if problem:
                    failed += 1
                    print("FAIL %s: %s" % (name, problem))
                else:
                    passed += 1
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
