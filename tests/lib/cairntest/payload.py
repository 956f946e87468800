"""Test data made from a seed: fast, incompressible, and different at every 64-byte line, so that a misplaced or repeated
block is seen."""

import hashlib
import random

MIB = 1 << 20


def make(seed, size):
    """`size` bytes that depend on `seed` alone."""
    return random.Random(f"cairn {seed}").randbytes(size) if size else b""


class Stream:
    """A file-like object of `size` bytes that is never whole in memory. `sha256` of what was read so far."""

    def __init__(self, seed, size):
        self._block = make(seed, MIB)
        self._size, self._at = size, 0
        self._digest = hashlib.sha256()

    def __len__(self):
        return self._size

    def read(self, count=-1):
        if count < 0:
            count = self._size - self._at
        out = bytearray()
        while count and self._at < self._size:
            block, offset = divmod(self._at, MIB)
            # The block's number at its start makes each MiB its own.
            data = block.to_bytes(8, "little") + self._block[8:]
            piece = data[offset:offset + min(count, self._size - self._at)]
            out += piece
            self._at += len(piece)
            count -= len(piece)
        self._digest.update(out)
        return bytes(out)

    @property
    def sha256(self):
        return self._digest.hexdigest()


def stream_sha256(seed, size):
    stream = Stream(seed, size)
    while stream.read(MIB):
        pass
    return stream.sha256


def write_file(path, seed, size):
    stream = Stream(seed, size)
    with open(path, "wb") as out:
        while piece := stream.read(MIB):
            out.write(piece)
    return stream.sha256


def file_sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(MIB):
            digest.update(piece)
    return digest.hexdigest()
