#!/usr/bin/env python3
"""SRPC over soft-RoCE, with the kernel's own verbs: in one guest, and between two guests on one virtual wire."""

import json
import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import guest, node, suite  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 900


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class RdmaTest(suite.unittest.TestCase):
    def test_within_one_guest(self):
        machine = guest.Guest(modules=["rdma_rxe", "veth"])
        status, output = machine.run([sys.executable, HERE / "rdma_guest.py", node.bin_folder()], SECONDS)
        print(output)
        self.assertEqual(status, 0, output)
        self.assertIn("all is well", output)

    def test_between_two_guests(self):
        port, bin_folder = free_port(), node.bin_folder()
        wire = "-netdev socket,id=wire,{}=127.0.0.1:%d -device virtio-net-pci,netdev=wire,mac=52:54:00:00:00:0{},romfile=" % port
        ready = ("ip addr add 10.9.0.{}/24 dev eth1 && ip link set eth1 up && rdma link add rxe0 type rxe netdev eth1 && "
                 "rdma res show && ")
        server = guest.Guest(modules=["rdma_rxe"], qemu=wire.format("listen", 1).split())
        client = guest.Guest(modules=["rdma_rxe"], qemu=wire.format("connect", 2).split())
        self.addCleanup(server.close)
        self.addCleanup(client.close)
        server.start(["bash", "-c", ready.format(1) + f"exec {bin_folder}/srpc-perf server --rdma on --listen 10.9.0.1:7400 --memory 16MiB"])
        # It listens on the wire before the other one connects to it.
        self.assertIn(b"rxe0", server.output.readline())
        self.assertIn(b"10.9.0.1:7400", server.output.readline())
        perf = f"{bin_folder}/srpc-perf client 10.9.0.1:7400 --transport rdma --json"
        status, output = client.run(
            ["bash", "-c", ready.format(2) + f"{perf} --op echo --size 0,4096,65537 --depth 1,8 --seconds 4 && "
             f"{perf} --op write --size 256KiB --depth 2 --seconds 8 && "
             f"{sys.executable} {HERE}/rdma_guest.py {bin_folder} capture && "
             "for i in $(seq 100); do rdma res show | grep -q 'qp 1 ' && break; sleep 0.1; done; rdma res show"], SECONDS)
        server.close()
        print(output)
        self.assertEqual(status, 0, output)
        lines = output.strip().splitlines()
        self.assertEqual(lines[0].strip(), lines[-1].strip(), "what the client's device holds")
        decoder = json.JSONDecoder()
        rows, at = [], output.index("{")
        while at >= 0:
            document, end = decoder.raw_decode(output, at)
            rows += document["runs"]
            at = output.find("{", end)
        self.assertEqual(len(rows), 7, output)
        for row in rows:
            self.assertEqual(row["transport"], "rdma", row)
            self.assertGreater(row["calls"], 0, row)


if __name__ == "__main__":
    suite.main()
