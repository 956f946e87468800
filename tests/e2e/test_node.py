#!/usr/bin/env python3
"""The life of a node: start, stop, crash, what stands in the way of a start, the CLI, metrics."""

import concurrent.futures
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import payload, suite  # noqa: E402
from cairntest import node as nodes  # noqa: E402

MIB = 1 << 20


class Life(suite.NodeTest):
    needs_process = True

    def test_ready_file(self):
        ready = self.node.ready
        for name in ("s3", "admin", "srpc"):
            host, _, port = ready["endpoints"][name].rpartition(":")
            socket.create_connection((host, int(port)), timeout=5).close()
            self.assertEqual(host, "127.0.0.1", "by default everything listens on loopback")
        self.assertEqual(ready["pid"], self.node.process.pid)
        for name in ("access_key", "secret_key", "admin_token", "cluster_id"):
            self.assertTrue(ready[name], name)
        for path in self.node.data.rglob("*"):
            if path.is_file():
                self.assertEqual(path.stat().st_mode & 0o077 if path.name in ("admin_token", "credentials.json", "cluster_key") else 0, 0, path)
        self.assertEqual(self.node.data.stat().st_mode & 0o777, 0o700)

    def test_restart_keeps_everything(self):
        keys, cluster = (self.node.access_key, self.node.secret_key), self.node.ready["cluster_id"]
        objects = {f"k{i}": payload.make(i, size) for i, size in enumerate((0, 10, 5000, MIB, 9 * MIB))}
        for key, data in objects.items():
            self.s3.put(self.bucket, key, data, headers={"x-amz-meta-n": key})
        upload = self.s3.ok("POST", self.bucket, "m", query=[("uploads", "")]).xml.findtext("UploadId")
        etag = self.s3.ok("PUT", self.bucket, "m", query=[("partNumber", "1"), ("uploadId", upload)], body=b"part").etag
        for how in (self.node.restart, lambda: (self.node.kill(), self.node.start())):
            how()
            self.s3 = type(self).s3 = self.node.s3()
            self.assertEqual((self.node.access_key, self.node.secret_key), keys)
            self.assertEqual(self.node.ready["cluster_id"], cluster)
            for key, data in objects.items():
                got = self.s3.get(self.bucket, key)
                self.assertEqual((got.body, got.headers["x-amz-meta-n"]), (data, key))
        self.s3.complete(self.bucket, "m", upload, [(1, etag)])
        self.assertEqual(self.s3.get(self.bucket, "m").body, b"part")

    def test_graceful_stop_finishes_what_is_under_way(self):
        self.s3.put(self.bucket, "k", payload.Stream("stop", 64 * MIB))
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            started = []

            def sink(piece):
                if not started:
                    started.append(1)
                    self.node.process.send_signal(signal.SIGTERM)

            reply = pool.submit(lambda: self.node.s3().get(self.bucket, "k", sink=sink)).result(60)
        self.assertEqual(reply.status, 200)
        self.assertEqual(self.node.process.wait(30), 0)
        self.node.process = None
        self.node.start()
        self.s3 = type(self).s3 = self.node.s3()
        self.assertEqual(self.node.stop(), 0)
        self.node.start()
        self.s3 = type(self).s3 = self.node.s3()

    def test_sigint_stops_too_and_frees_the_ports(self):
        port = self.node.address[1]
        self.node.process.send_signal(signal.SIGINT)
        self.assertEqual(self.node.process.wait(30), 0)
        self.node.process = None
        self.assertFalse(self.node.ready_path.exists(), "a stopped node isn't ready")
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
        self.node.start()
        self.s3 = type(self).s3 = self.node.s3()

    def test_idle_node_sleeps(self):
        time.sleep(3)
        def cpu():
            fields = pathlib.Path(f"/proc/{self.node.process.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        before, began = cpu(), time.monotonic()
        time.sleep(5)
        used = (cpu() - before) / (time.monotonic() - began)
        self.assertLess(used, 0.10, f"an idle node used {used:.1%} of a core")

    def test_metrics(self):
        self.s3.put(self.bucket, "k", b"x")
        text = self.node.metrics_text()
        for line in text.splitlines():
            self.assertRegex(line, r"^(# (HELP|TYPE) [a-zA-Z_:][\w:]* .*|[a-zA-Z_:][\w:]*(\{.*\})? [-+.\deEInfNa]+)$")
        types = re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
        self.assertEqual(len(types), len(set(types)), "a metric is declared twice")
        for name in ("mem_payload_bytes_copied_total", "reactor_cross_thread_hops_total"):
            self.assertIn(name, types)

    def test_log_is_quiet_and_useful(self):
        for line in self.node.log().splitlines():
            self.assertLess(len(line), 2000)
        self.assertNotIn(self.node.secret_key, self.node.log())
        self.assertNotIn(self.node.ready["admin_token"], self.node.log())


class Refusals(unittest.TestCase):
    """What stands in the way of a start is named, with what to do about it, and nothing is damaged."""

    def refused(self, node, pattern):
        with self.assertRaises(nodes.NodeError) as caught:
            node.start(20)
        message = str(caught.exception)
        self.assertNotIn("was not ready", message, "it should have ended at once")
        self.assertRegex(message, pattern)
        return message

    def test_data_directory_in_use(self):
        with nodes.Node(device_size="512MiB") as first:
            second = nodes.Node(device_size="512MiB")
            second.data = first.data
            try:
                self.assertIn(str(first.process.pid), self.refused(second, r"(?i)in use|locked|running"))
            finally:
                second.close()
            first.s3().create_bucket("still-fine")

    def test_port_taken(self):
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            port = holder.getsockname()[1]
            node = nodes.Node(device_size="512MiB", settings={"ports.s3": port})
            try:
                self.refused(node, rf"(?is){port}.*in use|in use.*{port}")
            finally:
                node.close()

    def test_device_too_small(self):
        node = nodes.Node(device_size="1MiB")
        try:
            self.refused(node, r"(?i)small|at least|least")
        finally:
            node.close()

    def test_foreign_device(self):
        node = nodes.Node(device_size="512MiB")
        foreign = node.folder / "foreign"
        foreign.write_bytes(b"somebody's file system " * 50_000)
        before = foreign.read_bytes()
        node.settings["device.path"] = str(foreign)
        try:
            self.refused(node, r"(?i)foreign|not.*cairn|isn't|format|data")
            self.assertEqual(foreign.read_bytes(), before, "a foreign file was overwritten")
        finally:
            node.close()

    def test_unknown_setting_and_bad_values(self):
        for name, value, pattern in (("device.siez", "1GiB", r"device\.size"), ("device.size", "many", r"device\.size"), ("mode", "turbo", r"performance|economy")):
            node = nodes.Node(device_size="512MiB", settings={name: value})
            try:
                self.refused(node, pattern)
            finally:
                node.close()

    def test_missing_device(self):
        node = nodes.Node(device_size="512MiB")
        with node:
            client = node.s3()
            client.create_bucket("bucket-a")
            client.put("bucket-a", "k", b"x" * 100_000)
            node.stop()
            (node.data / "device0").rename(node.data / "hidden")
            self.refused(node, r"(?i)device0|missing|not found|No such")
            self.assertFalse((node.data / "device0").exists(), "a missing device must not be made anew, empty")
            (node.data / "hidden").rename(node.data / "device0")
            node.start()
            self.assertEqual(node.s3().get("bucket-a", "k").body, b"x" * 100_000)

    def test_torn_first_start(self):
        """Killed at any moment of the very first start, the second start works."""
        for delay in (0.0, 0.02, 0.05, 0.1, 0.2, 0.4):
            node = nodes.Node(device_size="256MiB")
            process = subprocess.Popen(node.arguments(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(delay)
            process.kill()
            process.wait()
            with node:
                node.s3().create_bucket("works")


class Cli(suite.NodeTest):
    needs_process = True

    def json(self, *arguments):
        done = self.node.cli("--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def test_status(self):
        done = self.node.cli("status")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(self.json("status"))

    def test_buckets_and_keys(self):
        done = self.node.cli("bucket", "create", "by-the-cli")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.s3.request("HEAD", "by-the-cli").status, 200)
        self.assertIn("by-the-cli", self.node.cli("bucket", "list").stdout)
        self.assertEqual(self.node.cli("bucket", "delete", "by-the-cli").returncode, 0)
        self.assertEqual(self.s3.request("HEAD", "by-the-cli").status, 404)
        self.assertNotEqual(self.node.cli("bucket", "delete", "never-there").returncode, 0)

    def test_errors(self):
        self.assertNotEqual(self.node.cli("no-such-command").returncode, 0)
        env = dict(os.environ, CAIRN_ENDPOINT="http://127.0.0.1:1", CAIRN_TOKEN="x")
        done = subprocess.run([nodes.bin_folder() / "cairn", "status"], capture_output=True, text=True, env=env, timeout=60, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertTrue(done.stderr.strip())

    def test_admin_asks_for_the_token(self):
        request = urllib.request.Request(f"http://{self.node.endpoint('admin')}/v1/status", headers={"Authorization": "Bearer wrong"})
        with self.assertRaises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request, timeout=10)
        self.assertIn(caught.exception.code, (401, 403))


if __name__ == "__main__":
    suite.main()
