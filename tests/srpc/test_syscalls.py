#!/usr/bin/env python3
"""What a call over shared memory costs while both sides poll: no system call, no work of another thread, no copy. Counted by strace
in the two threads that do the work, in a short and in a longer run: what start and end cost is in both."""

import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import node as nodes  # noqa: E402
from cairntest import srpc, suite  # noqa: E402

AT_MOST = 0.01  # system calls for each call
ENOUGH_CALLS = 5000  # what start and end cost differs by a few dozen system calls from run to run
PERF = "srpc-perf"


def calls_of_thread(trace, name):
    """How many system calls the thread made that was given this name."""
    counts, tid, opened = collections.Counter(), None, None
    for line in trace.read_text(errors="replace").splitlines():
        number, _, rest = line.partition(" ")
        # One that was interrupted by another thread's is in two lines.
        if re.match(r"\s*[a-z_0-9]+\(", rest):
            counts[number] += 1
        # pthread_setname_np on another thread: opens its comm, writes the name.
        if found := re.search(r'/proc/self/task/(\d+)/comm"', rest):
            opened = found[1]
        elif opened and f'"{name}"' in rest and "write(" in rest:
            tid, opened = opened, None
    if tid is None:
        raise AssertionError(f"no thread {name} in {trace}")
    return counts[tid]


class SystemCalls(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="srpc-strace-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def strace(self, name):
        # -D: the program is our child, and gets our signals; strace is a process beside it.
        return [suite.need("strace"), "-D", "-f", "-qq", "-o", self.folder / name]

    def run_once(self, seconds, mode, transport, size, trace=True):
        """What the client says, and the system calls of the client's and the server's thread."""
        program = nodes.bin_folder() / PERF
        server = srpc.Server([*(self.strace("server") if trace else []), program, "server", "--listen", "127.0.0.1:0",
                              "--memory", "32MiB", "--mode", mode])
        self.addCleanup(server.close)
        command = [*(self.strace("client") if trace else []), program, "client", server.address, "--mode", mode, "--transport",
                   transport, "--op", "echo", "--size", size, "--seconds", seconds, "--json"]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(server.stop()[0], 0)
        run = json.loads(done.stdout)["runs"][0]
        if not trace:
            return run, 0, 0
        self.wait_complete("server")
        self.wait_complete("client")
        return run, calls_of_thread(self.folder / "client", "perf-0"), calls_of_thread(self.folder / "server", "srpc-0")

    def wait_complete(self, name):
        """strace may end a little after the program."""
        deadline = time.monotonic() + 30
        while "exit_group" not in (self.folder / name).read_text(errors="replace"):
            self.assertLess(time.monotonic(), deadline, f"strace of the {name} doesn't end")
            time.sleep(0.05)

    def per_call(self, mode, transport, size):
        """Additional system calls for each additional call: of client and server."""
        short, client_short, server_short = self.run_once(1, mode, transport, size)
        # Two that poll and have to share their cores with others hardly get anything done: then for longer.
        for seconds in (3, 10, 30, 90):
            long, client_long, server_long = self.run_once(seconds, mode, transport, size)
            calls = long["calls"] - short["calls"]
            if calls >= ENOUGH_CALLS:
                break
        self.assertGreaterEqual(calls, ENOUGH_CALLS, "too slow to tell anything")
        return (client_long - client_short) / calls, (server_long - server_short) / calls

    def test_none_over_shared_memory_while_both_poll(self):
        for size in ("0", "64", "64KiB"):
            with self.subTest(size=size):
                client, server = self.per_call("performance", "shm", size)
                self.assertLess(client, AT_MOST)
                self.assertLess(server, AT_MOST)

    def test_the_count_would_show_them(self):
        client, server = self.per_call("performance", "tcp", "64")
        self.assertGreater(client, 1)
        self.assertGreater(server, 1)

    def test_no_thread_works_for_another(self):
        for transport in ("shm", "tcp"):
            for mode in ("performance", "economy", "automatic"):
                run, _, _ = self.run_once(0.5, mode, transport, "64KiB", trace=False)
                self.assertGreater(run["calls"], 0)
                self.assertEqual(run["hops"], {"client": 0, "server": 0}, (transport, mode))


if __name__ == "__main__":
    srpc.main()
