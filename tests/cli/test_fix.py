# SPDX-License-Identifier: BSD-3-Clause
"""perdure fix: diffs in the style of the file, applied, and tried."""

import json
import pathlib
import shutil
import subprocess
import unittest

from support import TOOLS, TestCase

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent.parent / "examples"
HEAD = r"""
#include <emmintrin.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
struct data { _Alignas(64) uint64_t value; uint64_t other; _Alignas(64) char text[200]; };
"""
MAIN = r"""
int main(void)
{
    int fd = open("pool", O_RDWR | O_CREAT, 0600);
    struct data *d;
    if (ftruncate(fd, 4096) < 0)
        return 2;
    d = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
BODY
    return 0;
}
"""
STYLES = {
    "intrinsics": ("", "_mm_clflush(&d->other); _mm_sfence();", "_mm_clflush(&d->value); _mm_sfence();"),
    "own function": ("static void my_persist(const void *p, size_t n)\n{\n(void)n;\n_mm_clflush(p);\n_mm_sfence();\n}",
                     "my_persist(&d->other, 8);", "my_persist(&d->value, sizeof(d->value));"),
    "macro": ("#define PERSIST(p) do { _mm_clflush(p); _mm_sfence(); } while (0)", "PERSIST(&d->other);", "PERSIST(&d->value);"),
    "libpmem": ("#include <libpmem.h>", "pmem_persist(&d->other, 8);", "pmem_persist(&d->value, sizeof(d->value));"),
}


