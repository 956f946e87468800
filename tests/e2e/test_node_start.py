#!/usr/bin/env python3
"""Starting and stopping a node, beyond test_node.py: other numbers of reactors, stops under way, and every other reason
not to start."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import node as nodes  # noqa: E402
from cairntest import payload, s3, suite  # noqa: E402

MIB = 1 << 20
START_SECONDS = 60


def put_head(node, bucket, key, size):
    """The head of a signed PUT of `size` bytes, for sending the body by hand."""
    headers = {"host": node.endpoint(), "content-length": str(size)}
    headers = node.s3().signer.headers("PUT", f"/{bucket}/{key}", (), headers, s3.UNSIGNED)
    return "\r\n".join([f"PUT /{bucket}/{key} HTTP/1.1", *(f"{n}: {v}" for n, v in headers.items()), "", ""]).encode()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


class Alone(unittest.TestCase):
    """Tests that start their own nodes."""

    def setUp(self):
        if nodes.external():
            self.skipTest("needs a cairnd of its own")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="node-test-", dir=nodes.scratch_folder()))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.data = self.folder / "data"

    def make_node(self, **kwargs):
        node = nodes.Node(**{"device_size": "512MiB", **kwargs})
        self.addCleanup(node.close)
        return node

    def cairnd(self, *arguments, data=None, settings=None):
        """Runs cairnd to its end, which is what one that can't start does."""
        command = [nodes.bin_folder() / "cairnd", "--data", data or self.data]
        for name, value in {"device.size": "512MiB", "ports.base": 0, **(settings or {})}.items():
            command += ["--set", f"{name}={value}"]
        return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=START_SECONDS, check=False)

    def assert_refused(self, done, *parts, code=1):
        """It ended with `code`, and its last line says all of `parts`."""
        self.assertEqual(done.returncode, code, done.stderr)
        lines = done.stderr.strip().splitlines()
        said = [line for line in lines if line.startswith("cairnd: ")]
        self.assertEqual(len(said), 1, f"one line says why:\n{done.stderr}")
        self.assertEqual(lines[-1], said[0])
        for part in parts:
            self.assertIn(str(part), said[0])


class Life(Alone):
    def test_another_number_of_reactors_finds_the_same_data(self):
        node = self.make_node(settings={"reactors": 1, "device.shards": 4}).start()
        node.s3().create_bucket("bucket")
        objects = {f"key {n}": payload.make(n, n * 70_000 + 1) for n in range(20)}
        for key, body in objects.items():
            node.s3().put("bucket", key, body)
        for reactors in (2, 1):
            node.settings["reactors"] = reactors
            node.restart()
            for key, body in objects.items():
                self.assertEqual(node.s3().get("bucket", key).body, body, key)

    def test_hangup_is_ignored(self):
        node = self.make_node().start()
        node.process.send_signal(signal.SIGHUP)
        node.s3().create_bucket("alive")
        self.assertTrue(node.alive())

    def test_a_stop_lets_an_upload_finish(self):
        node = self.make_node().start()
        node.s3().create_bucket("bucket")
        body = payload.make(5, 8 * MIB)
        connection = socket.create_connection(node.address)
        self.addCleanup(connection.close)
        connection.sendall(put_head(node, "bucket", "slow", len(body)) + body[: 4 * MIB])
        time.sleep(0.3)  # the node has the request; not a measurement
        node.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        connection.sendall(body[4 * MIB:])
        reply = connection.recv(65536)
        self.assertTrue(reply.startswith(b"HTTP/1.1 200 "), reply)
        self.assertEqual(node.process.wait(30), 0)
        node.process = None
        node.start()
        self.assertEqual(node.s3().get("bucket", "slow").body, body)

    def test_a_stop_does_not_wait_for_ever(self):
        node = self.make_node(settings={"stop.timeout": "1s"}).start()
        node.s3().create_bucket("bucket")
        connection = socket.create_connection(node.address)
        self.addCleanup(connection.close)
        connection.sendall(put_head(node, "bucket", "never", 1000) + b"x")
        time.sleep(0.3)
        self.assertEqual(node.stop(), 0)

    def test_a_second_signal_ends_it_at_once(self):
        node = self.make_node(settings={"stop.timeout": "1h"}).start()
        node.s3().create_bucket("bucket")
        connection = socket.create_connection(node.address)
        self.addCleanup(connection.close)
        connection.sendall(put_head(node, "bucket", "never", 1000) + b"x")
        time.sleep(0.3)
        node.process.send_signal(signal.SIGTERM)
        with self.assertRaises(subprocess.TimeoutExpired):
            node.process.wait(1)
        node.process.send_signal(signal.SIGTERM)
        self.assertEqual(node.process.wait(10), -signal.SIGTERM)
        node.process = None
        node.start()
        self.assertEqual(node.s3().request("HEAD", "bucket").status, 200)


