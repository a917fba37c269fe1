# SPDX-License-Identifier: BSD-3-Clause
"""perdure explore: crashes on symbolic paths, questions of plug-ins, coverage."""

import json
import subprocess
import unittest

from support import PROGRAMS, TOOLS, TestCase

LOG = r"""
#include <assert.h>
#include <emmintrin.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <perdure/perdure.h>
struct log {
    _Alignas(64) volatile uint64_t count;
    struct { _Alignas(64) uint64_t sum; uint64_t kind; } entry[8];
};
static void persist(const void *p) { _mm_clflush(p); _mm_sfence(); }
static void add(struct log *log, int quick)
{
    uint64_t i = log->count;
    log->entry[i].sum = 77;
    if (!quick)
        persist(&log->entry[i]);
    log->count = i + 1;
    persist((void *)&log->count);
}
int main(int argc, char **argv)
{
    int fd = open("pool", O_RDWR | O_CREAT, 0600);
    struct log *log;
    char in[4] = "";
    if (ftruncate(fd, sizeof(*log)) < 0)
        return 2;
    log = mmap(NULL, sizeof(*log), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (argc > 1 && strcmp(argv[1], "recover") == 0) {
        for (uint64_t i = 0; i < log->count; i++)
            assert(log->entry[i].sum == 77);
        return 0;
    }
    READ;
    if (memcmp(in, "add", 3) == 0)
        add(log, in[3] == '!');
    return 0;
}
"""
STORE = 19
READS = {
    "stdin": "if (read(0, in, 4) != 4) return 1",
    "args": "strncpy(in, argv[argc - 1], 4)",
    "env": 'strncpy(in, getenv("WORD"), 4)',
    "file": 'int other = open("words", O_RDONLY); if (read(other, in, 4) != 4) return 1',
    "named": 'perdure_symbolic(in, 4, "word")',
}
OPTIONS = {"stdin": ("--sym-stdin", "4"), "args": ("--sym-args", "1x4"), "env": ("--sym-env", "WORD=4"),
           "file": ("--sym-file", "words=4"), "named": ()}


