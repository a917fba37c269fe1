# SPDX-License-Identifier: BSD-3-Clause
"""What the command-line tests share: a scratch directory, the tools, and small programs."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

TOOLS = pathlib.Path(os.environ.get("PERDURE_TOOLS", "build/bin")).resolve()
PROGRAMS = pathlib.Path(__file__).resolve().parent.parent / "programs"

# A program that maps argv[1], stores, and ends as argv[2] says.
ENDS = r"""
#include "pm.h"
#include <errno.h>
#include <signal.h>
#include <pthread.h>
#include <sys/wait.h>
static volatile int noted;
static void note(int number) { noted = number; }
static void *fork_and_wait(void *unused)
{
    if (fork() == 0)
        for (;;)
            pause();
    pause();
    return unused;
}
int main(int argc, char **argv)
{
    long *p = pm_map(argv);
    const char *how = argc > 2 ? argv[2] : "";
    setvbuf(stdout, NULL, _IONBF, 0);
    printf("out\n");
    fprintf(stderr, "err\n");
    p[0] = 42;
    if (!strstr(how, "lose"))
        PERSIST(p);
    if (strstr(how, "status"))
        return 7;
    if (strstr(how, "sleep"))
        sleep(60);
    if (strstr(how, "spin"))
        for (;;)
            __asm__ volatile("");
    if (strstr(how, "eat"))
        for (;;)
            memset(malloc(1 << 20), 1, 1 << 20);
    if (strstr(how, "daemon") && fork() == 0) {
        setsid();
        usleep(300000);
        p[8] = 1;
        _exit(0);
    }
    if (strstr(how, "late") && fork() == 0) {
        usleep(300000);
        PERSIST(p);
        _exit(0);
    }
    if (strstr(how, "thread")) {
        pthread_t thread;
        pthread_create(&thread, NULL, fork_and_wait, NULL);
        pause();
    }
    if (strstr(how, "wait")) {
        signal(SIGINT, note);
        signal(SIGTERM, note);
        for (int i = 0; i < 100 && !noted; i++)
            usleep(50000);
    }
    if (strstr(how, "kill"))
        raise(SIGKILL);
    return 0;
}
"""


class TestCase(unittest.TestCase):
    """A test in an empty directory of its own."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = pathlib.Path(temporary.name)

    def write(self, name, text):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run_tool(self, *words, status=0, tool=None, environment=None, **options):
        """Runs a tool (perdure unless said otherwise) and checks its exit status."""
        words = [str(TOOLS / (tool or "perdure")), *map(str, words)]
        result = subprocess.run(words, capture_output=True, text=True, timeout=60,
                                cwd=self.directory, env={**os.environ, **(environment or {})},
                                **options)
        if status is not None:
            self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result

    def compile(self, *words, tool="perdure-cc", status=0, silent=True):
        result = self.run_tool(*words, tool=tool, status=status)
        if silent and status == 0:
            self.assertEqual(result.stdout + result.stderr, "")
        return result

    def build_ends(self):
        self.write("ends.c", ENDS)
        self.compile("-O1", "-I", PROGRAMS, "ends.c", "-o", "ends", "-pthread")

    def load(self, name="result.json"):
        return json.loads((self.directory / name).read_text())
