#!/usr/bin/env python3
"""An SRPC server under clients that come and go badly. 64 processes connect (half over TCP, half over shared memory), call with
payload, cancel, run into deadlines, close and connect again, and are killed with SIGKILL at random moments; each is replaced at
once. Afterwards the server must hold what it held after the warm-up:

    warm-up  →  kill all, wait until quiet, note what is held  →  main part  →  the same again, compare

What is compared is the list PROBES, each with a bound that says how much more there may be, and why. Ends with 1 when a bound is
broken, when a call ended otherwise than it may, or when the server died or doesn't stop cleanly."""

import argparse
import heapq
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
from cairntest import node as nodes  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20


class Failed(Exception):
    """What the soak is there to find."""


class Server:
    def __init__(self, program, leak):
        self.process = subprocess.Popen([str(program), "server", *([leak] if leak else [])], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("serving at "):
            raise Failed(f"the server doesn't serve: {line}")
        self.address = line.split()[2]
        self.pid = self.process.pid
        self.metrics = {}

    def look(self):
        """Fetches the metrics: {name: sum of all its series}."""
        try:
            self.process.stdin.write("metrics\n")
            self.process.stdin.flush()
            self.metrics = {}
            while (line := self.process.stdout.readline()) != "# end\n":
                if not line:
                    raise BrokenPipeError
                if not line.startswith("#"):
                    name, value = line.rsplit(" ", 1)
                    name = name.split("{")[0]
                    self.metrics[name] = self.metrics.get(name, 0) + float(value)
        except BrokenPipeError:
            raise Failed(f"the server died: {self.process.wait()}") from None

    def proc(self, name):
        return pathlib.Path(f"/proc/{self.pid}/{name}").read_text(encoding="utf-8")

    def stop(self):
        self.process.stdin.close()
        try:
            code = self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            raise Failed("the server doesn't stop") from None
        if code:
            raise Failed(f"the server ended with {code}")

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


# --- What is held. RDMA's memory regions and queue pairs become two more lines here: `rdma -j resource show mr` and `... qp`,
# --- counted by pid.


class Probe:
    """What is held, and how much more of it there may be than after the warm-up; `fresh`: than before the first client came, so
    that what the warm-up left behind isn't the standard."""

    def __init__(self, name, read, slack, why, unit="", fresh=False):
        self.name, self.read, self.slack, self.why, self.unit, self.fresh = name, read, slack, why, unit, fresh


def resident_kib(server):
    return next(int(line.split()[1]) for line in server.proc("status").splitlines() if line.startswith("VmRSS:"))


def threads(server):
    return len(os.listdir(f"/proc/{server.pid}/task"))


def descriptors(server):
    return len(os.listdir(f"/proc/{server.pid}/fd"))


def mappings(server):
    return len(server.proc("maps").splitlines())


def memfd_mappings(server):
    """The segments of clients over shared memory."""
    return sum("/memfd:" in line for line in server.proc("maps").splitlines())


def pool_missing(server):
    return -server.metrics["mem_pool_free_bytes"]


PROBES = [
    Probe("memory", resident_kib, 3 * KIB, "what the C library keeps for the next time", "KiB"),
    Probe("pool", pool_missing, 0, "all payload comes back; less free is more held", "bytes", fresh=True),
    Probe("descriptors", descriptors, 0, "each belongs to a connection", fresh=True),
    Probe("mappings", mappings, 4, "the C library's own"),
    Probe("memfd mappings", memfd_mappings, 0, "each belongs to a connection", fresh=True),
    Probe("threads", threads, 0, "one for each poll group, and the first"),
    Probe("connections", lambda s: s.metrics["srpc_server_connections"], 0, "all clients are dead", fresh=True),
    Probe("calls under way", lambda s: s.metrics["srpc_server_calls_running"], 0, "nobody waits for them any more", fresh=True),
]


def read_all(server):
    server.look()
    return {probe.name: probe.read(server) for probe in PROBES}


def standard(fresh, warm):
    """With what is compared, of the server before its first client and after the warm-up."""
    return {p.name: (fresh if p.fresh else warm)[p.name] for p in PROBES}


def excess(before, after):
    """The probes whose bound is broken."""
    return [p for p in PROBES if after[p.name] > before[p.name] + p.slack]


# --- The clients ---


class Clients:
    """Processes that are killed at random, each replaced at once."""

    def __init__(self, program, server, count, mean_life, rng, errors):
        self.command, self.server, self.mean_life, self.random, self.errors = str(program), server, mean_life, rng, errors
        self.kills = 0
        self.running = [None] * count
        self.ends = []  # (when to kill it, number), the next one first

    def start(self, number):
        way = ("tcp", "shm")[number % 2]
        self.running[number] = subprocess.Popen(
            [self.command, "client", self.server.address, way, str(self.random.getrandbits(63))], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=self.errors)
        # Many short lives, so that kills hit the connect and the handshake as well.
        life = self.random.uniform(0, 0.1) if self.random.random() < 0.3 else self.random.expovariate(1 / self.mean_life)
        heapq.heappush(self.ends, (time.monotonic() + life, number))

    def kill(self, number):
        process = self.running[number]
        code = process.poll()
        if code is None:
            process.kill()
            process.wait()
            self.kills += 1
        elif code != 0:
            self.errors.seek(0)
            raise Failed(f"a client ended by itself: {self.errors.read()[-2000:]}")
        self.running[number] = None

    def run(self, seconds, progress):
        """Until then; all are dead afterwards."""
        end = time.monotonic() + seconds
        for number in range(len(self.running)):
            self.start(number)
        while (now := time.monotonic()) < end:
            when, number = self.ends[0]
            if when <= now:
                heapq.heappop(self.ends)
                self.kill(number)
                self.start(number)
            else:
                progress()
                time.sleep(min(when - now, end - now, 0.2))
        for number, process in enumerate(self.running):
            if process is not None:
                self.kill(number)
        self.ends.clear()

    def close(self):
        for process in self.running:
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


class Progress:
    """A line with the time that is left: on a terminal always the same one, else every so often."""

    def __init__(self, seconds, clients, quiet):
        self.began, self.seconds, self.clients, self.quiet = time.monotonic(), seconds, clients, quiet
        self.terminal = sys.stderr.isatty()
        self.next = 0.0

    def __call__(self):
        now = time.monotonic()
        if self.quiet or now < self.next:
            return
        self.next = now + (1 if self.terminal else max(10, self.seconds / 20))
        gone = now - self.began
        self.clients.server.look()
        metrics = self.clients.server.metrics
        text = (f"soak: {min(100, 100 * gone / self.seconds):3.0f} %, {max(0, self.seconds - gone):.0f} s left, "
                f"{self.clients.kills} kills, {metrics['srpc_server_calls_total']:.0f} calls, "
                f"{metrics['srpc_server_connections']:.0f} connections, {resident_kib(self.clients.server) // KIB} MiB")
        print(f"\r\033[K{text}" if self.terminal else text, end="" if self.terminal else "\n", file=sys.stderr, flush=True)

    def end(self):
        if self.terminal and not self.quiet:
            print(file=sys.stderr)


def settle(server, limit, wanted):
    """What is held when nothing moves any more: until `wanted`, or as long as a server may take."""
    deadline = time.monotonic() + limit
    while True:
        held = read_all(server)
        if wanted(held) or time.monotonic() > deadline:
            return held
        time.sleep(0.1)


def soak(args, errors):
    program = args.bin / "tests" / "srpc_soak"
    server = Server(program, args.leak)
    clients = Clients(program, server, args.clients, args.mean_life, random.Random(args.seed), errors)
    progress = Progress(args.seconds, clients, args.quiet)
    try:
        fresh = read_all(server)
        warm_up = min(60.0, args.seconds / 4)
        clients.run(warm_up, progress)
        warm = settle(server, args.settle, lambda held: not [p for p in excess(fresh, held) if p.fresh])
        before = standard(fresh, warm)
        clients.run(args.seconds - warm_up, progress)
        after = settle(server, args.settle, lambda held: not excess(before, held))
        progress.end()
        broken = excess(before, after)
        metrics = server.metrics
        if clients.kills == 0 or metrics["srpc_server_calls_total"] == 0:
            raise Failed("nothing was called or killed: nothing was tested")
        result = {"seconds": args.seconds, "seed": args.seed, "clients": args.clients, "kills": clients.kills,
                  "calls": int(metrics["srpc_server_calls_total"]),
                  "connections": int(metrics["srpc_server_connections_accepted_total"]),
                  "held": [{"what": p.name, "unit": p.unit, "before": before[p.name], "after": after[p.name], "slack": p.slack,
                            "ok": p not in broken} for p in PROBES],
                  "ok": not broken}
        if not broken:
            server.stop()
        return result
    finally:
        clients.close()
        server.close()


def show(result):
    print(f"soak: {result['seconds']:.0f} s, {result['clients']} clients, {result['kills']} kills, {result['connections']} "
          f"connections, {result['calls']} calls, seed {result['seed']}")
    print(f"  {'held by the server':20} {'before':>14} {'after':>14} {'may grow by':>12}")
    for row in result["held"]:
        print(f"  {row['what']:20} {row['before']:14.0f} {row['after']:14.0f} {row['slack']:12} {row['unit']:6}"
              f"{'' if row['ok'] else '  LEAK'}")
    print("soak: everything came back" if result["ok"] else "soak: FAILED")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=nodes.bin_folder())
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--mean-life", type=float, default=8, help="of a client, in seconds")
    parser.add_argument("--settle", type=float, default=30,
                        help="seconds that the server may take to notice that everybody is dead")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument("--leak", default="", help="what the server shall lose: memory, pool, descriptors, mappings, calls")
    args = parser.parse_args()
    args.bin = args.bin.resolve()
    with tempfile.TemporaryFile("w+") as errors:
        try:
            result = soak(args, errors)
        except Failed as failed:
            print(f"soak: FAILED with seed {args.seed}: {failed}", file=sys.stderr)
            return 1
    if args.json:
        print(json.dumps(result, indent=1))
    else:
        show(result)
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
