#!/usr/bin/env python3
"""A full device: writes get S3's error, reads and deletes work, deleting gives the space back, a restart works (P48, P49)."""

import base64
import concurrent.futures
import hashlib
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import payload, s3, suite  # noqa: E402

MIB = 1 << 20
FULL_CODES = ("InsufficientStorage", "XMinioStorageFull", "SlowDown", "ServiceUnavailable")
GIVE_BACK_SECONDS = 60


class FullDevice(suite.NodeTest):
    device_size = "512MiB"
    settings = {"memory.arena": "128MiB", "engine.checkpoint_interval": "1s"}
    needs_process = True

    def fill(self, prefix, size):
        """Puts until the device refuses; the digests of what was taken."""
        taken, count = {}, 0
        while True:
            data = payload.make(f"{prefix} {count}", size)
            reply = self.s3.request("PUT", self.bucket, f"{prefix}{count:05}", body=data)
            if reply.status != 200:
                self.assertIn(reply.status, (503, 507), reply)
                self.assertIn(reply.code, FULL_CODES, reply)
                return taken
            taken[f"{prefix}{count:05}"] = hashlib.sha256(data).hexdigest()
            count += 1
            self.assertLess(count * size, 2 << 30, "a device of 512 MiB took 2 GiB")

    def assert_readable(self, objects):
        for key, digest in objects.items():
            self.assertEqual(hashlib.sha256(self.s3.get(self.bucket, key).body).hexdigest(), digest, key)

    @property
    def free(self):
        return self.node.metric("engine_space_bytes", state="free")

    def setUp(self):
        super().setUp()
        if not hasattr(type(self), "free_at_start"):
            type(self).free_at_start = self.free
        self.wait_given_back("at the start")

    def wait_given_back(self, what):
        """Whatever was deleted, aborted or cut off: within a minute its space is free again."""
        deadline = time.monotonic() + GIVE_BACK_SECONDS
        while self.free < 0.95 * self.free_at_start:
            if time.monotonic() > deadline:
                self.fail(f"{what}: {self.free:,.0f} of {self.free_at_start:,.0f} bytes free after {GIVE_BACK_SECONDS} s\n"
                          + "\n".join(line for line in self.node.metrics_text().splitlines() if "engine_space" in line))
            time.sleep(0.2)

    def wait_writable(self, size, what):
        deadline = time.monotonic() + GIVE_BACK_SECONDS
        while True:
            reply = self.s3.request("PUT", self.bucket, "probe", body=payload.make("probe", size))
            if reply.status == 200:
                self.s3.delete(self.bucket, "probe")
                return
            if time.monotonic() > deadline:
                self.fail(f"{what}: still refused after {GIVE_BACK_SECONDS} s: {reply}\n{self.node.metrics_text()}")
            time.sleep(0.2)

    def empty(self):
        keys = list(self.s3.list_keys(self.bucket))
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda k: self.s3.delete(self.bucket, k), keys))

    def test_fill_delete_and_go_on(self):
        upload = self.s3.ok("POST", self.bucket, "parts", query=[("uploads", "")]).xml.findtext("UploadId")
        self.s3.ok("PUT", self.bucket, "parts", query=[("partNumber", "1"), ("uploadId", upload)], body=payload.make("part", 4 * MIB))
        objects = self.fill("big", 4 * MIB)
        # Most of the device is for data: what a shard keeps for itself is bounded.
        self.assertGreater(len(objects) * 4, 512 * 0.5)
        # Smaller objects may still fit for a while; then these are refused, too.
        objects |= self.fill("mid", 64 * 1024)
        objects |= self.fill("small", 4096)
        self.assert_readable(objects)
        # Everything but writing works.
        self.assertEqual(sorted(self.s3.list_keys(self.bucket)), sorted(objects))
        first = next(iter(objects))
        self.assertEqual(self.s3.head(self.bucket, first).status, 200)
        # An overwrite that is refused leaves the old object.
        reply = self.s3.request("PUT", self.bucket, first, body=payload.make("other", 4 * MIB))
        self.assertIn(reply.status, (503, 507))
        self.assert_readable({first: objects[first]})
        # Restart while full.
        self.node.restart()
        self.s3 = type(self).s3 = self.node.s3()
        self.assert_readable(objects)
        # Deleting always works and gives the space back: an upload, many objects at once, one by one (P48).
        self.assertEqual(self.s3.request("DELETE", self.bucket, "parts", query=[("uploadId", upload)]).status, 204)
        some = [k for k in objects if k.startswith("mid")][:3]
        document = ("<Delete>" + "".join(f"<Object><Key>{k}</Key></Object>" for k in some) + "</Delete>").encode()
        gone = self.s3.request("POST", self.bucket, query=[("delete", "")], body=document,
                               headers={"content-md5": base64.b64encode(hashlib.md5(document).digest()).decode()})
        self.assertEqual([d.text for d in gone.xml.iterfind("Deleted/Key")], some, gone)
        for key in some:
            del objects[key]
        for key in [k for k in objects if k.startswith("big")][:8]:
            self.s3.delete(self.bucket, key)
            del objects[key]
        self.wait_writable(4 * MIB, "after deleting 32 MiB")
        self.assert_readable(objects)
        self.empty()
        self.wait_given_back("after deleting everything")
        again = self.fill("again", 4 * MIB)
        self.assertGreater(len(again) * 4, 512 * 0.5)
        self.assert_readable(again)
        self.empty()

    def test_crash_while_full(self):
        objects = self.fill("c", 4 * MIB)
        self.node.kill()
        self.node.start()
        self.s3 = type(self).s3 = self.node.s3()
        self.assert_readable(objects)
        self.empty()
        self.wait_given_back("after a crash on a full device")

    def test_refused_uploads_leave_no_space_behind_p49(self):
        """Multipart parts, aborted uploads and cut-off bodies give their space back."""
        for round_number in range(3):
            uploads = []
            for number in range(6):
                key = f"u{round_number}-{number}"
                upload = self.s3.ok("POST", self.bucket, key, query=[("uploads", "")]).xml.findtext("UploadId")
                uploads.append((key, upload))
                for part in (1, 2, 3):
                    self.s3.request("PUT", self.bucket, key, query=[("partNumber", str(part)), ("uploadId", upload)], body=payload.make(part, 8 * MIB))
            for key, upload in uploads:
                self.assertEqual(self.s3.request("DELETE", self.bucket, key, query=[("uploadId", upload)]).status, 204)
            self.wait_given_back(f"after aborting round {round_number}")

    def test_overwrites_do_not_leak(self):
        data = payload.make("over", 16 * MIB)
        for number in range(64):  # 1 GiB through a device of 0.5
            deadline = time.monotonic() + GIVE_BACK_SECONDS
            while True:
                reply = self.s3.request("PUT", self.bucket, f"k{number % 3}", body=data)
                if reply.status == 200 or time.monotonic() > deadline:
                    break
                time.sleep(0.1)
            self.assertEqual(reply.status, 200, (number, reply))
        self.empty()
        self.wait_given_back("after 1 GiB of overwrites")

    def test_a_body_larger_than_the_device(self):
        try:
            reply = self.s3.request("PUT", self.bucket, "huge", body=payload.Stream("huge", 1 << 30), payload_hash=s3.UNSIGNED)
            self.assertIn(reply.status, (503, 507), reply)
        except OSError:
            self.s3.drop()  # the answer may be cut off by the reset that ends the upload
        self.assertEqual(self.s3.head(self.bucket, "huge").status, 404)
        self.wait_given_back("after an upload that didn't fit")


if __name__ == "__main__":
    suite.main()
