# SPDX-License-Identifier: BSD-3-Clause
"""perdure run as a user meets it: options, statuses, endings, and what it leaves behind."""

import os
import pathlib
import signal
import subprocess
import time
import unittest

from support import TOOLS, TestCase


def processes_named(name):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/comm"):
        try:
            if path.read_text().strip() == name:
                found.append(path.parent.name)
        except OSError:
            pass
    return found


class Options(TestCase):
    def test_help_and_version(self):
        self.assertIn("--pm", self.run_tool("--help").stdout)
        self.assertIn("--pm", self.run_tool("run", "--help").stdout)
        self.assertRegex(self.run_tool("--version").stdout, r"perdure \d")

    def test_bad_usage(self):
        self.assertIn("did you mean --model", self.run_tool("run", "--modle", "x", "y", status=2).stderr)
        self.assertIn("px86 or eadr", self.run_tool("run", "--model", "x86", "y", status=2).stderr)
        self.assertIn("needs a value", self.run_tool("run", "--pm", status=2).stderr)
        self.assertIn("takes no value", self.run_tool("run", "--quiet=1", "x", status=2).stderr)
        self.assertIn("did you mean missing-flush",
                      self.run_tool("run", "--disable", "mising-flush", "x", status=2).stderr)
        self.assertIn("which program", self.run_tool("run", status=2).stderr)
        self.assertIn("did you mean run", self.run_tool("rum", status=2).stderr)
        self.assertIn("perdure --help", self.run_tool(status=2).stderr)
        self.run_tool("run", "--max-time", "soon", "x", status=2)
        self.run_tool("run", "--error-exitcode", "256", "x", status=2)

    def test_program_cannot_run(self):
        self.assertIn("No such file", self.run_tool("run", "./missing", status=3).stderr)
        self.write("plain", "text")
        self.assertIn("Permission denied", self.run_tool("run", "./plain", status=3).stderr)
        self.assertIn("directory", self.run_tool("run", "/tmp", status=3).stderr)
        os.chmod(self.write("script", "echo hello\n"), 0o700)
        self.assertIn("#!", self.run_tool("run", "./script", status=3).stderr)

    def test_nothing_to_see(self):
        self.build_ends()
        result = self.run_tool("run", "--pm", "other", "./ends", "pool", status=3)
        self.assertIn("mapped no persistent memory", result.stderr)
        self.assertIn(str(self.directory / "pool"), result.stderr)
        result = self.run_tool("run", "true", status=3)
        self.assertIn("--pm-heap", result.stderr)

    def test_not_instrumented(self):
        self.build_ends()
        subprocess.run(["gcc", "-g", "-w", "-I", pathlib.Path(__file__).resolve().parent.parent / "programs",
                        "ends.c", "-o", "plain"], cwd=self.directory, check=True)
        self.run_tool("run", "--pm", "pool", "./plain", "pool", status=0)
        result = self.run_tool("run", "--pm", "pool", "./plain", "pool", "lose", status=1)
        self.assertIn("ends.c:24:", result.stderr)
        self.assertIn("missing-flush", result.stderr)


