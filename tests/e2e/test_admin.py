#!/usr/bin/env python3
"""The admin API and the CLI against a live node, with one reactor and with two."""

import concurrent.futures
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import node as nodes  # noqa: E402
from cairntest import payload, s3, suite  # noqa: E402

MIB = 1 << 20


class Admin(suite.NodeTest):
    needs_process = True
    device_size = "512MiB"

    def call(self, method, path, body=None, token=None):
        request = urllib.request.Request(f"http://{self.node.endpoint('admin')}{path}", method=method,
                                         data=None if body is None else json.dumps(body).encode())
        token = self.node.ready["admin_token"] if token is None else token
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return reply.status, json.loads(reply.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def test_the_token_is_asked_for(self):
        for token in ("", "wrong", self.node.ready["admin_token"][:-1]):
            status, answer = self.call("GET", "/v1/status", token=token or "")
            self.assertEqual((status, answer["error"]["code"]), (401, "unauthenticated"))
        self.assertEqual(self.call("GET", "/healthz", token="")[0], 200)
        self.assertEqual(self.call("GET", "/readyz", token="")[0], 200)

    def test_status(self):
        status, answer = self.call("GET", "/v1/status")
        self.assertEqual(status, 200)
        self.assertEqual(answer["health"], "ok", answer["problems"])
        self.assertEqual(answer["cluster_id"], self.node.ready["cluster_id"])
        self.assertEqual({g["service"]: g["address"] for g in answer["gateways"]}, self.node.ready["endpoints"])
        device, = answer["devices"]
        self.assertEqual(device["size_bytes"], 512 * MIB)
        self.assertEqual([s["id"] for s in device["shards"]], list(range(len(device["shards"]))))
        pool, = answer["pools"]
        self.assertGreater(pool["available_bytes"], 0)
        self.assertLess(pool["total_bytes"], 512 * MIB)
        self.assertGreater(len(answer["groups"]), 0)

    def test_used_space_follows_the_data(self):
        used = lambda: self.call("GET", "/v1/status")[1]["pools"][0]["used_bytes"]  # noqa: E731
        before = used()
        self.s3.put(self.bucket, "big", payload.make(1, 32 * MIB))
        self.assertGreaterEqual(used() - before, 32 * MIB)
        self.assertLess(used() - before, 40 * MIB)

    def test_metrics_say_what_happened(self):
        before = self.node.metrics()
        for number in range(10):
            self.s3.put(self.bucket, f"k{number}", b"x")
        after = self.node.metrics()
        grown = [n for n in after if n.startswith("s3_requests") and after[n] - before.get(n, 0) >= 10]
        self.assertTrue(grown, sorted(n for n in after if "s3" in n))

    def test_every_metric_is_documented(self):
        page = (nodes.ROOT / "docs/metrics.md").read_text()
        names = {line.split()[2] for line in self.node.metrics_text().splitlines() if line.startswith("# TYPE ")}
        self.assertEqual([n for n in sorted(names) if f"`{n}" not in page], [])
        documented = set(re.findall(r"`((?:node|reactor|mem|http|s3|object|client|srpc|replica|engine|kv)_[a-z_]+)", page))
        self.assertEqual(sorted(documented - names), [], "no longer there")

    def test_big_bodies_and_bad_ones(self):
        status, answer = self.call("POST", "/v1/buckets", {"name": "a" * 100_000})
        self.assertEqual((status, answer["error"]["code"]), (413, "too_large"))
        status, answer = self.call("POST", "/v1/buckets", {"nam": "abc"})
        self.assertEqual((status, answer["error"]["code"]), (400, "invalid_argument"))
        self.assertEqual(self.call("PATCH", "/v1/buckets")[0], 405)

    def test_checkpoint(self):
        self.s3.put(self.bucket, "k", b"x")
        self.assertEqual(self.call("POST", "/v1/checkpoint"), (200, {"checkpointed": True}))


class Cli(suite.NodeTest):
    needs_process = True
    device_size = "512MiB"

    def cairn(self, *arguments, code=0):
        done = self.node.cli(*arguments)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}{done.stderr}")
        return done.stdout if code == 0 else done.stderr

    def test_status(self):
        text = self.cairn("status")
        for part in ("ok", self.node.ready["cluster_id"], "device0", self.node.endpoint("s3")):
            self.assertIn(part, text)
        self.assertNotIn("\033", text)
        self.assertEqual(json.loads(self.cairn("--json", "status"))["health"], "ok")
        self.assertEqual(json.loads(self.cairn("status", "--json"))["health"], "ok")

    def test_buckets(self):
        self.cairn("bucket", "create", "made-here")
        self.assertEqual(self.s3.request("HEAD", "made-here").status, 200)
        self.assertIn("made-here", self.cairn("bucket", "list"))
        self.s3.put("made-here", "k", b"12345")
        info = json.loads(self.cairn("--json", "bucket", "info", "made-here", "--count"))
        self.assertEqual((info["objects"], info["bytes"]), (1, 5))
        self.cairn("bucket", "create", "made-here", code=5)
        self.assertIn("not empty", self.cairn("bucket", "delete", "made-here", code=5))
        self.s3.delete("made-here", "k")
        self.cairn("bucket", "delete", "made-here")
        self.cairn("bucket", "delete", "made-here", code=4)
        self.cairn("bucket", "info", "made-here", code=4)
        self.cairn("bucket", "create", "Not_Valid", code=1)

    def test_keys_open_and_close_the_door(self):
        key = json.loads(self.cairn("--json", "key", "create", "--note", "a test"))
        self.assertIn("a test", self.cairn("key", "list"))
        self.assertNotIn(key["secret_key"], self.cairn("--json", "key", "list"))
        other = s3.Client(self.node.endpoint(), key["access_key"], key["secret_key"])
        self.assertEqual(other.put(self.bucket, "by-the-new-key", b"x").status, 200)
        wrong = s3.Client(self.node.endpoint(), key["access_key"], "not-the-secret")
        self.assertEqual(wrong.request("GET", self.bucket, "by-the-new-key").status, 403)
        self.cairn("key", "delete", key["access_key"])
        self.cairn("key", "delete", key["access_key"], code=4)
        deadline = time.monotonic() + 30
        while other.request("GET", self.bucket, "by-the-new-key").status != 403:
            self.assertLess(time.monotonic(), deadline, "a deleted key still works")
            time.sleep(0.2)

    def test_given_keys(self):
        self.cairn("key", "create", "--access-key", "alice", "--secret-key", "wonderland")
        self.cairn("key", "create", "--access-key", "alice", "--secret-key", "wonderland", code=5)
        self.cairn("key", "create", "--access-key", "a/b", code=1)

    def test_config(self):
        rows = {row["name"]: row for row in json.loads(self.cairn("--json", "config"))["settings"]}
        self.assertEqual(rows["ports.base"]["origin"], "--set")
        self.assertEqual(rows["log.level"]["origin"], "default")
        self.assertIn("ports.base", self.cairn("config"))

    def test_checkpoint_and_orphans(self):
        self.cairn("checkpoint")
        self.assertEqual(json.loads(self.cairn("--json", "check", "orphans"))["orphans"], 0)

    def test_exit_codes(self):
        self.cairn("nonsense", code=2)
        self.cairn("bucket", "create", code=2)
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))  # bound and not listening: refused
            port = nobody.getsockname()[1]
            self.assertIn("is cairnd running", self.cairn("--endpoint", f"127.0.0.1:{port}", "status", code=3))
        env = dict(os.environ, CAIRN_ENDPOINT=self.node.endpoint("admin"), CAIRN_TOKEN="wrong")
        done = subprocess.run([nodes.bin_folder() / "cairn", "status"], capture_output=True, text=True, env=env, check=False)
        self.assertEqual(done.returncode, 6, done.stderr)

    def test_the_data_directory_is_enough(self):
        env = {n: v for n, v in os.environ.items() if not n.startswith("CAIRN_")}
        done = subprocess.run([nodes.bin_folder() / "cairn", "--data", self.node.data, "status"], capture_output=True, text=True,
                              env=env, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(self.node.ready["cluster_id"], done.stdout)


class TwoReactors(suite.NodeTest):
    needs_process = True
    device_size = "512MiB"
    settings = {"reactors": 2}

    def test_every_connection_sees_everything(self):
        """Connections land on either reactor; data on both reactors' shards."""
        bodies = {f"k{n}": payload.make(n, n * 40_000 + 1) for n in range(24)}

        def put(item):
            self.s3.put(self.bucket, item[0], item[1])

        def get(item):
            return self.s3.get(self.bucket, item[0]).body == item[1]

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(put, bodies.items()))
            self.assertTrue(all(pool.map(get, bodies.items())))
        self.assertEqual(len(list(self.s3.list_keys(self.bucket))), len(bodies))

    def test_both_are_shown(self):
        status = json.loads(self.node.cli("--json", "status").stdout)
        self.assertEqual([r["id"] for r in status["reactors"]], [0, 1])
        self.assertEqual({s["reactor"] for s in status["devices"][0]["shards"]}, {0, 1})


if __name__ == "__main__":
    suite.main()
