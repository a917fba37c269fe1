# SPDX-License-Identifier: BSD-3-Clause
"""The HTML report: what is in it, and, in a real browser, what it does (tests/browser)."""

import copy
import json
import pathlib
import shutil
import subprocess
import unittest

from support import TOOLS, TestCase
from test_explore_crash import LOG, READS

BROWSER = pathlib.Path(__file__).resolve().parent.parent / "browser"
PROGRAM = LOG.replace("READ;", READS["stdin"] + ";").replace("log->entry[i].sum = 77;",
                                                              "log->entry[i].sum = 77; log->entry[i].kind = 1;")


class Html(TestCase):
    def setUp(self):
        super().setUp()
        (self.directory / "log.c").write_text(PROGRAM)
        include = BROWSER.parent.parent / "include"
        subprocess.run([TOOLS / "perdure-cc", "-g", "-O1", "-I", include, "log.c", "-o", "log"], cwd=self.directory, check=True)
        subprocess.run([TOOLS / "perdure", "check", "--quiet", "--pm", "pool", "--recover", "./log recover", "--json", "result.json",
                        "--html", "report.html", "./log"], cwd=self.directory, input=b"add!", check=False)

    def data(self, name):
        text = (self.directory / name).read_text()
        return json.loads(text.split('<script id="data" type="application/json">')[1].split("</script>")[0])

    def test_content(self):
        data = self.data("report.html")
        result = json.loads((self.directory / "result.json").read_text())
        self.assertEqual([f["id"] for f in data["findings"]], [f["id"] for f in result["findings"]])
        line = result["findings"][0]["sites"][-1]
        self.assertIn("sum = 77", data["sources"]["log.c"][str(line["line"])])
        events = data["findings"][0]["timeline"]["events"]
        self.assertEqual([e["kind"] for e in events][:1], ["store"])
        self.assertEqual({e["certain"] for e in events if e["kind"] == "store"}, {False})
        self.assertNotIn("http://", (self.directory / "report.html").read_text().replace("http://www.w3.org/2000/svg", ""))

    def test_from_json(self):
        self.run_tool("report", "--html", "again.html", "result.json", status=0)
        self.assertEqual(self.data("again.html")["findings"], self.data("report.html")["findings"])
        self.run_tool("report", "--html", "x.html", "log.c", status=3)
        self.run_tool("report", "--html", "no/such/x.html", "result.json", status=3)
        self.run_tool("report", "result.json", status=2)

    def test_text_cannot_leave_its_place(self):
        result = json.loads((self.directory / "result.json").read_text())
        result["findings"][0]["message"] = "</script><script>alert(1)</script><!--"
        (self.directory / "evil.json").write_text(json.dumps(result))
        self.run_tool("report", "--html", "evil.html", "evil.json", status=0)
        self.assertEqual(self.data("evil.html")["findings"][0]["message"], result["findings"][0]["message"])
        self.assertEqual((self.directory / "evil.html").read_text().count("<script"), 2)

    def test_in_a_browser(self):
        if not all(map(shutil.which, ("node", "chromium"))) or not (BROWSER / "node_modules" / "playwright-core").exists():
            self.skipTest("node, chromium or playwright-core is missing, and make browser could not install it")
        result = json.loads((self.directory / "result.json").read_text())
        many = []
        for number in range(5000):
            finding = copy.deepcopy(result["findings"][number % len(result["findings"])])
            finding.update(id="P%d" % (number + 1), message="a finding, number %d" % number)
            many.append(finding)
        result["findings"] = many
        (self.directory / "large.json").write_text(json.dumps(result))
        self.run_tool("report", "--html", "large.html", "large.json", status=0)
        run = subprocess.run(["node", BROWSER / "report.test.js", "report.html", "large.html"], cwd=self.directory,
                             capture_output=True, text=True, timeout=300)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(run.stdout.count("ok   "), 5)


class Explain(TestCase):
    def test_explain(self):
        self.assertIn("torn-store (correctness)", self.run_tool("explain", "torn-store", status=0).stdout)
        self.assertIn("missing-fence", self.run_tool("explain", status=0).stdout)
        self.assertIn("did you mean missing-flush", self.run_tool("explain", "mising-flush", status=2).stderr)
        self.assertIn("off by default", self.run_tool("explain", "overwrite-unpersisted", status=0).stdout)


if __name__ == "__main__":
    unittest.main()
