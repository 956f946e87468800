#!/usr/bin/env python3
"""Clients that are slow, half dead or malicious cost a bounded amount, are closed with a reason, and disturb nobody."""

import os
import pathlib
import random
import socket
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import payload, raw, s3, suite  # noqa: E402

MIB = 1 << 20
HEADER_SECONDS, IDLE_SECONDS, STALL_SECONDS = 2, 3, 3


class Hostile(suite.NodeTest):
    settings = {"s3.header_timeout": f"{HEADER_SECONDS}s", "s3.idle_timeout": f"{IDLE_SECONDS}s", "s3.stall_timeout": f"{STALL_SECONDS}s"}
    needs_process = True

    def assert_still_serves(self):
        self.s3.drop()
        self.s3.put(self.bucket, "alive", b"yes")
        self.assertEqual(self.s3.get(self.bucket, "alive").body, b"yes")

    def put_head(self, length, key="k"):
        target = f"/{self.bucket}/{key}"
        return raw.head("PUT", target, self.s3.signer.headers("PUT", target, (), {"host": self.s3.netloc, "content-length": str(length)}, s3.UNSIGNED))

    def test_half_a_request(self):
        for sent in (b"", b"G", b"GET / HTTP/1.1\r\nHost: x\r\n", self.put_head(100), self.put_head(100_000) + b"x" * 50_000):
            with raw.Connection(self.node.address) as connection:
                began = time.monotonic()
                connection.send(sent)
                connection.drain(STALL_SECONDS + IDLE_SECONDS + 15)
                self.assertTrue(connection.closed_by_peer(1), f"still open {time.monotonic() - began:.1f} s after {sent[:30]!r}")
        self.assertEqual(self.s3.head(self.bucket, "k").status, 404)
        self.assert_still_serves()

    def test_a_byte_a_second(self):
        """Sending something now and then doesn't keep a head open for ever."""
        with raw.Connection(self.node.address) as connection:
            connection.socket.settimeout(0.2)
            message, began = b"GET / HTTP/1.1\r\nx-slow: " + b"a" * 100, time.monotonic()
            closed = False
            while time.monotonic() - began < HEADER_SECONDS + 15 and not closed:
                try:
                    connection.send(message[:1])
                    message = message[1:] or b"a"
                    closed = connection.socket.recv(1000) is not None
                except TimeoutError:
                    pass
                except OSError:
                    closed = True
            self.assertTrue(closed, "a head that came byte by byte was never cut off")
        self.assert_still_serves()

    def test_ten_gibibyte_header(self):
        """Sent until the server has had enough; it must not take more than a few MiB of it, nor grow."""
        before = self.node.rss()
        for start in (b"GET / HTTP/1.1\r\nx-big: ", b"GET /", b"GET / HTTP/1.1\r\n", b"\r\n"):
            piece = b"a: b\r\n" * 10_000 if start.endswith(b"1.1\r\n") else b"\r\n" * 30_000 if start == b"\r\n" else b"a" * 60_000
            sent = 0
            with raw.Connection(self.node.address, timeout=10) as connection:
                try:
                    connection.send(start)
                    while sent < 10 << 30:
                        connection.send(piece)
                        sent += len(piece)
                except OSError:
                    pass
                reply = connection.drain(1)
            self.assertLess(sent, 256 * MIB, start)  # what kernel buffers hold, and what is drained so that the answer arrives
            if reply:
                self.assertRegex(reply.split(b"\r\n")[0], rb"HTTP/1\.1 (400|414|431) ", start)
        self.assertLess(self.node.rss() - before, 32 * MIB)
        self.assert_still_serves()

    def test_too_large_heads_get_an_answer(self):
        for message in (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n", b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"a" * 200_000 + b"\r\n\r\n",
                        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000 + b"\r\n"):
            with raw.Connection(self.node.address) as connection:
                try:
                    connection.send(message)
                except OSError:
                    pass
                reply = connection.drain(5)
                if reply:  # a reset may overtake the answer
                    self.assertRegex(reply.split(b"\r\n")[0], rb"HTTP/1\.1 (400|414|431) ")
        self.assert_still_serves()

    def test_no_http(self):
        good = b"host: x\r\n\r\n"
        for message in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500, b"\0" * 1000, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n" + good,
                        b"GET / HTTP/1.1\r\nbad header\r\n\r\n", b"GET / HTTP/1.1\r\ncontent-length: -1\r\n" + good, b"PUT / HTTP/1.1\r\ncontent-length: 1e9\r\n" + good,
                        b"PUT /b/k HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n" + good + b"hello!",
                        b"PUT /b/k HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n" + good + b"0\r\n\r\n",
                        b"PUT /b/k HTTP/1.1\r\ntransfer-encoding: gzip\r\n" + good, b"GET http://other/ HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n",
                        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"CONNECT x:1 HTTP/1.1\r\n" + good, os.urandom(5000)):
            with raw.Connection(self.node.address) as connection:
                try:
                    connection.send(message)
                except OSError:
                    pass
                reply = connection.drain(IDLE_SECONDS + 5)
                if reply:
                    self.assertRegex(reply.split(b"\r\n")[0], rb"HTTP/1\.[01] [45]\d\d ", message[:60])
        self.assert_still_serves()

    def test_random_mutations_of_a_good_request(self):
        chance = random.Random(7)
        good = self.put_head(11) + b"hello world"
        for _ in range(150):
            message = bytearray(good)
            for _ in range(chance.randint(1, 6)):
                at = chance.randrange(len(message))
                choice = chance.random()
                if choice < 0.5:
                    message[at] = chance.randrange(256)
                elif choice < 0.75:
                    del message[at:at + chance.randint(1, 20)]
                else:
                    message[at:at] = chance.randbytes(chance.randint(1, 20))
            with raw.Connection(self.node.address) as connection:
                try:
                    connection.send(bytes(message))
                    connection.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
                connection.drain(2)
        self.assert_still_serves()

    def test_a_reader_that_stops_reading(self):
        """Many slow readers of a large object hold little memory each, and one who doesn't read is closed."""
        self.s3.put(self.bucket, "big", payload.Stream("big", 64 * MIB))
        target = f"/{self.bucket}/big"
        message = raw.head("GET", target, self.s3.signer.headers("GET", target, (), {"host": self.s3.netloc}, s3.EMPTY_SHA256))
        before = self.node.rss()
        connections = [raw.Connection(self.node.address) for _ in range(50)]
        for connection in connections:
            connection.send(message)
        self.assert_still_serves()
        time.sleep(1)
        self.assertLess(self.node.rss() - before, 300 * MIB)
        deadline = time.monotonic() + IDLE_SECONDS + 20
        while time.monotonic() < deadline and self.node.open_files() > 60:
            time.sleep(0.2)
        self.assertLess(self.node.open_files(), 60 + 30, "readers that don't read are never closed")
        for connection in connections:
            connection.socket.close()
        self.assert_still_serves()

    def test_idle_connections_cost_little_and_go(self):
        before_files, before = self.node.open_files(), self.node.rss()
        connections = [socket.create_connection(self.node.address) for _ in range(500)]
        self.assert_still_serves()
        self.assertLess(self.node.rss() - before, 500 * 64 * 1024)
        deadline = time.monotonic() + HEADER_SECONDS + IDLE_SECONDS + 15
        while time.monotonic() < deadline and self.node.open_files() > before_files + 20:
            time.sleep(0.2)
        self.assertLessEqual(self.node.open_files(), before_files + 20, "idle connections were never closed")
        for connection in connections:
            connection.close()

    def test_disconnects_in_the_middle(self):
        """Bodies and replies cut off at random places leave no descriptor and no memory behind."""
        data = payload.make("cut", 2 * MIB)
        self.s3.put(self.bucket, "k", data)
        target = f"/{self.bucket}/k"
        chance = random.Random(3)

        def cut(number):
            if number % 2:
                message, want = self.put_head(len(data), "cut") + data[:chance.randrange(len(data))], 0
            else:
                message = raw.head("GET", target, self.s3.signer.headers("GET", target, (), {"host": self.s3.netloc}, s3.EMPTY_SHA256))
                want = chance.randrange(2 * MIB)
            with raw.Connection(self.node.address) as connection:
                connection.send(message)
                while want > 0:
                    got = connection.socket.recv(65536)
                    want -= len(got) or want
                if chance.random() < 0.5:
                    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # RST instead of FIN

        for number in range(20):
            cut(number)
        files, memory = self.node.open_files(), self.node.rss()
        threads = [threading.Thread(target=lambda: [cut(n) for n in range(50)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        deadline = time.monotonic() + IDLE_SECONDS + 10
        while time.monotonic() < deadline and self.node.open_files() > files + 10:
            time.sleep(0.1)
        self.assertLessEqual(self.node.open_files(), files + 10)
        self.assertLess(self.node.rss() - memory, 300 * MIB)
        self.assertEqual(self.s3.head(self.bucket, "cut").status, 404)
        self.assertEqual(self.s3.get(self.bucket, "k").body, data)

    def test_connection_limit(self):
        """A port scan's worth of connections beside real work: real work goes on."""
        stop, errors = threading.Event(), []

        def work():
            client = self.node.s3()
            while not stop.is_set():
                try:
                    client.put(self.bucket, "beside", b"work")
                except Exception as error:  # noqa: BLE001: whatever it is, it is what this test is about
                    errors.append(error)

        worker = threading.Thread(target=work)
        worker.start()
        for _ in range(5):
            connections = [socket.create_connection(self.node.address) for _ in range(200)]
            for connection in connections:
                connection.close()
        stop.set()
        worker.join()
        self.assertEqual(errors, [])


if __name__ == "__main__":
    suite.main()
