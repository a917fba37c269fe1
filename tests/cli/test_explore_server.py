# SPDX-License-Identifier: BSD-3-Clause
"""perdure explore: a server, what a client may send it, and its threads."""

import json
import re
import socket
import subprocess
import unittest

from support import PROGRAMS, TOOLS, TestCase

SERVER = PROGRAMS.parent / "symbolic" / "server.c"
STORED = r"set k 0 0 2\r\n17\r\n"
RARE = (r"?????? k\r\n", r"incr k ??\r\n", r"stats ?????\r\n")
LINES = [number for number, line in enumerate(SERVER.read_text().splitlines(), 1) if "finds: missing-flush" in line]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


class Server(TestCase):
    def build(self, source, name, *flags):
        subprocess.run([TOOLS / "perdure-cc", "--symbolic", "-g", "-O2", *flags, source, "-o", name, "-lpthread"],
                       cwd=self.directory, check=True)

    def explore(self, *words, status=None):
        result = subprocess.run([TOOLS / "perdure", "explore", "--pm", "pool", "--json", "result", *words],
                                cwd=self.directory, capture_output=True, text=True, timeout=120)
        if status is not None:
            self.assertEqual(result.returncode, status, result.stderr)
        return json.loads((self.directory / "result").read_text())

    def found(self, result):
        return {(f["kind"], f["sites"][0]["line"]) for f in result["findings"] if f["confirmed"]}

    def test_rare_commands_and_native_replay(self):
        """Each with another packet; what was found is sent to the real server, whatever it waits with."""
        self.build(SERVER, "server")
        port = free_port()
        for mode in ("plain", "loop", "select", "threads", "datagrams"):
            for packet, line in zip(RARE, LINES):
                with self.subTest(mode=mode, packet=packet):
                    result = self.explore("--sym-packet", STORED, "--sym-packet", packet, "./server", "pool", port,
                                          mode, status=1)
                    self.assertEqual(self.found(result), {("missing-flush", line)})
                    self.assertTrue(result["complete"], result["limits"])
                    self.run_tool("replay", result["findings"][0]["id"], status=1)
                    (self.directory / "pool").unlink()

    def test_fixed(self):
        self.build(SERVER, "server", "-DFIXED")
        for packet in RARE:
            result = self.explore("--sym-packet", STORED, "--sym-packet", packet, "./server", "pool", "1", "threads",
                                  status=0)
            self.assertGreater(result["stats"]["paths"], 2)

    def test_bytes_without_a_form(self):
        self.build(SERVER, "server")
        result = self.explore("--sym-socket", "5", "./server", "pool", "1", "loop", status=0)
        self.assertTrue(result["complete"], result["limits"])
        self.assertGreater(result["stats"]["paths"], 20)

    def test_packets_that_make_no_sense(self):
        for text in (r"a\z", "", r"\x1"):
            result = self.run_tool("explore", "--sym-packet", text, "./server", status=2)
            self.assertIn("--sym-packet", result.stderr)

    def write(self, name, text):
        (self.directory / name).write_text(text)
        return name

    def test_edges_and_events(self):
        """epoll with EPOLLET and EPOLLONESHOT, an eventfd, FIONREAD, readv: as in the kernel."""
        self.build(self.write("program.c", r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
int main(void)
{
    struct sockaddr_in own = { .sin_family = AF_INET }, other;
    socklen_t size = sizeof(other);
    int set = epoll_create1(0), listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), event = eventfd(0, EFD_NONBLOCK);
    struct epoll_event wanted = { .events = EPOLLIN | EPOLLET }, heard[4];
    char a[2], b[8];
    struct iovec parts[2] = { { a, 2 }, { b, 8 } };
    int left = -1;
    long count = 3;
    assert(accept(listener, 0, 0) < 0);
    assert(bind(listener, (void *)&own, sizeof(own)) == 0 && listen(listener, 1) == 0);
    assert(getsockname(listener, (void *)&other, &size) == 0 && other.sin_port != 0);
    int fd = accept4(listener, (void *)&other, &size, SOCK_NONBLOCK);
    assert(fd >= 0 && other.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    assert(accept(listener, 0, 0) < 0 && errno == EAGAIN);
    wanted.data.fd = fd;
    assert(epoll_ctl(set, EPOLL_CTL_ADD, fd, &wanted) == 0);
    assert(epoll_ctl(set, EPOLL_CTL_ADD, fd, &wanted) < 0 && errno == EEXIST);
    assert(epoll_wait(set, heard, 4, 0) == 1 && heard[0].data.fd == fd);
    assert(epoll_wait(set, heard, 4, 0) == 0);
    assert(ioctl(fd, FIONREAD, &left) == 0 && left == 5);
    assert(readv(fd, parts, 2) == 5);
    assert(read(fd, b, 1) < 0 && errno == EAGAIN);
    assert(epoll_wait(set, heard, 4, 0) == 1);
    assert(recv(fd, b, 8, MSG_PEEK) == 1 && recv(fd, b, 8, 0) == 1 && b[0] == '!');
    assert(epoll_wait(set, heard, 4, 0) == 1 && read(fd, b, 1) == 0);
    wanted = (struct epoll_event){ .events = EPOLLIN | EPOLLONESHOT, .data.fd = event };
    assert(epoll_ctl(set, EPOLL_CTL_ADD, event, &wanted) == 0 && epoll_wait(set, heard, 4, 0) == 0);
    assert(write(event, &count, 8) == 8 && write(event, &count, 8) == 8);
    assert(epoll_wait(set, heard, 4, 0) == 1 && epoll_wait(set, heard, 4, 5) == 0);
    assert(read(event, &count, 8) == 8 && count == 6 && read(event, &count, 8) < 0);
    close(fd);
    if (a[0] == 'x' && a[1] == 'y')
        __builtin_trap();
}
"""), "program")
        result = self.explore("--inputs", "none", "--sym-packet", "??abc", "--sym-packet", "!", "./program")
        self.assertEqual([(c["signal"], c["line"], c["input"][0]["hex"][:4]) for c in result["crashes"]], [(4, 46, "7879")])

    def test_streams_and_duplicates(self):
        """fgets on a stream of the socket, a duplicate of it, MSG_WAITALL over two packets, SHUT_WR."""
        self.build(self.write("program.c", r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
int main(void)
{
    struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons(4712) };
    int pool = open("pool", O_RDWR | O_CREAT, 0600), listener = socket(AF_INET, SOCK_STREAM, 0), fd, other;
    char line[16], rest[8];
    uint64_t *pm;
    if (ftruncate(pool, 4096) < 0)
        return 2;
    pm = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, pool, 0);
    bind(listener, (void *)&own, sizeof(own));
    listen(listener, 1);
    fd = accept(listener, 0, 0);
    other = dup(fd);
    FILE *stream = fdopen(fd, "r");
    if (!fgets(line, sizeof(line), stream) || line[0] == '\n')
        return 0;
    assert(line[4] == '\n');
    assert(recv(other, rest, 6, MSG_WAITALL) == 6);
    fclose(stream);
    if (line[0] == 'a' && rest[5] == 'z')
        pm[0] = 1;
    assert(shutdown(other, SHUT_WR) == 0 && send(other, "x", 1, MSG_NOSIGNAL) < 0 && errno == EPIPE);
    assert(read(other, rest, 1) == 0);
    close(other);
}
"""), "program")
        result = self.explore("--sym-packet", r"?bcd\n", "--sym-packet", "123", "--sym-packet", "45?", "./program", status=1)
        self.assertEqual((self.found(result), result["crashes"]), ({("missing-flush", 32)}, []))

    def test_schedules_are_paths(self):
        """Only if the other thread comes between the two stores, and the input is right, something is missing."""
        self.build(self.write("program.c", r"""
#include <fcntl.h>
#include <immintrin.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
static uint64_t *pm;
static volatile int stage;
static void *other(void *in)
{
    if (stage == 1 && *(char *)in == 'q') {
        pm[8] = 1;
    }
    return NULL;
}
int main(void)
{
    int fd = open("pool", O_RDWR | O_CREAT, 0600);
    pthread_t thread;
    char in;
    if (ftruncate(fd, 4096) < 0 || read(0, &in, 1) != 1)
        return 2;
    pm = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    pthread_create(&thread, NULL, other, &in);
    stage = 1;
    stage = 2;
    pthread_join(thread, NULL);
}
"""), "program")
        result = self.explore("--sym-stdin", "1", "./program", status=0)
        self.assertEqual(self.found(result), set())
        result = self.explore("--schedule", "all", "--preemptions", "1", "--sym-stdin", "1", "./program", status=1)
        self.assertEqual(self.found(result), {("missing-flush", 13)})
        self.assertTrue(result["complete"], result["limits"])
        self.assertEqual({source["kind"] for source in result["findings"][0]["input"]}, {"stdin", "schedule"})

    def test_drive_of_run(self):
        self.build(SERVER, "server")
        port = free_port()
        client = "printf 'set k 0 0 1\\r\\n1\\r\\ndelete k\\r\\n' > /dev/tcp/127.0.0.1/%s; sleep 0.3" % port
        result = self.run_tool("run", "--pm", "pool", "--json", "result", "--drive", "bash -c \"%s\"" % client,
                               "./server", "pool", port, "loop", status=1)
        found = json.loads((self.directory / "result").read_text())["findings"]
        self.assertEqual([f["sites"][0]["line"] for f in found], [LINES[0]], result.stderr)


if __name__ == "__main__":
    unittest.main()