class Run(TestCase):
    def setUp(self):
        super().setUp()
        self.build_ends()

    def test_statuses(self):
        self.run_tool("run", "--pm", "pool", "./ends", "pool", status=0)
        self.run_tool("run", "--pm", "pool", "./ends", "pool", "lose", status=1)
        self.run_tool("run", "--pm", "pool", "--error-exitcode", "9", "./ends", "pool", "lose", status=9)
        self.run_tool("run", "--pm", "pool", "--json", "result.json", "./ends", "pool", "status")
        self.assertEqual(self.load()["target"], {"exit": 7, "signal": None})

    def test_glob_forms(self):
        for glob in ("pool", "po*", str(self.directory / "pool"), "*/pool", "./pool"):
            path = "./pool" if glob == "./pool" else "pool"
            self.run_tool("run", "--pm", glob, "./ends", path, "lose", status=1)

    def test_output_is_untouched(self):
        result = self.run_tool("run", "--quiet", "--pm", "pool", "./ends", "pool", "lose", status=1)
        self.assertEqual((result.stdout, result.stderr), ("out\n", "err\n"))

    def test_file_holds_the_result(self):
        self.run_tool("run", "--pm", "pool", "./ends", "pool")
        self.assertEqual((self.directory / "pool").read_bytes()[:8], bytes([42] + [0] * 7))

    def test_json(self):
        self.run_tool("run", "--pm", "pool", "--json", "result.json", "./ends", "pool", "lose", status=1)
        result = self.load()
        self.assertEqual((result["version"], result["tool"], result["engine"]), (1, "perdure", "run"))
        self.assertEqual(result["command"], ["./ends", "pool", "lose"])
        self.assertTrue(result["complete"])
        finding = result["findings"][0]
        self.assertEqual(set(finding), {
            "id", "kind", "oracle", "severity", "cause", "cause_fingerprint", "message", "sites",
            "address", "size", "object", "member", "crash_point", "count", "fingerprint", "fix", "witness",
            "suppressed", "baseline", "again"})
        self.assertEqual((finding["kind"], finding["size"]), ("missing-flush", 8))
        self.assertEqual(finding["object"], {"map": str(self.directory / "pool"), "offset": 0,
                                             "field": "p[0]"})
        site = finding["sites"][0]
        self.assertEqual((site["role"], site["file"], site["function"]), ("store", "ends.c", "main"))
        self.assertEqual(set(site), {"role", "file", "line", "column", "function", "stack", "thread"})
        self.assertIn("flush 8 bytes at `p[0]` after line", finding["fix"]["text"])

    def test_fingerprint_survives_shifted_lines(self):
        prints = []
        for shift in ("", "\n\n/* shifted */\n"):
            source = (self.directory / "ends.c").read_text()
            self.write("ends.c", shift + source)
            self.compile("-O1", "-I", pathlib.Path(__file__).resolve().parent.parent / "programs",
                         "ends.c", "-o", "ends")
            self.run_tool("run", "--pm", "pool", "--json", "result.json", "./ends", "pool", "lose", status=1)
            prints.append(self.load()["findings"][0]["fingerprint"])
        self.assertEqual(prints[0], prints[1])

    def test_full_disk(self):
        result = self.run_tool("run", "--pm", "pool", "--json", "/dev/full", "./ends", "pool", status=3)
        self.assertIn("No space left", result.stderr)
        result = self.run_tool("run", "--pm", "pool", "--json", "missing/x", "./ends", "pool", status=3)
        self.assertIn("cannot write missing/x", result.stderr)

    def test_killed(self):
        result = self.run_tool("run", "--pm", "pool", "--json", "result.json", "./ends", "pool",
                               "lose,kill", status=1)
        self.assertIn("signal 9", result.stderr)
        self.assertEqual(self.load()["target"], {"exit": None, "signal": 9})

    def test_budgets(self):
        result = self.run_tool("run", "--pm", "pool", "--max-time", "0.3", "./ends", "pool", "sleep", status=4)
        self.assertIn("--max-time", result.stderr)
        self.run_tool("run", "--pm", "pool", "--max-time", "0.3", "./ends", "pool", "sleep,lose", status=1)
        self.assertIn("--timeout", self.run_tool("run", "--pm", "pool", "--timeout", "1", "./ends",
                                                 "pool", "spin", status=4).stderr)
        self.assertIn("--max-memory", self.run_tool("run", "--pm", "pool", "--max-memory", "200",
                                                    "./ends", "pool", "eat", status=4).stderr)
        self.assertEqual(processes_named("ends"), [])

    def test_budgets_reach_every_process(self):
        self.run_tool("run", "--pm", "pool", "--max-time", "0.5", "./ends", "pool", "thread", status=4)
        result = self.run_tool("run", "--pm", "pool", "--timeout", "1", "sh", "-c",
                               "./ends pool spin; true", status=4)
        self.assertIn("--timeout", result.stderr)
        self.assertEqual(processes_named("ends"), [])

    def test_children_of_the_caller_are_left_alone(self):
        start = time.monotonic()
        subprocess.run(["sh", "-c", "sleep 5 & exec %s run --quiet --pm pool --max-time 3 ./ends pool"
                        % (TOOLS / "perdure")], cwd=self.directory, check=True, capture_output=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.assertLess(time.monotonic() - start, 3)

    def test_ignored_signals_stay_ignored(self):
        process = subprocess.Popen(
            ["sh", "-c", "trap '' HUP; exec %s run --pm pool ./ends pool wait" % (TOOLS / "perdure")],
            cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        self.assertEqual(process.returncode, 4)

    def test_outputs_that_are_closed(self):
        command = "%s run --quiet --pm pool --json - ./ends pool" % (TOOLS / "perdure")
        self.assertEqual(subprocess.run(["sh", "-c", command + " >&- 2>&-"], cwd=self.directory).returncode, 3)
        status = subprocess.run(["bash", "-c", command + " 2>&1 | true; exit ${PIPESTATUS[0]}"],
                                cwd=self.directory).returncode
        self.assertIn(status, (0, 3))

    def test_limited_file_size(self):
        result = subprocess.run(["sh", "-c", "ulimit -f 1000; exec %s run --pm pool ./ends pool"
                                 % (TOOLS / "perdure")], cwd=self.directory, capture_output=True, text=True)
        self.assertEqual(result.returncode, 3)
        self.assertIn("limit on file sizes", result.stderr)

    def test_names_that_are_not_text(self):
        name = b"p\xffol"
        subprocess.run([TOOLS / "perdure", "run", "--quiet", "--pm", "*ol", "--json", "result.json", "./ends",
                        name, "lose"], cwd=self.directory, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        self.assertEqual(self.load()["command"][1], "p\ufffdol")

    def test_left_behind_child_is_waited_for(self):
        self.run_tool("run", "--pm", "pool", "--json", "result.json", "./ends", "pool", "daemon", status=1)
        self.assertEqual(self.load()["findings"][0]["kind"], "missing-flush")
        self.assertEqual(processes_named("ends"), [])

    def test_interrupted(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen(
                [TOOLS / "perdure", "run", "--pm", "pool", "./ends", "pool", "lose,sleep"],
                cwd=self.directory, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                start_new_session=True)
            process.stdout.readline()
            time.sleep(0.2)
            os.killpg(process.pid, number)
            _, errors = process.communicate(timeout=20)
            self.assertEqual(process.returncode, 1, errors)
            self.assertIn("missing-flush", errors)
            self.assertEqual(processes_named("ends"), [])

    def test_shell_script_as_target(self):
        os.chmod(self.write("script", "#!/bin/sh\n./ends pool lose\n./ends pool\n"), 0o700)
        self.run_tool("run", "--pm", "pool", "--json", "result.json", "./script", status=1)
        self.assertEqual(len(self.load()["findings"]), 1)

    def test_two_at_once(self):
        running = [subprocess.Popen([TOOLS / "perdure", "run", "--quiet", "--pm", "p*", "./ends", pool, "lose"],
                                    cwd=self.directory, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL) for pool in ("p1", "p2")]
        self.assertEqual([process.wait(20) for process in running], [1, 1])

    def test_nothing_is_left(self):
        before = set(os.listdir("/tmp"))
        self.run_tool("run", "--pm", "pool", "--trace", "events", "./ends", "pool", "lose", status=1)
        left = {name for name in set(os.listdir("/tmp")) - before if name.startswith("perdure")}
        self.assertEqual(left, set())
        trace = (self.directory / "events").read_text()
        self.assertRegex(trace, r"store 0x200000000000 8 @ ends.c:\d+ main")


class OptionsInEnvironment(TestCase):
    """PERDURE_OPTIONS: somebody else's test runner starts the program."""

    def setUp(self):
        super().setUp()
        self.build_ends()

    def start(self, options, *words, status):
        result = subprocess.run(["./ends", *words], cwd=self.directory, capture_output=True, text=True,
                                env={**os.environ, "PERDURE_OPTIONS": options}, timeout=30)
        self.assertEqual(result.returncode, status, result.stderr)
        return result

    def test_without_anything(self):
        result = subprocess.run(["./ends", "pool"], cwd=self.directory, capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "out\n", "err\n"))

    def test_report(self):
        result = self.start("--pm pool --json r.%p.json", "pool", "lose,status", status=7)
        self.assertIn("missing-flush", result.stderr)
        self.assertEqual(result.stdout, "out\n")
        self.assertEqual(len(list(self.directory.glob("r.*.json"))), 1)

    def test_error_exitcode(self):
        self.start("--pm pool --error-exitcode 33", "pool", "lose", status=33)
        self.start("--pm pool --error-exitcode 33", "pool", status=0)

    def test_killed(self):
        result = self.start("--pm pool", "pool", "lose,kill", status=-9)
        self.assertIn("missing-flush", result.stderr)

    def test_signal_to_the_group(self):
        process = subprocess.Popen(["./ends", "pool", "lose,wait"], cwd=self.directory, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                                   env={**os.environ, "PERDURE_OPTIONS": "--pm pool"})
        process.stdout.readline()
        time.sleep(0.2)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 0)
        self.assertIn("missing-flush", errors)

    def test_child_that_goes_on(self):
        result = self.start("--pm pool --json r.json", "pool", "lose,late", status=0)
        deadline = time.monotonic() + 10
        while not (self.directory / "r.json").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.2)
        self.assertEqual(self.load("r.json")["findings"], [], result.stderr)

    def test_budget(self):
        self.start("--pm pool --max-time 0.5", "pool", "sleep", status=-9)

    def test_heap(self):
        self.write("heap.c", "#include <stdlib.h>\nint main(void) { long *p = malloc(8); *p = 5; return 0; }\n")
        self.compile("heap.c", "-o", "ends")
        self.assertIn("missing-flush", self.start("--pm-heap", status=0).stderr)

    def test_bad_options(self):
        for options, message in (("--mp pool", "did you mean --pm"), ("--pm 'x", "a quote is not closed"),
                                 ("--quiet ./x", "./x is no option"), ("--help", "--help is no option")):
            result = self.start(options, "pool", status=2)
            self.assertIn(message, result.stderr)
            self.assertEqual(result.stdout, "")


if __name__ == "__main__":
    unittest.main()
