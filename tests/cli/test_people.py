# SPDX-License-Identifier: BSD-3-Clause
"""What people meet first: man pages, completion, init, the CMake package, the schema of results."""

import json
import pathlib
import re
import shutil
import subprocess
import time
import unittest

import jsonschema

from support import TOOLS, TestCase
from test_explore_crash import LOG, READS

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = ("check", "model", "run", "threads", "explore", "replay", "report", "fix", "init", "explain")


class Documentation(TestCase):
    def test_manual_has_every_option(self):
        for page in ("check", "model", "run", "threads", "explore"):
            text = self.run_tool("--manual", page, status=0).stdout.replace("\\-", "-")
            for option in re.findall(r"^  (--[\w-]+)", self.run_tool(page, "--help", status=0).stdout, re.M):
                self.assertIn("\n.B %s" % option, text)

    def test_manual_is_well_formed(self):
        if not shutil.which("groff"):
            self.skipTest("there is no groff")
        for page in ("perdure", "cc", *PAGES):
            text = self.run_tool("--manual", page, status=0).stdout
            result = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=text, text=True, capture_output=True, check=False)
            self.assertEqual((result.returncode, result.stderr), (0, ""), page)

    def test_every_command_is_known_everywhere(self):
        overview, completion = self.run_tool("--manual", "perdure").stdout, self.run_tool("--completion", "bash").stdout
        for command in re.findall(r"^  (\w+) ", self.run_tool("--help").stdout.split("Options")[0], re.M):
            if command in ("cc", "help", "version", "perdure"):
                continue
            self.assertIn("perdure\\-%s (1)" % command, overview)
            self.assertIn("\t%s) options=" % command, completion)

    def complete(self, *words):
        script = self.run_tool("--completion", "bash").stdout + 'COMP_WORDS=(%s); COMP_CWORD=%d; _perdure; echo "${COMPREPLY[@]}"' % (
            " ".join("'%s'" % word for word in words), len(words) - 1)
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd=self.directory).stdout.split()

    def test_completion(self):
        self.assertEqual(self.complete("perdure", "expl"), ["explore", "explain"])
        self.assertEqual(self.complete("perdure", "explore", "--sym-p"), ["--sym-packet"])
        self.assertEqual(self.complete("perdure", "explain", "torn"), ["torn-store"])
        self.assertNotIn("--sym-stdin", self.complete("perdure", "check", "--s"))

    def test_init(self):
        for file, build in (("Makefile", "make CC=perdure-cc"), ("CMakeLists.txt", "-DCMAKE_C_COMPILER=perdure-cc"),
                            ("meson.build", "CC=perdure-cc"), ("configure", "./configure CC=perdure-cc")):
            directory = self.directory / file.replace(".", "_")
            directory.mkdir()
            (directory / file).touch()
            text = self.run_tool("init", directory, status=0).stdout
            self.assertIn(build, text)
            self.assertIn("perdure --pm", text)
        self.assertIn("By hand", self.run_tool("init", status=0).stdout)
        self.run_tool("init", "no-such-directory", status=3)