class Crash(TestCase):
    def build(self, text, name="program", *flags):
        (self.directory / "program.c").write_text(text)
        subprocess.run([TOOLS / "perdure-cc", "--symbolic", "-g", "-O1", "-I", PROGRAMS.parent.parent / "include", *flags,
                        "program.c", "-o", name, "-lpthread"], cwd=self.directory, check=True)

    def explore(self, *words, status=None):
        result = subprocess.run([TOOLS / "perdure", "explore", "--pm", "pool", "--json", "result", *words],
                                cwd=self.directory, capture_output=True, text=True, timeout=120)
        if status is not None:
            self.assertEqual(result.returncode, status, result.stderr)
        return json.loads((self.directory / "result").read_text())

    def test_every_kind_of_input(self):
        for kind, read in READS.items():
            with self.subTest(kind=kind):
                self.build(LOG.replace("READ;", read + ";"))
                (self.directory / "words").write_text("mine")
                result = self.explore("--crash", "--recover", "./program recover", *OPTIONS[kind], "./program", status=1)
                symptom = [f for f in result["findings"] if f["kind"] == "crash-symptom"]
                self.assertEqual(len(symptom), 1)
                self.assertEqual(bytes.fromhex(symptom[0]["input"][0]["hex"]), b"add!")
                self.assertIn(STORE, [site["line"] for site in symptom[0]["sites"]])
                self.assertEqual(symptom[0]["crash_point"]["number"], 2)
                self.assertEqual(result["stats"]["crashed_histories"], 3)
                self.assertEqual((self.directory / "words").read_text(), "mine")
                self.run_tool("replay", symptom[0]["id"], status=1)

    def test_fixed(self):
        self.build(LOG.replace("READ;", READS["stdin"] + ";").replace("if (!quick)", ""))
        result = self.explore("--crash", "--recover", "./program recover", "--sym-stdin", "4", "./program", status=0)
        self.assertEqual((result["findings"], result["complete"]), ([], True), result["limits"])

    def test_never_read_is_transient(self):
        """What no recovery reads is no matter of correctness any more."""
        text = LOG.replace("READ;", READS["stdin"] + ";").replace("log->entry[i].sum = 77;", "log->entry[i].kind = 77;"
                                                                ).replace("assert(log->entry[i].sum == 77)", "assert(i < 8)")
        self.build(text)
        result = self.explore("--crash", "--recover", "./program recover", "--sym-stdin", "4", "./program")
        self.assertEqual({f["kind"] for f in result["findings"]}, {"transient-data"})
        result = self.explore("--sym-stdin", "4", "./program")
        self.assertEqual({f["kind"] for f in result["findings"]}, {"missing-flush"})

    def test_server(self):
        """The client's packets come again in each run; a recovery is a server that nobody calls."""
        self.build(r"""
#include <arpa/inet.h>
#include <assert.h>
#include <emmintrin.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
struct data { _Alignas(64) volatile uint64_t valid; _Alignas(64) uint64_t value; };
int main(void)
{
    int fd = open("pool", O_RDWR | O_CREAT, 0600), listener = socket(AF_INET, SOCK_STREAM, 0), client;
    struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons(4711) };
    struct data *data;
    char in[2];
    if (ftruncate(fd, sizeof(*data)) < 0)
        return 2;
    data = mmap(NULL, sizeof(*data), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data->valid)
        assert(data->value == 5);
    bind(listener, (void *)&own, sizeof(own));
    listen(listener, 1);
    for (;;) {
        client = accept(listener, 0, 0);
        while (read(client, in, 2) == 2) {
            data->value = 5;
            if (in[0] != '#' || in[1] != '7') {
                _mm_clflush(&data->value);
                _mm_sfence();
            }
            data->valid = 1;
            _mm_clflush((void *)&data->valid);
            _mm_sfence();
        }
        close(client);
    }
}
""")
        result = self.explore("--crash", "--sym-packet", "??", "./program", status=1)
        symptom = [f for f in result["findings"] if f["kind"] == "crash-symptom"]
        self.assertEqual([(f["sites"][1]["line"], f["input"][0]["hex"]) for f in symptom], [(27, "2337")])

    def test_symbolic_recovery(self):
        """A recovery fails only if it is asked for the right thing, after a program that was told the right thing."""
        self.build(r"""
#include <emmintrin.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
struct table { _Alignas(64) volatile uint64_t used; struct { _Alignas(64) uint64_t value; } slot[2]; };
int main(int argc, char **argv)
{
    int fd = open("pool", O_RDWR | O_CREAT, 0600);
    struct table *t;
    char in[2];
    if (ftruncate(fd, sizeof(*t)) < 0)
        return 2;
    t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (argc > 2 && strcmp(argv[1], "get") == 0) {
        if (strcmp(argv[2], "b") == 0 && t->used && t->slot[1].value != 4)
            abort();
        return 0;
    }
    if (read(0, in, 2) != 2)
        return 1;
    t->slot[0].value = 3;
    _mm_clflush(&t->slot[0]);
    t->slot[1].value = 4;
    if (in[0] != 'q')
        _mm_clflush(&t->slot[1]);
    _mm_sfence();
    t->used = 1;
    _mm_clflush((void *)&t->used);
    _mm_sfence();
    return 0;
}
""")
        plain = self.explore("--crash", "--recover", "./program get a", "--sym-stdin", "2", "./program")
        self.assertNotIn("crash-symptom", {f["kind"] for f in plain["findings"]})
        result = self.explore("--crash", "--recover", "./program get", "--sym-stdin", "2", "--sym-recover",
                              "--sym-args", "1x2", "./program", status=1)
        symptom = [f for f in result["findings"] if f["kind"] == "crash-symptom"]
        self.assertEqual([(bytes.fromhex(f["input"][0]["hex"])[:1], bytes.fromhex(f["recovery_input"][0]["hex"]))
                          for f in symptom], [(b"q", b"b")])
        self.assertFalse((self.directory / "pool").exists())
        self.run_tool("explore", "--sym-recover", "./program", status=2)

    def test_plugin_asks(self):
        """A store that may be too large, on a path on which it need not be: with an input that makes it so."""
        (self.directory / "plugin.c").write_text(r"""
#include <perdure/oracle.h>
static void event(void *self, const struct perdure_host *host, const struct perdure_event *e)
{
    (void)self;
    if (e->kind != PERDURE_EVENT_STORE || e->size != 1)
        return;
    if (host->must(host, e, PERDURE_ABOVE, 200))
        host->report(host, &(struct perdure_report){ .message = "is too large", .stack = e->stack });
    else if (host->may(host, e, PERDURE_ABOVE, 200))
        host->report(host, &(struct perdure_report){ .message = "may be too large", .stack = e->stack });
    if (host->may(host, e, PERDURE_EQUAL, 3) && host->must(host, e, PERDURE_DIFFERENT, 3))
        host->report(host, &(struct perdure_report){ .message = "makes no sense", .stack = e->stack });
}
const struct perdure_oracle perdure_oracle = { .abi = PERDURE_ORACLE_ABI, .name = "bounds", .event = event };
""")
        subprocess.run(["gcc", "-shared", "-fPIC", "-I", PROGRAMS.parent.parent / "include", "plugin.c", "-o", "plugin.so"],
                       cwd=self.directory, check=True)
        self.build(r"""
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
    int fd = open("pool", O_RDWR | O_CREAT, 0600);
    uint8_t in[4], *pm;
    if (ftruncate(fd, 4096) < 0 || read(0, in, 4) != 4)
        return 1;
    pm = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    pm[0] = in[0];
    if (in[1] < 150)
        pm[64] = in[1];
    if (in[2] > 230)
        pm[128] = in[2];
    msync(pm, 4096, MS_SYNC);
}
""")
        result = self.explore("--plugin", "./plugin.so", "--sym-stdin", "4", "./program", status=1)
        found = {f["sites"][0]["line"]: f for f in result["findings"] if f["kind"] == "custom" and f["confirmed"]}
        self.assertEqual(set(found), {13, 17})
        self.assertGreater(bytes.fromhex(found[13]["input"][0]["hex"])[0], 200)

    def test_coverage(self):
        self.build(r"""
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int fd = open("pool", O_RDWR | O_CREAT, 0600);
    uint8_t in[2];
    uint64_t *pm;
    (void)argv;
    if (ftruncate(fd, 4096) < 0 || read(0, in, 2) != 2)
        return 1;
    pm = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (in[0] == 'x')
        pm[0] = 1;
    if (in[0] < 10 && in[0] > 20)
        pm[1] = 1;
    if (argc > 7)
        pm[2] = 1;
    msync(pm, 4096, MS_SYNC);
}
""")
        result = self.explore("--coverage", "coverage", "--sym-stdin", "2", "./program")
        stores = {c["line"]: c for c in result["coverage"] if c["line"] in (16, 18, 20)}
        self.assertEqual({line: c["state"] for line, c in stores.items()}, {16: "reached", 18: "never", 20: "never"})
        nearest = stores[18]["guards"][0]
        self.assertEqual((nearest["line"], nearest["wanted"], nearest["taken"]), (17, True, 0))
        self.assertGreater(nearest["not_taken"], 0)
        self.assertEqual((stores[20]["guards"][0]["line"], stores[20]["guards"][0]["not_taken"]), (19, 0))
        text = (self.directory / "coverage").read_text()
        self.assertIn("program.c:16:15: reached", text)
        self.assertIn("needs the condition at program.c:17:9 to be true; it depends on the input, and never was", text)


if __name__ == "__main__":
    unittest.main()
