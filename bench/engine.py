"""4 KiB and 1 MiB reads and durable writes of the engine at depth 1 and 32, against fio with io_uring and O_DIRECT on the same
file: the shard in its first part, fio's random blocks in its second. Reads aren't cached, and the engine checks every page's
CRC. A durable write of fio's is the faster of two kinds in each run: O_DSYNC, or fdatasync after each write. The engine writes
what one commit takes in one piece and flushes once for all of it, which fio can't."""

import json
import subprocess

KIB, MIB = 1 << 10, 1 << 20
SPAN_MIB = 1024
SHARD_MIB = 3072
CASES = [(op, size, depth) for op in ("read", "write") for size in (4 * KIB, MIB) for depth in (1, 32)]


def case_name(op, size, depth):
    return f"{op} {'4 KiB' if size == 4 * KIB else '1 MiB'} depth {depth}"


def fio(path, op, size, depth, seconds, durable=None):
    command = ["fio", "--name=bench", f"--filename={path}", "--ioengine=io_uring", "--direct=1", f"--rw=rand{op}", f"--bs={size}",
               f"--iodepth={depth}", f"--offset={SHARD_MIB}m", f"--size={SPAN_MIB}m", "--time_based", f"--runtime={seconds}",
               "--output-format=json", "--norandommap", "--randrepeat=0", "--fallocate=none"]
    if durable == "dsync":
        command.append("--sync=dsync")
    elif durable == "fdatasync":
        command.append("--fdatasync=1")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
    return job[op]["iops"]


def prepare(path):
    """The whole file written once, so that no side meets unwritten extents, and the first part blank again."""
    with open(path, "wb") as out:
        block = b"\xa5" * MIB
        for _ in range(SHARD_MIB + SPAN_MIB):
            out.write(block)
        out.seek(0)
        out.write(bytes(MIB))
        out.flush()
        import os
        os.fsync(out.fileno())


def run(ctx):
    path = ctx.scratch / "device"
    prepare(path)
    program = ctx.program("engine_bench")
    seconds = 0.5 if ctx.quick else 4
    cases = []
    for op, size, depth in CASES:
        name = case_name(op, size, depth)

        def ours(op=op, size=size, depth=depth):
            return ctx.json(program, path, op, size, depth, seconds, SPAN_MIB)["iops"]

        def theirs(op=op, size=size, depth=depth):
            if op == "read":
                return fio(path, op, size, depth, seconds)
            return max(fio(path, op, size, depth, seconds, durable) for durable in ("dsync", "fdatasync"))

        cases.append(ctx.compare(name, "op/s", "higher", ours, theirs, peer=version(), note="same file, interleaved"))
    return cases


def version():
    return subprocess.run(["fio", "--version"], capture_output=True, text=True, check=True).stdout.strip().replace("fio-", "fio ")
