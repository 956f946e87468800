"""4 KiB and 1 MiB reads and durable writes of the engine at depth 1 and 32, against fio with io_uring and O_DIRECT on the same
file. fio reads where the shard has its data, so that what lies below is equally warm, and writes behind the shard's part. Reads
aren't cached, and the engine checks every page's CRC. A durable write of fio's is the faster of two kinds in each run: O_DSYNC,
or fdatasync after each write. The engine writes what one commit takes in one piece and flushes once for all of it, which fio
can't."""

import json
import os
import subprocess
from typing import NamedTuple

KIB, MIB = 1 << 10, 1 << 20
CASES = [(op, size, depth) for op in ("read", "write") for size in (4 * KIB, MIB) for depth in (1, 32)]


class Sizes(NamedTuple):
    """In MiB: the part for the shard's data at the file's start, fio's part behind it, what each reads and writes."""
    shard: int
    span: int


FULL, QUICK = Sizes(shard=3072, span=1024), Sizes(shard=448, span=64)


def case_name(op, size, depth):
    return f"{op} {'4 KiB' if size == 4 * KIB else '1 MiB'} depth {depth}"


def fio(path, sizes, op, size, depth, seconds, durable=None):
    offset = sizes.shard if op == "write" else sizes.span // 2
    command = ["fio", "--name=bench", f"--filename={path}", "--ioengine=io_uring", "--direct=1", f"--rw=rand{op}", f"--bs={size}",
               f"--iodepth={depth}", f"--offset={offset}m", f"--size={sizes.span}m", "--time_based", f"--runtime={seconds}",
               "--output-format=json", "--norandommap", "--randrepeat=0", "--fallocate=none"]
    if durable == "dsync":
        command.append("--sync=dsync")
    elif durable == "fdatasync":
        command.append("--fdatasync=1")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
    return job[op]["iops"]


def prepare(path, sizes):
    """The whole file written once, so that no side meets unwritten extents, and the first part blank again."""
    with open(path, "wb") as out:
        block = b"\xa5" * MIB
        for _ in range(sizes.shard + sizes.span):
            out.write(block)
        out.seek(0)
        out.write(bytes(MIB))
        out.flush()
        os.fsync(out.fileno())


def run(ctx):
    path = ctx.scratch / "device"
    sizes = QUICK if ctx.quick else FULL
    prepare(path, sizes)
    program = ctx.program("engine_bench")
    seconds = 0.5 if ctx.quick else 4
    cases = []
    for op, size, depth in CASES:
        name = case_name(op, size, depth)

        def ours(op=op, size=size, depth=depth):
            return ctx.json(program, path, op, size, depth, seconds, sizes.span)["iops"]

        def theirs(op=op, size=size, depth=depth):
            if op == "read":
                return fio(path, sizes, op, size, depth, seconds)
            return max(fio(path, sizes, op, size, depth, seconds, durable) for durable in ("dsync", "fdatasync"))

        cases.append(ctx.compare(name, "op/s", "higher", ours, theirs, peer=version(), note="same file, interleaved"))
    return cases


def version():
    return subprocess.run(["fio", "--version"], capture_output=True, text=True, check=True).stdout.strip().replace("fio-", "fio ")
