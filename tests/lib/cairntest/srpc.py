"""SRPC's programs: running them, a server of srpc-perf's own, and their man pages."""

import pathlib
import re
import secrets
import signal
import socket
import subprocess
import threading
import unittest

from cairntest import node as nodes
from cairntest import suite

TIMEOUT = 120


def run(program, *arguments, timeout=TIMEOUT):
    """A program to its end; its two outputs apart."""
    command = [str(c) for c in (nodes.bin_folder() / program, *arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False,
                          stdin=subprocess.DEVNULL)


class Server:
    """A program that serves until it is told to stop, and says "serving at ADDRESS" in its first line."""

    def __init__(self, command):
        self.process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True)
        line = self.process.stdout.readline()
        found = re.search(r"serving at (\S+:\d+)", line)
        if not found:
            self.process.kill()
            rest, _ = self.process.communicate()
            raise AssertionError(f"{command[0]} doesn't serve: {line}{rest}")
        self.first_line = line
        self.address = found[1]

    def stop(self, how=signal.SIGTERM):
        """Its exit code, and what else it has printed."""
        self.process.send_signal(how)
        try:
            rest, _ = self.process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"{self.process.args[0]} doesn't stop")
        return self.process.returncode, rest

    def close(self):
        if self.process.poll() is None:
            self.stop(signal.SIGKILL)
        self.process.stdout.close()


def perf_server(*arguments):
    return Server([nodes.bin_folder() / "srpc-perf", "server", "--listen", "127.0.0.1:0", "--memory", "32MiB",
                   *arguments])


class OtherServer:
    """Something on a port that isn't SRPC: answers each connection with `answer` (None: never), and closes it."""

    def __init__(self, answer):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self._answer = answer
        self._held = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            if self._answer is None:
                self._held.append(connection)  # open, and silent
                continue
            connection.recv(4096)
            connection.sendall(self._answer)
            connection.close()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self._thread.join()
        for connection in self._held:
            connection.close()


def make_key_file(folder, name="cluster.key"):
    """A new key, in a file."""
    path = pathlib.Path(folder) / name
    path.write_text(f"# a test's\n{secrets.token_hex(32)}\n")
    return path


HTTP_ANSWER = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def unused_address():
    """Nobody listens there, and nobody will while the socket that comes along is open."""
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    return "127.0.0.1:%d" % holder.getsockname()[1], holder


class ProgramTest(unittest.TestCase):
    program = ""

    def run_program(self, *arguments):
        return run(self.program, *arguments)

    def assert_fails(self, done, code, *parts):
        """One line on standard error says why, and all of `parts`."""
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)
        return done.stderr

    def assert_man_page_is_complete(self, *commands):
        """man/PROGRAM.1 is sound, and has each option that --help of the program and its commands names."""
        page = nodes.ROOT / "man" / f"{self.program}.1"
        done = subprocess.run([suite.need("groff"), "-man", "-ww", "-z", str(page)], capture_output=True, text=True,
                              check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        text = page.read_text(encoding="utf-8").replace("\\-", "-")
        for command in ((), *((c,) for c in commands)):
            helped = self.run_program(*command, "--help")
            self.assertEqual(helped.returncode, 0, helped.stderr)
            options = set(re.findall(r"^\s+(?:-\w,)?\s*(--[a-z-]+)", helped.stdout, re.MULTILINE))
            self.assertIn("--help", options)
            missing = {o for o in options if not re.search(re.escape(o) + r"(?![a-z-])", text)}
            self.assertEqual(missing, set(), f"{page.name} doesn't have them")

    def assert_help_teaches(self, *commands):
        """The examples in --help are accepted by the program's own parser, as far as that goes without running them."""
        helped = self.run_program("--help")
        self.assertIn("Examples:", helped.stdout)
        self.assertIn("Exit codes:", helped.stdout)
        examples = [line.split() for line in helped.stdout.splitlines() if line.startswith(f"  {self.program}")]
        self.assertGreater(len(examples), 3)
        known = set()
        for command in ((), *((c,) for c in commands)):
            options = self.run_program(*command, "--help").stdout.split("Examples:")[0]
            known |= set(re.findall(r"-{1,2}[a-z][a-z-]*", options))
        for example in examples:
            for word in example[1:]:
                if word.startswith("-"):
                    self.assertIn(word, known, " ".join(example))


def main():
    unittest.main(verbosity=2)
