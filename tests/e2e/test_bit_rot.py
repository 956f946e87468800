#!/usr/bin/env python3
"""Bit rot: bytes of the device file are flipped while the node is stopped. What is damaged gives an error; nothing wrong is
ever served; everything else is untouched."""

import hashlib
import http.client
import os
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import payload, suite  # noqa: E402
from cairntest import node as nodes  # noqa: E402

MIB = 1 << 20


class BitRot(suite.NodeTest):
    device_size = "1GiB"
    # Small writes stay in the journal until a checkpoint: no checkpoint comes by time during a test, but a stop makes one.
    settings = {"engine.checkpoint_interval": "1h", "engine.cache": 0}
    needs_process = True

    @property
    def device(self):
        return self.node.data / "device0"

    def find(self, needle):
        """Every offset of `needle` in the device file."""
        found, overlap, offset = [], len(needle) - 1, 0
        with open(self.device, "rb") as file:
            tail = b""
            while piece := file.read(16 * MIB):
                window = tail + piece
                at = window.find(needle)
                while at >= 0:
                    found.append(offset - len(tail) + at)
                    at = window.find(needle, at + 1)
                tail = window[-overlap:]
                offset += len(piece)
        return found

    def flip(self, offset, count=1):
        with open(self.device, "r+b") as file:
            file.seek(offset)
            old = file.read(count)
            file.seek(offset)
            file.write(bytes(b ^ 0x40 for b in old))
            file.flush()
            os.fsync(file.fileno())

    def fetch(self, key):
        """The body, or None for an error: a 5xx, or a reply that is cut off before its promised length."""
        client = self.node.s3()
        try:
            reply = client.request("GET", self.bucket, key)
        except (http.client.IncompleteRead, ConnectionError, http.client.RemoteDisconnected):
            return None
        finally:
            client.drop()
        if reply.status >= 500:
            return None
        self.assertEqual(reply.status, 200, reply)
        return reply.body

    def check_all(self, objects, damaged):
        for key, data in objects.items():
            got = self.fetch(key)
            if got is not None:
                self.assertEqual(hashlib.sha256(got).digest(), hashlib.sha256(data).digest(), f"{key}: wrong bytes were served")
            if key in damaged:
                self.assertIsNone(got, f"{key}: its bytes are damaged, and yet it was served")
            else:
                self.assertIsNotNone(got, f"{key} is not damaged and was not served")

    def test_flipped_bytes_in_the_data_area(self):
        objects = {f"k{i}": payload.make(f"rot {i}", size) for i, size in enumerate([4096, 64 * 1024, MIB, 5 * MIB, 300_000, 4 * MIB, 100])}
        for key, data in objects.items():
            self.s3.put(self.bucket, key, data)
        self.node.stop()
        damaged = {}
        for key, inside in (("k2", 700_001), ("k3", 4 * MIB + 99), ("k5", 0), ("k4", 299_000)):
            places = self.find(objects[key][inside // 64 * 64:inside // 64 * 64 + 64])
            self.assertTrue(places, f"the bytes of {key} are nowhere on the device")
            for place in places:
                self.flip(place)
            damaged[key] = places
        self.node.start()
        self.s3 = type(self).s3 = self.node.s3()
        self.check_all(objects, damaged)
        # Healthy parts of a damaged object can still be read; ranges into the damage can't.
        self.assertEqual(self.s3.get(self.bucket, "k3", headers={"range": "bytes=0-99"}).body, objects["k3"][:100])
        self.assertRegex(self.node.log(), r"(?i)corrupt|checksum")
        # The damaged object can be replaced and deleted.
        self.s3.put(self.bucket, "k2", b"replaced")
        self.assertEqual(self.s3.get(self.bucket, "k2").body, b"replaced")
        self.s3.delete(self.bucket, "k3")
        self.assertEqual(self.s3.head(self.bucket, "k3").status, 404)

    def test_flipped_bytes_in_the_journal(self):
        """A record that was durable before later ones is damaged: that is corruption, not the torn tail, and nothing behind it
        may silently vanish. The node may serve what it can prove, or refuse to start with a reason."""
        objects = {f"j{i:02}": payload.make(f"journal {i}", 3000 + i) for i in range(40)}
        for key, data in objects.items():
            self.s3.put(self.bucket, key, data)
        self.node.kill()  # no checkpoint: the records are still needed
        places = self.find(objects["j10"][1024:1088])
        self.assertTrue(places, "the small object is nowhere on the device")
        for place in places:
            self.flip(place)
        try:
            self.node.start()
        except nodes.NodeError as refused:
            self.assertRegex(str(refused), r"(?i)corrupt|checksum|damaged")
            # What was damaged comes back as it was: a start that refused has destroyed nothing.
            for place in places:
                self.flip(place)
            self.node.start()
            self.s3 = type(self).s3 = self.node.s3()
            self.check_all(objects, {})
            return
        self.s3 = type(self).s3 = self.node.s3()
        for key, data in objects.items():
            got = self.fetch(key)
            self.assertTrue(got is None or got == data, f"{key}: wrong bytes were served")
            if got is None:
                self.assertEqual(key, "j10", f"{key} was durable and is gone because another record was damaged")

    def test_random_flips_never_serve_wrong_bytes(self):
        chance = random.Random(11)
        objects = {f"r{i:02}": payload.make(f"random {i}", chance.choice([500, 4096, 70_000, MIB, 6 * MIB])) for i in range(30)}
        for key, data in objects.items():
            self.s3.put(self.bucket, key, data)
        self.node.stop()
        # Where the objects lie, so that flips hit something: a run of each.
        for key in chance.sample(sorted(objects), 12):
            data = objects[key]
            at = chance.randrange(max(1, len(data) - 64))
            for place in self.find(data[at:at + 64]):
                self.flip(place + chance.randrange(64), chance.randint(1, 8))
        self.node.start()
        self.s3 = type(self).s3 = self.node.s3()
        served = 0
        for key, data in objects.items():
            got = self.fetch(key)
            self.assertTrue(got is None or got == data, f"{key}: wrong bytes were served")
            served += got is not None
        self.assertGreaterEqual(served, 30 - 12)


if __name__ == "__main__":
    suite.main()