class Refusals(Alone):
    """Each reason not to start: one line with the cure, exit code 1; nothing that was there is lost."""

    def test_port_taken(self):
        for service in ("s3", "admin", "srpc"):
            with socket.socket() as taken:
                taken.bind(("127.0.0.1", 0))
                taken.listen()
                port = taken.getsockname()[1]
                done = self.cairnd(settings={f"ports.{service}": port, "reactors": 2})
                self.assert_refused(done, service, f"port {port} is in use", f"ports.{service}=")

    def test_port_of_another_node_even_though_reactors_share_ports(self):
        node = self.make_node(settings={"reactors": 2}).start()
        port = node.endpoint("s3").rpartition(":")[2]
        self.assert_refused(self.cairnd(settings={"ports.s3": port, "reactors": 2}), f"port {port} is in use")

    def test_an_address_of_another_machine(self):
        self.assert_refused(self.cairnd(settings={"listen.s3": "203.0.113.7"}), "s3 can't listen on 203.0.113.7", "listen.s3")

    def test_device_larger_than_the_disk(self):
        self.assert_refused(self.cairnd(settings={"device.size": "1000TiB"}), "device.size", "free")
        self.assertFalse((self.data / "device0").exists())

    def test_foreign_device(self):
        device = self.folder / "precious"
        device.write_bytes(b"\0" * 5000 + b"my thesis" + b"\0" * (300 * MIB))
        self.assert_refused(self.cairnd(settings={"device.path": device}), device, "isn't Cairn's")
        self.assertEqual(device.read_bytes()[5000:5009], b"my thesis")

    def test_device_of_another_cluster(self):
        node = self.make_node().start()
        node.s3().create_bucket("theirs")
        self.assertEqual(node.stop(), 0)
        done = self.cairnd(settings={"device.path": node.data / "device0"})
        self.assert_refused(done, "another cluster", node.ready["cluster_id"])
        node.start()
        self.assertEqual(node.s3().request("HEAD", "theirs").status, 200)

    def test_device_of_a_newer_release(self):
        node = self.make_node().start()
        self.assertEqual(node.stop(), 0)
        with open(node.data / "device0", "r+b") as device:
            for offset in (0, MIB // 2):  # both copies of the header
                device.seek(offset)
                header = bytearray(device.read(4096))
                header[8:12] = (99).to_bytes(4, "little")  # the version; the checksum of the block follows it
                header[12:16] = bytes(4)
                header[12:16] = crc32c(header).to_bytes(4, "little")
                device.seek(offset)
                device.write(header)
        self.assert_refused(self.cairnd(data=node.data), "newer release", "99")

    def test_data_directory_of_a_newer_release(self):
        self.data.mkdir()
        (self.data / "node.json").write_text('{"format": 2}')
        self.assert_refused(self.cairnd(), "newer release", "format 2", "upgrade")

    def test_device_replaced_by_a_blank_one(self):
        node = self.make_node().start()
        self.assertEqual(node.stop(), 0)
        blank = self.folder / "blank"
        with open(blank, "wb") as file:
            file.truncate(512 * MIB)
        self.assert_refused(self.cairnd(data=node.data, settings={"device.path": blank}), "blank", "device.path")

    def test_store_gone(self):
        node = self.make_node().start()
        self.assertEqual(node.stop(), 0)
        shutil.rmtree(node.data / "store")
        self.assert_refused(self.cairnd(data=node.data), "store")

    def test_damaged_identity(self):
        node = self.make_node().start()
        self.assertEqual(node.stop(), 0)
        (node.data / "node.json").write_text("{}")
        self.assert_refused(self.cairnd(data=node.data), "node.json", "backup")

    def test_no_parent_directory(self):
        self.assert_refused(self.cairnd(data=self.folder / "a" / "b"), "can't create the data directory")

    def test_no_permission(self):
        if os.getuid() == 0 and not shutil.which("setpriv"):
            self.fail("needs setpriv to drop root")
        self.data.mkdir(mode=0o700)
        os.chmod(self.folder, 0o755)
        command = [nodes.bin_folder() / "cairnd", "--data", self.data, "--set", "ports.base=0"]
        if os.getuid() == 0:
            command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
        else:
            os.chmod(self.data, 0o500)
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS, check=False)
        self.assert_refused(done, "ermi")

    def test_more_reactors_than_shards(self):
        self.assert_refused(self.cairnd(settings={"reactors": 8, "device.shards": 8, "device.size": "256MiB"}), "reactors=8", "shards")

    def test_wrong_settings_are_usage_errors(self):
        for settings, parts in (({"reactros": 1}, ["did you mean reactors?"]), ({"device.size": "much"}, ["is not a size"]),
                                ({"ports.s3": 70000}, ["65535"]), ({"listen.default": "localhost"}, ["not an IP address"])):
            done = self.cairnd(settings=settings)
            with self.subTest(settings=settings):
                self.assert_refused(done, *parts, code=2 if "listen.default" not in settings else done.returncode)
        self.assertEqual(subprocess.run([nodes.bin_folder() / "cairnd"], capture_output=True, check=False).returncode, 2)

    def test_json_logs_are_json(self):
        self.data.mkdir()
        (self.data / "node.json").write_text('{"format": 2}')
        done = self.cairnd(settings={"log.format": "json"})
        self.assertEqual(done.returncode, 1)
        last = json.loads(done.stderr.strip().splitlines()[-1])
        self.assertIn("newer release", last["message"])


if __name__ == "__main__":
    suite.main()
