#!/usr/bin/env python3
"""Objects of all sizes through one node: streaming in bounded memory, and the two counters of the data path."""

import concurrent.futures
import hashlib
import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import payload, suite  # noqa: E402

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
COPIED = "mem_payload_bytes_copied_total"
HOPS = "reactor_cross_thread_hops_total"


class Sizes(suite.NodeTest):
    device_size = "6GiB"
    needs_process = True

    def rss_peak_during(self, work):
        """The largest resident set seen while `work` runs."""
        peak, done = [self.node.rss()], threading.Event()

        def watch():
            while not done.wait(0.02):
                peak[0] = max(peak[0], self.node.rss())

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            work()
        finally:
            done.set()
            watcher.join()
        return peak[0]

    def test_every_size_around_the_borders(self):
        sizes = [0, 1, 511, 512, 4 * KIB - 1, 4 * KIB, 4 * KIB + 1, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, MIB - 1, MIB, MIB + 1,
                 4 * MIB - 1, 4 * MIB, 4 * MIB + 1, 8 * MIB, 13 * MIB + 12345]
        for size in sizes:
            data = payload.make(f"size {size}", size)
            self.assertEqual(self.s3.put(self.bucket, f"{size}", data).etag, hashlib.md5(data).hexdigest(), size)
        self.node.restart()
        self.s3 = type(self).s3 = self.node.s3()
        for size in sizes:
            got = self.s3.get(self.bucket, f"{size}")
            self.assertEqual((len(got.body), hashlib.sha256(got.body).digest()), (size, hashlib.sha256(payload.make(f"size {size}", size)).digest()), size)

    def test_one_gibibyte_streams_in_bounded_memory(self):
        # The arena is reserved at start and may be touched bit by bit: fill it before looking.
        self.s3.put(self.bucket, "warm", payload.Stream("warm", 400 * MIB))
        self.s3.get(self.bucket, "warm", sink=lambda _: None)
        before = self.node.rss()
        digest = hashlib.sha256()

        def work():
            self.s3.put(self.bucket, "gib", payload.Stream("gib", GIB))
            self.s3.get(self.bucket, "gib", sink=digest.update)

        peak = self.rss_peak_during(work)
        self.assertEqual(digest.hexdigest(), payload.stream_sha256("gib", GIB))
        self.assertLess(peak - before, 64 * MIB, f"memory grew from {before >> 20} to {peak >> 20} MiB while 1 GiB streamed")

    def test_many_streams_at_once_in_bounded_memory(self):
        count, size = 12, 48 * MIB
        before = self.node.rss()

        def one(number):
            digest = hashlib.sha256()
            self.s3.put(self.bucket, f"s{number}", payload.Stream(number, size))
            self.s3.get(self.bucket, f"s{number}", sink=digest.update)
            self.assertEqual(digest.hexdigest(), payload.stream_sha256(number, size))

        def work():
            with concurrent.futures.ThreadPoolExecutor(count) as pool:
                list(pool.map(one, range(count)))

        peak = self.rss_peak_during(work)
        self.assertLess(peak - before, 256 * MIB, f"memory grew from {before >> 20} to {peak >> 20} MiB under {count} streams")

    def test_aligned_transfers_copy_nothing_and_change_no_thread(self):
        data = payload.make("aligned", MIB)
        self.s3.put(self.bucket, "warm", data)  # the connection is placed, caches are filled
        self.s3.get(self.bucket, "warm")
        before = self.node.metrics()
        for name in (COPIED, HOPS):
            self.assertIn(name, before)
        for index in range(20):
            self.s3.put(self.bucket, f"k{index}", data)
            self.assertEqual(self.s3.get(self.bucket, f"k{index}").body, data)
        after = self.node.metrics()
        self.assertEqual(after[COPIED] - before[COPIED], 0, "payload bytes were copied")
        self.assertEqual(after[HOPS] - before[HOPS], 0, "requests changed their thread")

    def test_counters_count(self):
        """The other side of the test above: what must copy is counted, so the counter is alive."""
        before = self.node.metric(COPIED)
        parts = [payload.make("first", 5 * MIB + 1), payload.make("second", 70_000)]
        self.s3.multipart(self.bucket, "parts", parts)
        # The second part's bytes move by one when both become one run of data.
        self.s3.copy(self.bucket, "copy", self.bucket, "parts")
        self.assertEqual(self.s3.get(self.bucket, "copy").body, b"".join(parts))
        self.assertGreater(self.node.metric(COPIED), before)


if __name__ == "__main__":
    suite.main()
