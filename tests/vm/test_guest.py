#!/usr/bin/env python3
"""The virtual machine itself: that commands run in it as they should, and that what goes wrong is told."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import guest, suite  # noqa: E402

BOOT_SECONDS = 240


class GuestTest(unittest.TestCase):
    def test_a_command_in_it(self):
        with tempfile.TemporaryDirectory() as shared, tempfile.TemporaryDirectory() as private:
            pathlib.Path(private, "in").write_text("from the host")
            script = f"""
                uname -r; id -u; pwd; cat in; echo again >in; echo kept >{shared}/out; rdma link | wc -l
                cat /sys/module/rdma_rxe/initstate; echo to the other stream >&2; exit 7"""
            machine = guest.Guest(modules=["rdma_rxe"], shares=[shared])
            status, output = machine.run(["bash", "-c", script], BOOT_SECONDS, cwd=private)
            self.assertEqual(output.splitlines(), [guest.kernel_version(), "0", private, "from the host" + "0", "live",
                                                   "to the other stream"], output)
            self.assertEqual(status, 7)
            self.assertEqual(pathlib.Path(private, "in").read_text(), "from the host")
            self.assertEqual(pathlib.Path(shared, "out").read_text(), "kept\n")

    def test_one_that_dies(self):
        machine = guest.Guest()
        with self.assertRaisesRegex(guest.GuestError, "(?s)the guest died.*before it.*sysrq_handle_crash"):
            machine.run(["bash", "-c", "echo before it; sync; sleep 1; echo c >/proc/sysrq-trigger"], BOOT_SECONDS)

    def test_one_that_hangs(self):
        machine = guest.Guest()
        machine.start(["bash", "-c", "echo waiting; sleep 1000000"])
        self.assertEqual(machine.output.readline(), b"waiting\n")
        with self.assertRaisesRegex(guest.GuestError, "wasn't done after 0.1 s"):
            machine.wait(0.1)


if __name__ == "__main__":
    suite.main()
