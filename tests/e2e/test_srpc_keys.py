#!/usr/bin/env python3
"""A node whose SRPC asks for a key of the cluster: itself, the tools, strangers, and a change of the key."""

import pathlib
import secrets
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import node as nodes  # noqa: E402
from cairntest import payload, srpc  # noqa: E402


class Keys(unittest.TestCase):
    def setUp(self):
        if nodes.external():
            self.skipTest("needs a cairnd of its own")

    def start(self, **settings):
        # Two reactors: each is the other's client.
        node = nodes.Node(device_size="512MiB", settings={"reactors": 2, **settings})
        self.addCleanup(node.close)
        return node.start()

    def ping(self, node, *arguments):
        return srpc.run("srpc-ping", node.endpoint("srpc"), "-c", 1, *arguments)

    def assert_serves(self, node, body):
        """Objects, whose chunks and index lie with both reactors."""
        client = node.s3()
        for number in range(8):
            client.put("bucket", f"{number}", body)
            self.assertEqual(client.get("bucket", f"{number}").body, body)
        client.drop()

    def test_who_knows_the_key_is_served(self):
        node = self.start(**{"srpc.keys": "required"})
        node.s3().create_bucket("bucket")
        self.assert_serves(node, payload.make(1, 300_000))
        key = node.data / "cluster_key"
        for group in (0, 1):
            done = self.ping(node, "--key-file", key, "--poll-group", group)
            self.assertEqual(done.returncode, 0, done.stderr)
        done = self.ping(node)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--key-file FILE", done.stderr)
        other = node.folder / "other"
        other.write_text(secrets.token_hex(32))
        self.assertIn("aren't the server's", self.ping(node, "--key-file", other).stderr)
        self.assertGreaterEqual(node.metric("srpc_server_connections_closed_total", reason="not_authenticated"), 2)

    def test_the_key_is_changed_in_three_steps(self):
        node = self.start(**{"srpc.keys": "required"})
        node.s3().create_bucket("bucket")
        file = node.data / "cluster_key"
        old, new = file.read_text(), secrets.token_hex(32) + "\n"
        key_files = {}
        for name, text in (("old", old), ("new", new)):
            key_files[name] = node.folder / name
            key_files[name].write_text(text)
        # A client of each step's neighbours: with the key that it proves, accepted or not.
        for text, accepted in ((old + new, {"old", "new"}), (new + old, {"old", "new"}), (new, {"new"})):
            file.write_text(text)
            node.restart()
            self.assert_serves(node, payload.make(2, 100_000))
            for name, path in key_files.items():
                both = node.folder / "both"
                both.write_text(path.read_text() + key_files["new" if name == "old" else "old"].read_text())
                done = self.ping(node, "--key-file", both)
                self.assertEqual(done.returncode, 0 if name in accepted else 1, (text, name, done.stderr))

    def test_beyond_loopback_only_with_keys(self):
        node = nodes.Node(device_size="512MiB", settings={"listen.srpc": "0.0.0.0"})
        self.addCleanup(node.close)
        with self.assertRaises(nodes.NodeError) as refused:
            node.start()
        self.assertIn("set srpc.keys=required", str(refused.exception))
        node.settings["srpc.keys"] = "required"
        node.start()
        node.s3().create_bucket("bucket")
        self.assert_serves(node, payload.make(3, 100_000))

    def test_open_by_default(self):
        node = self.start()
        self.assertEqual(self.ping(node).returncode, 0)

    def test_damaged_keys_end_the_start(self):
        node = self.start()
        node.stop()
        (node.data / "cluster_key").write_text("secret\n")
        done = subprocess.run(node.arguments(), capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cluster_key has no key in line 1", done.stderr)
        self.assertNotIn("secret", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
