"""What the benchmarks share: interleaved runs, medians, cases, tables.

A benchmark is bench/NAME.py with

    def run(ctx):
        return [ctx.compare("tcp 64 B depth 1", "us", "lower", ours, theirs, peer="bare epoll ping-pong"), ...]

where `ours` and `theirs` measure once and return a number. They are run in turn, A B A B ..., after one warm-up of each,
because two runs a minute apart differ by more than what is to be measured; the medians are compared.
"""

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))


class Context:
    """Handed to run(): where the programs are, a scratch folder on the disk that is measured, how often to repeat."""

    def __init__(self, build, runs=5, scratch=None, quick=False):
        self.build = pathlib.Path(build).resolve()
        self.quick = quick  # a smoke run: figures mean nothing
        self.runs = 1 if quick else runs
        self._scratch = tempfile.TemporaryDirectory(prefix="cairn-bench-", dir=scratch or self.build)
        self.scratch = pathlib.Path(self._scratch.name)

    def close(self):
        self._scratch.cleanup()

    def program(self, name):
        """The path of bench/NAME_main.cc's program, or of cairnd and cairn."""
        for path in (self.build / "bench" / name, self.build / name):
            if path.exists():
                return path
        raise SystemExit(f"bench: {name} is not built in {self.build}: cmake --build {self.build} --target bench_programs")

    def json(self, *command, **kwargs):
        """Runs a program that prints one JSON document."""
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, **kwargs)
        if done.returncode:
            raise SystemExit(f"bench: {command[0]} ended with {done.returncode}:\n{done.stderr[-2000:]}")
        return json.loads(done.stdout)

    def compare(self, case, unit, better, ours, theirs, peer, note="", runs=None):
        """One case of two functions that each measure once and give a number."""
        return self.compare_many([(case, unit, better)], lambda: {case: ours()}, lambda: {case: theirs()}, peer, note, runs)[0]

    def compare_many(self, cases, ours, theirs, peer, note="", runs=None):
        """Cases that one run measures together: `ours` and `theirs` each give {case: number}."""
        runs = 1 if self.quick else (runs or self.runs)
        samples = {"ours": {c[0]: [] for c in cases}, "theirs": {c[0]: [] for c in cases}}
        for turn in range(0 if self.quick else -1, runs):  # turn -1 warms up and is thrown away
            for side, measure in (("ours", ours), ("theirs", theirs)):
                result = measure()
                if turn >= 0:
                    for case, *_ in cases:
                        samples[side][case].append(float(result[case]))
        made = [make_case(c, u, b, samples["ours"][c], samples["theirs"][c], peer, note) for c, u, b in cases]
        for case in made:
            print(row(case), flush=True)
        return made


def make_case(case, unit, better, ours, theirs, peer, note=""):
    """A case as DESIGN's front door describes it, of two lists of samples."""
    assert better in ("lower", "higher"), better
    mine, other = statistics.median(ours), statistics.median(theirs)
    return {"case": case, "unit": unit, "better": better, "ours": mine, "peer": peer, "theirs": other,
            "ratio": mine / other if other else None, "runs": len(ours), "note": note,
            "spread": {"ours": [min(ours), max(ours)], "theirs": [min(theirs), max(theirs)]}}


def _number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def row(case):
    ratio = "-" if case["ratio"] is None else f"{case['ratio']:.2f}x"
    return (f"  {case['case']:34} {_number(case['ours']):>12} {_number(case['theirs']):>12} {case['unit']:8} {ratio:>7}  "
            f"{case['better']:6}  {case['peer']}")


def header():
    return f"  {'case':34} {'ours':>12} {'theirs':>12} {'unit':8} {'ratio':>7}  better  peer"


def machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    return f"{os.cpu_count()} x {model}, Linux {os.uname().release}"


def have(program):
    return shutil.which(program) is not None


def wait_port(port, seconds=10):
    """Until something listens on the loopback port."""
    import socket
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise SystemExit(f"bench: nothing listens on port {port} after {seconds} s")
