# SPDX-License-Identifier: BSD-3-Clause
"""perdure replay of findings of check, model and explore; images of crashes; gdb."""

import json
import os
import subprocess
import time
import unittest

from support import PROGRAMS, TOOLS, TestCase
from test_explore_crash import LOG, READS

TIMES = 50


class Replay(TestCase):
    def setUp(self):
        super().setUp()
        (self.directory / "log.c").write_text(LOG.replace("READ;", READS["stdin"] + ";"))
        self.build("log")

    def build(self, name, *flags):
        subprocess.run([TOOLS / "perdure-cc", "-g", "-O1", "-I", PROGRAMS.parent.parent / "include", *flags, "log.c", "-o", name],
                       cwd=self.directory, check=True)

    def analyse(self, engine, *words):
        subprocess.run([TOOLS / "perdure", engine, "--quiet", "--pm", "pool", "--recover", "./log recover", "--json",
                        "result.json", *words, "./log"], cwd=self.directory, input=b"add!", check=False)
        return json.loads((self.directory / "result.json").read_text())["findings"]

    def test_same_every_time(self):
        for engine in ("check", "model"):
            findings = self.analyse(engine)
            self.assertIn("crash-symptom", {f["kind"] for f in findings})
            for finding in findings:
                with self.subTest(engine=engine, kind=finding["kind"]):
                    for _ in range(TIMES if finding["kind"] == "crash-symptom" else 1):
                        result = self.run_tool("replay", "--from", "result.json", finding["id"], status=1)
                        self.assertIn("is there again", result.stderr)

    def test_one_of_explore_every_time(self):
        self.build("log", "--symbolic")
        findings = self.analyse("explore", "--crash", "--sym-stdin", "4")
        symptom = [f for f in findings if f["kind"] == "crash-symptom"][0]
        for _ in range(TIMES):
            self.run_tool("replay", symptom["id"], status=1)

    def test_gone(self):
        finding = self.analyse("check")[0]
        source = self.directory / "log.c"
        source.write_text(source.read_text().replace("if (!quick)", ""))
        self.build("log")
        result = self.run_tool("replay", "--from", "result.json", finding["id"], status=0)
        self.assertIn("was not seen", result.stderr)

    def test_image(self):
        """What the crash leaves makes the recovery fail without any tool; what it does not, does not."""
        symptom = [f for f in self.analyse("check") if f["kind"] == "crash-symptom"][0]
        self.run_tool("replay", "--from", "result.json", "--image", "image", symptom["id"], status=0)
        self.assertFalse((self.directory / "pool").exists())
        (self.directory / "image").rename(self.directory / "pool")
        died = subprocess.run(["./log", "recover"], cwd=self.directory, capture_output=True, text=True, check=False)
        self.assertEqual(died.returncode, -6)
        self.assertIn("Assertion", died.stderr)

    def test_gdb(self):
        symptom = [f for f in self.analyse("check") if f["kind"] == "crash-symptom"][0]
        (self.directory / "pool").write_text("mine")
        result = subprocess.run([TOOLS / "perdure", "replay", "--from", "result.json", "--gdb", symptom["id"]], cwd=self.directory,
                                input="quit\n", capture_output=True, text=True, timeout=60, check=False)
        self.assertRegex(result.stdout, r"Breakpoint 1.*main .*log\.c:%d" % symptom["sites"][0]["line"])
        self.assertEqual((self.directory / "pool").read_text(), "mine")

    def test_standard_input_from_a_file(self):
        (self.directory / "in").write_text("add!")
        with open(self.directory / "in", "rb") as given:
            subprocess.run([TOOLS / "perdure", "check", "--quiet", "--pm", "pool", "--recover", "./log recover", "--json",
                            "result.json", "./log"], cwd=self.directory, stdin=given, check=False)
        self.run_tool("replay", "--from", "result.json", "P1", status=1)

    def test_files_come_back_when_gdb_is_ended(self):
        symptom = [f for f in self.analyse("check") if f["kind"] == "crash-symptom"][0]
        (self.directory / "pool").write_text("mine")
        gdb = subprocess.Popen([TOOLS / "perdure", "replay", "--from", "result.json", "--gdb", symptom["id"]], cwd=self.directory,
                               stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            if (self.directory / "pool").exists() and (self.directory / "pool").read_bytes() != b"mine":
                break
            time.sleep(0.1)
        self.assertNotEqual((self.directory / "pool").read_bytes(), b"mine")
        time.sleep(0.5)
        gdb.terminate()
        gdb.wait(timeout=30)
        gdb.stdin.close()
        self.assertEqual((self.directory / "pool").read_text(), "mine")
        self.assertEqual([path.name for path in self.directory.glob("pool*")], ["pool"])

    def test_two_files(self):
        (self.directory / "two.c").write_text(r"""
#include <emmintrin.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static volatile uint64_t *map(const char *name)
{
    int fd = open(name, O_RDWR | O_CREAT, 0600);
    return ftruncate(fd, 4096) < 0 ? NULL : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}
int main(int argc, char **argv)
{
    volatile uint64_t *a = map("a.pm"), *b = map("b.pm");
    (void)argv;
    if (argc > 1) {
        if (*b && !*a)
            abort();
        return 0;
    }
    *a = 1;
    *b = 1;
    _mm_clflush((void *)b);
    _mm_sfence();
}
""")
        subprocess.run([TOOLS / "perdure-cc", "-g", "two.c", "-o", "two"], cwd=self.directory, check=True)
        subprocess.run([TOOLS / "perdure", "check", "--quiet", "--pm", "*.pm", "--recover", "./two r", "--json", "result.json", "./two"],
                       cwd=self.directory, check=False)
        findings = json.loads((self.directory / "result.json").read_text())["findings"]
        symptom = [f for f in findings if f["kind"] == "crash-symptom"][0]
        self.run_tool("replay", "--from", "result.json", "--image", "image", symptom["id"], status=0)
        (self.directory / "image").rename(self.directory / "a.pm")
        (self.directory / "image.2").rename(self.directory / "b.pm")
        self.assertEqual(subprocess.run(["./two", "r"], cwd=self.directory, check=False).returncode, -6)
        result = subprocess.run([TOOLS / "perdure", "replay", "--from", "result.json", "--gdb", symptom["id"]], cwd=self.directory,
                                input="quit\n", capture_output=True, text=True, timeout=60, check=False)
        self.assertRegex(result.stdout, r"Breakpoint 1.*main .*two\.c")

    def test_the_last_result_needs_no_file(self):
        environment = dict(os.environ, XDG_STATE_HOME=str(self.directory / "state"))
        subprocess.run([TOOLS / "perdure", "check", "--quiet", "--pm", "pool", "--recover", "./log recover", "./log"],
                       cwd=self.directory, env=environment, input=b"add!", check=False)
        for finding in ("P3", "P1", "P2"):
            result = subprocess.run([TOOLS / "perdure", "replay", finding], cwd=self.directory, env=environment, capture_output=True,
                                    text=True, check=False)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("%s is there again" % finding, result.stderr)

    def test_mistakes(self):
        self.analyse("check")
        self.run_tool("replay", "--from", "result.json", "P99", status=3)
        self.run_tool("replay", "--from", "nothing.json", "P1", status=3)
        self.run_tool("replay", "--from", "result.json", "--gdb", "--image", "x", "P1", status=2)
        self.run_tool("replay", "--from", "result.json", "--image", "no/such/image", "P1", status=3)
        self.run_tool("replay", status=2)


if __name__ == "__main__":
    unittest.main()
