#!/usr/bin/env python3
"""srpc-ping against servers, and against what is none."""

import json
import pathlib
import shutil
import signal
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import srpc  # noqa: E402


class Ping(srpc.ProgramTest):
    program = "srpc-ping"

    @classmethod
    def setUpClass(cls):
        cls.server = srpc.perf_server("--poll-groups", 2)
        cls.addClassCleanup(cls.server.close)

    def test_tells_what_the_server_allows(self):
        done = self.run_program(self.server.address, "-c", 20, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual(said["address"], self.server.address)
        self.assertEqual(said["transport"], "shm")
        self.assertEqual(said["version"], 1)
        self.assertEqual(said["poll_groups"], 2)
        self.assertEqual(said["credits"], 256)
        self.assertEqual(said["limits"], {"calls": 1024, "payload_under_way_bytes": 64 << 20, "request_bytes": 16 << 20,
                                          "metadata_bytes": 4096, "idle_timeout_ms": 40000})
        self.assertRegex(said["server_id"], "^[0-9a-f]{32}$")
        trip = said["round_trip_us"]
        self.assertEqual(trip["count"], 20)
        self.assertTrue(0 < trip["min"] <= trip["median"] <= trip["p99"] <= trip["max"], trip)

    def test_tells_it_to_people(self):
        done = self.run_program(self.server.address, "--transport", "tcp", "--count", 5, "--interval", "1ms")
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in (f"{self.server.address}: SRPC version 1 over tcp", " of 2", "256 messages", "64.0 MiB", "16.0 MiB",
                     "4.00 KiB", "40s", "of 5 pings"):
            self.assertIn(part, done.stdout)

    def test_goes_where_it_is_told(self):
        for transport in ("tcp", "shm", "near"):
            for group in (0, 1):
                done = self.run_program(self.server.address, "-c", 2, "--json", "--transport", transport,
                                        "--poll-group", group)
                self.assertEqual(done.returncode, 0, done.stderr)
                said = json.loads(done.stdout)
                self.assertEqual(said["poll_group"], group)
                self.assertEqual(said["transport"], "tcp" if transport == "tcp" else "shm")
        done = self.run_program(self.server.address, "--poll-group", 2)
        self.assert_fails(done, 1, "poll group 2 doesn't exist: there are 2", "below the number")

    def test_names_are_resolved(self):
        port = self.server.address.rsplit(":", 1)[1]
        done = self.run_program(f"localhost:{port}", "-c", 1, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["address"].rsplit(":", 1)[1], port)
        self.assert_fails(self.run_program("no-such-host.invalid"), 3, "no-such-host.invalid")

    def test_a_server_that_is_not_there(self):
        address, holder = srpc.unused_address()
        self.addCleanup(holder.close)
        self.assert_fails(self.run_program(address), 3, address, "refused", "is the server running")
        said = self.assert_fails(self.run_program(address, "--json"), 3)
        self.assertEqual(json.loads(said)["error"]["code"], "unavailable")
        self.assert_fails(self.run_program(address, "--transport", "shm"), 3, "shared memory", "--transport tcp")

    def test_a_port_that_speaks_something_else(self):
        for answer in (srpc.HTTP_ANSWER, b"SSH-2.0-OpenSSH_9.2p1\r\n" + bytes(64)):
            other = srpc.OtherServer(answer)
            self.addCleanup(other.close)
            said = self.assert_fails(self.run_program(other.address), 4, other.address, "doesn't speak SRPC")
            self.assertEqual(said.count("\n"), 1, said)
        closing = srpc.OtherServer(b"")
        self.addCleanup(closing.close)
        self.assert_fails(self.run_program(closing.address), 4, "not an SRPC server")
        silent = srpc.OtherServer(None)
        self.addCleanup(silent.close)
        self.assert_fails(self.run_program(silent.address, "--timeout", "300ms"), 4, "within 300ms", "didn't say hello")

    def test_a_server_that_hangs(self):
        server = srpc.perf_server()
        self.addCleanup(server.close)
        self.assertEqual(self.run_program(server.address, "-c", 1).returncode, 0)
        server.process.send_signal(signal.SIGSTOP)
        # The kernel still takes the connection.
        done = self.run_program(server.address, "--timeout", "300ms", "--transport", "tcp")
        server.process.send_signal(signal.SIGCONT)
        self.assert_fails(done, 4, "overloaded")

    def test_keys(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="srpc-keys-"))
        self.addCleanup(shutil.rmtree, folder)
        right, wrong = srpc.make_key_file(folder, "right"), srpc.make_key_file(folder, "wrong")
        server = srpc.perf_server("--key-file", right)
        self.addCleanup(server.close)
        for transport in ("tcp", "shm"):
            where = (server.address, "--transport", transport, "-c", 1)
            self.assertEqual(self.run_program(*where, "--key-file", right).returncode, 0)
            self.assert_fails(self.run_program(*where), 1, "not_authenticated", "--key-file FILE")
            self.assert_fails(self.run_program(*where, "--key-file", wrong), 1, "aren't the server's")
        # While keys are changed both are accepted, and the first one proves.
        both = folder / "both"
        both.write_text(wrong.read_text() + right.read_text())
        self.assert_fails(self.run_program(server.address, "-c", 1, "--key-file", both), 1, "aren't the server's")
        both.write_text(right.read_text() + wrong.read_text())
        self.assertEqual(self.run_program(server.address, "-c", 1, "--key-file", both).returncode, 0)
        # An open server has nothing to prove with.
        self.assert_fails(self.run_program(self.server.address, "-c", 1, "--key-file", right), 1, "or it has none")
        said = self.assert_fails(self.run_program(server.address, "--json"), 1)
        self.assertEqual(json.loads(said)["error"]["code"], "unauthenticated")

    def test_tls(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="srpc-keys-"))
        self.addCleanup(shutil.rmtree, folder)
        right, wrong = srpc.make_key_file(folder, "right"), srpc.make_key_file(folder, "wrong")
        server = srpc.perf_server("--tls", "--key-file", right)
        self.addCleanup(server.close)
        where = (server.address, "--transport", "tcp", "-c", 1)
        told = self.run_program(*where, "--tls", "--key-file", right, "--json")
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertEqual(json.loads(told.stdout)["transport"], "tls")
        self.assert_fails(self.run_program(*where, "--key-file", right), 1, "this server takes TLS only", "--tls")
        self.assert_fails(self.run_program(*where, "--tls", "--key-file", wrong), 1, "aren't the server's")
        # What stays on the machine isn't encrypted.
        near = self.run_program(server.address, "-c", 1, "--tls", "--key-file", right, "--json")
        self.assertEqual(json.loads(near.stdout)["transport"], "shm")
        self.assert_fails(self.run_program(self.server.address, "--transport", "tcp", "--tls", "--key-file", right), 1,
                          "the server takes no TLS")
        self.assert_fails(self.run_program(*where, "--tls"), 2, "--key-file")

    def test_key_files_that_are_none(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="srpc-keys-"))
        self.addCleanup(shutil.rmtree, folder)
        bad = folder / "bad"
        for text, message in (("", "has no key"), ("secret\n", "line 1: a key is a line of 64 hexadecimal digits")):
            bad.write_text(text)
            said = self.assert_fails(self.run_program("--key-file", bad), 2, str(bad), message)
            self.assertNotIn("secret", said)
        self.assert_fails(self.run_program("--key-file", folder / "none"), 2, "No such file")

    def test_wrong_usage(self):
        for arguments in (("--count", "0"), ("--count", "x"), ("--timeout", "5"), ("--timeout", "0"),
                          ("--interval", "-1s"), ("--transport", "ib"), ("--poll-group", "65535"), ("--no-such",),
                          ("a", "b")):
            done = self.run_program(*arguments)
            self.assertEqual(done.returncode, 2, (arguments, done.stderr))
            self.assertTrue(done.stderr.strip(), arguments)

    def test_help_and_man_page(self):
        self.assert_help_teaches()
        self.assert_man_page_is_complete()
        self.assertRegex(self.run_program("--version").stdout, r"^srpc-ping \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    srpc.main()