class Results(TestCase):
    def test_schema(self):
        schema = json.loads((ROOT / "docs" / "result.schema.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        (self.directory / "log.c").write_text(LOG.replace("READ;", READS["stdin"] + ";"))
        subprocess.run([TOOLS / "perdure-cc", "--symbolic", "-g", "-O1", "-I", ROOT / "include", "log.c", "-o", "log"],
                       cwd=self.directory, check=True)
        for words in (["run"], ["check", "--recover", "./log recover"], ["model", "--recover", "./log recover"], ["threads"],
                      ["explore", "--sym-stdin", "4"], ["explore", "--crash", "--recover", "./log recover", "--sym-stdin", "4"]):
            with self.subTest(words=words):
                subprocess.run([TOOLS / "perdure", *words, "--quiet", "--pm", "pool", "--json", "result.json", "./log"],
                               cwd=self.directory, input=b"add!", check=False)
                result = json.loads((self.directory / "result.json").read_text())
                jsonschema.validate(result, schema)
                if words[0] != "threads":
                    self.assertTrue(result["findings"])


class Packages(TestCase):
    def install(self):
        prefix = self.directory / "prefix"
        subprocess.run(["cmake", "--install", TOOLS.parent, "--prefix", prefix], check=True, capture_output=True)
        return prefix

    def test_cmake_package(self):
        prefix = self.install()
        (self.directory / "log.c").write_text(LOG.replace("READ;", 'strcpy(in, "add"); in[3] = argc > 1 ? \'!\' : 0;')
                                              .replace('strcmp(argv[1], "recover") == 0', '!strcmp(argv[argc - 1], "recover")'))
        (self.directory / "CMakeLists.txt").write_text("""
cmake_minimum_required(VERSION 3.20)
project(example C)
enable_testing()
find_package(Perdure REQUIRED)
add_executable(log log.c)
target_link_libraries(log PRIVATE Perdure::headers)
perdure_add_test(NAME good COMMAND log PM pool RECOVER "$<TARGET_FILE:log> recover")
perdure_add_test(NAME bad COMMAND log quick PM pool RECOVER "$<TARGET_FILE:log> recover")
""")
        subprocess.run(["cmake", "-S", ".", "-B", "build", "-DCMAKE_C_COMPILER=%s" % (prefix / "bin" / "perdure-cc"),
                        "-DCMAKE_PREFIX_PATH=%s" % prefix], cwd=self.directory, check=True, capture_output=True)
        subprocess.run(["cmake", "--build", "build"], cwd=self.directory, check=True, capture_output=True)
        result = subprocess.run(["ctest", "--test-dir", "build"], cwd=self.directory, capture_output=True, text=True, check=False)
        self.assertRegex(result.stdout, r"good \.+ +Passed")
        self.assertRegex(result.stdout, r"bad \.+\*\*\*Failed")

    def test_debian_package(self):
        """As dpkg would unpack it: the programs work where they are put, and lintian has nothing to say."""
        package = pathlib.Path(subprocess.run([ROOT / "scripts" / "make-deb", TOOLS.parent, self.directory], check=True,
                                              capture_output=True, text=True).stdout.strip())
        subprocess.run(["dpkg-deb", "-x", package, self.directory / "root"], check=True)
        binaries = self.directory / "root" / "usr" / "bin"
        (self.directory / "log.c").write_text(LOG.replace("READ;", READS["stdin"] + ";"))
        subprocess.run([binaries / "perdure-cc", "-g", "log.c", "-o", "log"], cwd=self.directory, check=True)
        result = subprocess.run([binaries / "perdure", "--quiet", "--pm", "pool", "--recover", "./log recover", "./log"],
                                cwd=self.directory, input=b"add!", check=False)
        self.assertEqual(result.returncode, 1)
        self.assertTrue((self.directory / "root/usr/share/man/man1/perdure-c++.1.gz").exists())
        if shutil.which("lintian"):
            said = subprocess.run(["lintian", "--allow-root", package], capture_output=True, text=True, check=False)
            self.assertEqual(said.stdout, "")

    def test_newcomer(self):
        """An installed tree, an empty environment, and the demonstration: findings are on the screen within minutes."""
        prefix = self.install()
        started = time.monotonic()
        result = subprocess.run([ROOT / "examples" / "demo", prefix / "bin"], cwd=self.directory, capture_output=True, text=True,
                                env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}, timeout=180, check=True)
        self.assertLess(time.monotonic() - started, 180)
        shown = result.stdout + result.stderr
        for kind in ("cross-failure-race", "missing-flush", "store-outside-tx", "thread-race"):
            self.assertIn("%s [correctness]" % kind, shown)

    def test_pkg_config(self):
        prefix = self.install()
        result = subprocess.run(["pkg-config", "--cflags", "perdure"], env={"PKG_CONFIG_PATH": str(prefix / "share/pkgconfig"), "PATH": "/usr/bin"},
                                capture_output=True, text=True, check=True)
        include = pathlib.Path(result.stdout.split("-I")[1].strip())
        self.assertTrue((include / "perdure" / "perdure.h").exists())
        for file in ("share/man/man1/perdure-check.1", "share/bash-completion/completions/perdure", "share/perdure/result.schema.json"):
            self.assertTrue((prefix / file).exists(), file)


if __name__ == "__main__":
    unittest.main()
