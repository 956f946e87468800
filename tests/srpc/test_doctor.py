#!/usr/bin/env python3
"""srpc-doctor on this machine, whatever it is like. What it says about others is doctor_test.cc's business."""

import json
import pathlib
import resource
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import node as nodes  # noqa: E402
from cairntest import srpc  # noqa: E402

LEVELS = ["ok", "unknown", "note", "warning", "error"]
EXIT_CODES = {"ok": 0, "unknown": 0, "note": 0, "warning": 3, "error": 1}


class Doctor(srpc.ProgramTest):
    program = "srpc-doctor"

    def test_examines_everything(self):
        done = self.run_program("--json")
        said = json.loads(done.stdout)
        subjects = {finding["subject"] for finding in said["findings"]}
        self.assertLessEqual({"rdma", "memlock", "descriptors", "io_uring", "huge pages", "shared memory", "cores", "governor",
                              "control group"}, subjects)
        worst = max((finding["level"] for finding in said["findings"]), key=LEVELS.index)
        self.assertEqual(said["worst"], worst)
        self.assertEqual(done.returncode, EXIT_CODES[worst], done.stdout)
        for finding in said["findings"]:
            if finding["level"] in ("note", "warning", "error"):
                self.assertTrue(finding["fix"], finding)
            self.assertNotIn("\n", finding["fix"] + finding["text"])

    def test_tells_it_to_people(self):
        done = self.run_program()
        self.assertIn("io_uring", done.stdout)
        problems = self.run_program("--problems")
        self.assertEqual(problems.returncode, done.returncode)
        self.assertFalse([line for line in problems.stdout.splitlines() if line.startswith(("ok ", "unknown "))])

    def test_sees_the_limits_of_its_own_process(self):
        limit = 200
        done = subprocess.run([str(nodes.bin_folder() / self.program), "--json"], capture_output=True, text=True, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
        self.assertEqual(done.returncode, 1, done.stderr)
        finding = next(f for f in json.loads(done.stdout)["findings"] if f["subject"] == "descriptors")
        self.assertEqual(finding["level"], "error")
        self.assertIn(f"open files: {limit}", finding["text"])

    def test_wrong_usage(self):
        for arguments in (("--no-such",), ("word",)):
            self.assertEqual(self.run_program(*arguments).returncode, 2)

    def test_help_and_man_page(self):
        self.assert_help_teaches()
        self.assert_man_page_is_complete()
        self.assertRegex(self.run_program("--version").stdout, r"^srpc-doctor \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    srpc.main()
