#!/usr/bin/env python3
"""Mixed load beside thousands of idle connections: memory stays bounded, nothing fails but with 503 SlowDown, latency of others
survives a mass deletion (P50, P53; scaled to what a CI machine can do in a minute)."""

import concurrent.futures
import hashlib
import pathlib
import random
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import payload, s3, suite  # noqa: E402

MIB = 1 << 20


class Load(suite.NodeTest):
    device_size = "4GiB"
    settings = {"memory.arena": "256MiB", "s3.idle_timeout": "10m", "s3.header_timeout": "10m"}
    needs_process = True

    def mixed(self, worker, seconds, model, statuses):
        """One client's work on its own keys; `model` keeps what must be there."""
        client, chance = self.node.s3(), random.Random(worker)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            key, action = f"w{worker}/{chance.randrange(40)}", chance.random()
            if action < 0.45:
                data = payload.make(chance.random(), chance.choice([0, 100, 4096, 20_000, 300_000, 2 * MIB]))
                reply = client.request("PUT", self.bucket, key, body=data)
                if reply.status == 200:
                    model[key] = hashlib.sha256(data).digest()
            elif action < 0.75:
                reply = client.request("GET", self.bucket, key)
                if reply.status == 200:
                    assert hashlib.sha256(reply.body).digest() == model.get(key), key
                elif reply.status == 404:
                    assert key not in model, key
            elif action < 0.85:
                reply = client.request("DELETE", self.bucket, key)
                if reply.status == 204:
                    model.pop(key, None)
            elif action < 0.92:
                reply = client.request("GET", self.bucket, query=[("list-type", "2"), ("prefix", f"w{worker}/")])
                if reply.status == 200:
                    assert {k.text for k in reply.xml.iterfind("Contents/Key")} == set(model), worker
            else:
                source = chance.choice(sorted(model)) if model else key
                reply = client.request("PUT", self.bucket, key, headers={"x-amz-copy-source": f"/{self.bucket}/{s3.encode(source)}"})
                if reply.status == 200 and source != key:
                    model[key] = model[source]
            statuses[reply.status] = statuses.get(reply.status, 0) + 1

    def test_memory_under_mixed_load_with_idle_connections_p53(self):
        idle = []
        try:
            for _ in range(1500):
                idle.append(socket.create_connection(self.node.address))
            workers, models, statuses = 8, [{} for _ in range(8)], [{} for _ in range(8)]
            peaks = []
            for _ in range(3):
                with concurrent.futures.ThreadPoolExecutor(workers) as pool:
                    list(pool.map(lambda w: self.mixed(w, 8, models[w], statuses[w]), range(workers)))
                peaks.append(self.node.rss())
            total = {}
            for counts in statuses:
                for status, count in counts.items():
                    total[status] = total.get(status, 0) + count
            self.assertLessEqual(set(total), {200, 204, 404, 400, 503}, total)
            self.assertGreater(total[200], 300, total)
            # The arena, the store's caches and a bit per connection; and no growth from round to round beyond noise.
            self.assertLess(peaks[-1], 1 << 30, f"{[p >> 20 for p in peaks]} MiB")
            self.assertLess(peaks[2] - peaks[1], 128 * MIB, f"{[p >> 20 for p in peaks]} MiB")
            for model in models:
                for key, digest in model.items():
                    self.assertEqual(hashlib.sha256(self.s3.get(self.bucket, key).body).digest(), digest, key)
        finally:
            for connection in idle:
                connection.close()

    def test_deleting_many_keys_p50(self):
        keys = [f"del/{i:05}" for i in range(4000)]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda k: self.s3.put(self.bucket, k, b"x" * 500), keys))
        self.s3.put(self.bucket, "other", b"o" * 4096)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            deleting = [pool.submit(self.s3.delete, self.bucket, k) for k in keys[:3900]]
            while not all(d.done() for d in deleting):
                self.assertEqual(self.s3.get(self.bucket, "other").body, b"o" * 4096)
                self.s3.put(self.bucket, "other", b"o" * 4096)
        self.assertEqual(list(self.s3.list_keys(self.bucket, prefix="del/")), keys[3900:])


if __name__ == "__main__":
    suite.main()