class Fix(TestCase):
    def analyse(self, text, engine="run", flags=(), options=()):
        (self.directory / "program.c").write_text(text, newline="")
        self.build = "%s -g -O1 program.c -o program %s" % (TOOLS / "perdure-cc", " ".join(flags))
        subprocess.run(self.build, shell=True, cwd=self.directory, check=True)
        subprocess.run([TOOLS / "perdure", engine, "--quiet", "--pm", "pool", "--json", "result.json", *options, "./program"],
                       cwd=self.directory, check=False)
        return json.loads((self.directory / "result.json").read_text())["findings"]

    def program(self, body, helper=""):
        return HEAD + helper + MAIN.replace("BODY", body)

    def test_styles(self):
        for name, (helper, used, expected) in STYLES.items():
            with self.subTest(style=name):
                flags = ("-lpmem",) if name == "libpmem" else ()
                body = "    d->other = 1;\n    %s\n    d->value = 2;" % used
                self.assertTrue(self.analyse(self.program(body, helper), flags=flags))
                diff = self.run_tool("fix", "result.json", status=0).stdout
                self.assertIn("\n+    %s\n" % expected, diff)
                self.assertNotIn(expected, (self.directory / "program.c").read_text())
                self.run_tool("fix", "--verify", self.build, "result.json", status=0)
                self.assertIn(expected, (self.directory / "program.c").read_text())

    def test_the_diff_is_one(self):
        self.analyse(self.program("    d->other = 1;\n    d->value =\n        2;"))
        before = (self.directory / "program.c").read_text()
        diff = self.run_tool("fix", "result.json", status=0).stdout
        subprocess.run(["patch", "-p1"], cwd=self.directory, input=diff, text=True, check=True, capture_output=True)
        patched = (self.directory / "program.c").read_text()
        (self.directory / "program.c").write_text(before)
        self.run_tool("fix", "--apply", "result.json", status=0)
        self.assertEqual((self.directory / "program.c").read_text(), patched)
        self.assertNotEqual(patched, before)

    def test_the_diff_of_a_file_elsewhere(self):
        """As CMake builds: sources are named by their whole path, and we are somewhere else."""
        self.write("source/program.c", self.program("    d->value = 2;"))
        build = self.directory / "build"
        build.mkdir()
        subprocess.run([TOOLS / "perdure-cc", "-g", self.directory / "source/program.c", "-o", "program"], cwd=build, check=True)
        subprocess.run([TOOLS / "perdure", "run", "--quiet", "--pm", "pool", "--json", "result.json", "./program"], cwd=build)
        for git, top in ((False, self.directory), (True, self.directory / "source")):
            if git:
                subprocess.run(["git", "init", "-q", "."], cwd=top, check=True)
            before = (self.directory / "source/program.c").read_text()
            diff = subprocess.run([TOOLS / "perdure", "fix", "result.json"], cwd=build, capture_output=True, text=True)
            self.assertIn("patch -p1 -d %s" % top, diff.stderr)
            tool = ["git", "apply", "-"] if git else ["patch", "-p1"]
            subprocess.run(tool, cwd=top, input=diff.stdout, text=True, check=True, capture_output=True)
            self.assertNotEqual((self.directory / "source/program.c").read_text(), before)
            (self.directory / "source/program.c").write_text(before)

    def test_nothing_behind_a_call_helps(self):
        """A crash inside of a library's call, whose stores are the library's own business."""
        self.write("program.c", r"""
            #include <libpmemobj.h>
            #include <stdlib.h>
            #include <unistd.h>
            struct root { PMEMoid a, b; };
            int main(int argc, char **argv)
            {
                int fresh = access(argv[1], F_OK) != 0;
                PMEMobjpool *pool = fresh ? pmemobj_create(argv[1], "x", PMEMOBJ_MIN_POOL, 0666) : pmemobj_open(argv[1], "x");
                struct root *root;
                if (!pool)
                    return 0;
                root = pmemobj_direct(pmemobj_root(pool, sizeof(*root)));
                if (fresh) {
                    pmemobj_alloc(pool, &root->a, 64, 1, NULL, NULL);
                    pmemobj_alloc(pool, &root->b, 64, 1, NULL, NULL);
                } else if (root->a.off && !root->b.off) {
                    abort();
                }
                pmemobj_close(pool);
                return 0;
            }""")
        self.compile("-g", "program.c", "-o", "program", "-lpmemobj")
        self.run_tool("check", "--quiet", "--pm", "pool", "--json", "result.json", "./program", "pool", status=1,
                      environment={"PMEM_IS_PMEM_FORCE": "1"})
        findings = self.load()["findings"]
        self.assertIn("crash-symptom", [f["kind"] for f in findings])
        self.assertEqual([f["fix"]["text"] for f in findings if "fence" in (f.get("fix") or {}).get("text", "")], [])

    def test_statement_without_braces(self):
        self.analyse(self.program("    if (fd > 0)\n        d->value = 1;\n    else\n        return 3;"))
        self.run_tool("fix", "--verify", self.build, "result.json", status=0)
        self.assertIn("if (fd > 0) {\n        d->value = 1;\n", (self.directory / "program.c").read_text())

    def test_fence(self):
        self.analyse(self.program("    d->value = 1;\n    __builtin_ia32_clflushopt(d);"), flags=("-mclflushopt",))
        self.run_tool("fix", "--verify", self.build, "result.json", status=0)

    def test_transaction(self):
        self.analyse(r"""
#include <libpmemobj.h>
struct root { uint64_t a, b; };
int main(void)
{
    PMEMobjpool *pop = pmemobj_create("pool", "x", PMEMOBJ_MIN_POOL, 0600);
    struct root *r = pmemobj_direct(pmemobj_root(pop, sizeof(struct root)));
    TX_BEGIN(pop) {
        r->a = 1;
    } TX_END
    pmemobj_close(pop);
    return 0;
}
""", flags=("-lpmemobj",))
        (self.directory / "pool").unlink()
        build = "rm -f pool; " + self.build
        self.run_tool("fix", "--verify", build, "result.json", status=0)
        self.assertIn("TX_ADD_DIRECT(&r->a);\n        r->a = 1;", (self.directory / "program.c").read_text())

    def test_torn_store(self):
        text = HEAD + MAIN.replace("int main(void)", "int main(int argc, char **argv)").replace("BODY", r"""
    if (argc > 1)
        return d->other == 1 && d->value > 5;
    (void)argv;
    d->value = 2;
    _mm_clflush(d);
    _mm_sfence();
    d->other = 1;
    _mm_clflush(&d->other);
    _mm_sfence();""")
        found = self.analyse(text, "check", options=("--recover", "./program r"))
        self.assertIn("torn-store", {f["kind"] for f in found})
        diff = self.run_tool("fix", "result.json").stdout
        self.assertIn("__atomic_store_n(&d->other, 1, __ATOMIC_RELEASE);", diff)

    def test_examples(self):
        """Nothing that has a certain fix is left of what the examples show."""
        for name, engine, flags, pm in (("ledger", "check", "-mclwb", "pool.pm"), ("list", "run", "-mclflushopt", "pool.pm"),
                                        ("accounts", "run", "-lpmemobj", "pool.pool")):
            with self.subTest(example=name):
                shutil.copy(EXAMPLES / (name + ".c"), self.directory)
                build = "rm -f %s; %s -O2 %s.c -o program %s" % (pm, TOOLS / "perdure-cc", name, flags)
                subprocess.run(build, shell=True, cwd=self.directory, check=True)
                words = [TOOLS / "perdure", engine, "--quiet", "--pm", "*.pm", "--json", "result.json", "./program", pm]
                subprocess.run(words, cwd=self.directory, check=False, capture_output=True)
                before = json.loads((self.directory / "result.json").read_text())["findings"]
                self.assertTrue(any(f["fix"] and f["fix"]["edit"] for f in before))
                subprocess.run([TOOLS / "perdure", "fix", "--verify", build, "result.json"], cwd=self.directory, check=False,
                               capture_output=True)
                subprocess.run("rm -f %s" % pm, shell=True, cwd=self.directory, check=True)
                subprocess.run(words, cwd=self.directory, check=False, capture_output=True)
                after = json.loads((self.directory / "result.json").read_text())["findings"]
                self.assertEqual([f["message"] for f in after if f["severity"] == "correctness"], [])

    def test_what_cures_nothing_is_taken_back(self):
        self.analyse(self.program("    d->value = 1;"))
        before = (self.directory / "program.c").read_text()
        result = self.run_tool("fix", "--verify", "true", "result.json", status=1)
        self.assertIn("taken back", result.stderr)
        self.assertEqual((self.directory / "program.c").read_text(), before)
        result = self.run_tool("fix", "--verify", "false", "result.json", status=3)
        self.assertEqual((self.directory / "program.c").read_text(), before)

    def test_left_alone(self):
        """What would be evaluated twice, is part of another statement, or cannot be addressed."""
        helper = "struct bits { unsigned flag : 3; double d; } *b; static uint64_t *where(struct data *d) { return &d->value; }\n"
        for body in ("int i = 0; d->text[i++] = 1;", "*where(d) = 4;", "do\n d->value = 1;\n while (0);",
                     "if (fd > 0) if (fd < 1) fd++; else\n d->value = 1;", "d->value = 1; fd++;",
                     "for (int i = 0;\n i < 2;\n d->value = i, i++)\n fd++;", "b = (void *)d;\n b->flag = 3;"):
            with self.subTest(body=body):
                self.analyse(self.program("    %s" % body, helper))
                result = self.run_tool("fix", "result.json", status=1)
                self.assertEqual(result.stdout, "")
                self.assertIn("no certain fix", result.stderr)

    def test_comment_between(self):
        self.analyse(self.program("    if (fd > 0)\n    // always\n        d->value = 1; // really\n    else\n        return 3;"))
        self.run_tool("fix", "--verify", self.build, "result.json", status=0)

    def test_changed_since(self):
        self.analyse(self.program("    d->value = 1;"))
        self.run_tool("fix", "--apply", "result.json", status=0)
        self.assertIn("already", self.run_tool("fix", "--apply", "result.json", status=1).stderr)
        source = self.directory / "program.c"
        source.write_text("\n" + source.read_text())
        self.assertIn("has changed", self.run_tool("fix", "result.json", status=1).stderr)
        self.run_tool("fix", "result.json", "P99", status=2)

    def test_line_ends(self):
        self.analyse(self.program("    d->value = 1;").replace("\n", "\r\n"))
        self.run_tool("fix", "--verify", self.build, "result.json", status=0)
        self.assertNotRegex((self.directory / "program.c").read_bytes(), rb"[^\r]\n")

    def test_not_certain(self):
        self.analyse(self.program("    for (int i = 0; i < 3; i++) d->value = 1;"))
        self.assertIn("people have to do it", self.run_tool("fix", "result.json", status=1).stderr)
        self.run_tool("fix", "program.c", status=3)
        self.run_tool("fix", status=2)


if __name__ == "__main__":
    unittest.main()
