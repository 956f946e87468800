#!/usr/bin/env python3
"""The soak must be able to fail: it finds a server that loses something, whatever it is, and names it."""

import json
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE)]
import soak  # noqa: E402

FOUND_BY = {"": set(), "memory": {"memory"}, "pool": {"pool"}, "descriptors": {"descriptors"}, "mappings": {"mappings"},
            "calls": {"calls under way"}}


class Leaks(unittest.TestCase):
    def run_soak(self, leak):
        command = [sys.executable, str(HERE / "soak.py"), "--seconds", "6", "--clients", "12", "--mean-life", "1", "--seed", "1",
                   "--settle", "3" if leak else "30", "--quiet", "--json", *(["--leak", leak] if leak else [])]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertTrue(done.stdout, done.stderr)
        return done.returncode, json.loads(done.stdout)

    def test_each_leak_is_found(self):
        for leak, probes in FOUND_BY.items():
            with self.subTest(leak=leak or "none"):
                code, result = self.run_soak(leak)
                found = {row["what"] for row in result["held"] if not row["ok"]}
                self.assertEqual(code, 1 if leak else 0, result)
                self.assertLessEqual(probes, found, result)
                self.assertGreater(result["kills"], 0)

    def test_the_warm_up_is_no_excuse(self):
        fresh = {probe.name: 0 for probe in soak.PROBES}
        warm = {probe.name: 7 for probe in soak.PROBES}
        for probe in soak.PROBES:
            self.assertEqual(soak.standard(fresh, warm)[probe.name], 0 if probe.fresh else 7)
        self.assertTrue({"connections", "calls under way", "descriptors"} <= {p.name for p in soak.PROBES if p.fresh})

    def test_each_bound_holds(self):
        before = {probe.name: 7 for probe in soak.PROBES}
        for probe in soak.PROBES:
            held = {p.name: before[p.name] + p.slack for p in soak.PROBES}
            self.assertEqual(soak.excess(before, held), [])
            held[probe.name] += 1
            self.assertEqual(soak.excess(before, held), [probe])


if __name__ == "__main__":
    unittest.main(verbosity=2)
