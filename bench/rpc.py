"""SRPC's echo beside other RPC systems, two threads or two processes on one machine, payload in both directions: gRPC (callback
API, raw bytes) and Cap'n Proto over TCP, against SRPC in its default mode; UCX's tagged ping-pong (a transport without calls)
over TCP and over shared memory, against SRPC when both poll as UCX does. Peers that aren't installed are left out: scripts/setup.sh
--bench. Median round trip, rate, and the processor's time of both sides for each call."""

import os
import re
import subprocess
import time

import lib

KIB, MIB = 1 << 10, 1 << 20
SIZES = (64, 4 * KIB, 128 * KIB, MIB)
DEPTHS = (1, 32)
UCX_SIZES = (64, 4 * KIB, MIB)
UCX = {"srpc": "tcp,self", "shm": "posix,sysv,cma,self"}
UCX_PORT = 13377


def size_name(size):
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB" if size >= KIB else f"{size} B"


def measured(result, name):
    return {f"{name}, p50": result["p50_us"], f"{name}, rate": result["kops"] * 1000,
            f"{name}, CPU per call": result["cpu_us_per_call"]}


def metrics(name):
    return [(f"{name}, p50", "us", "lower"), (f"{name}, rate", "calls/s", "higher"), (f"{name}, CPU per call", "us", "lower")]


def beside_rpc(ctx, seconds):
    cases = []
    for program, peer in (("grpc_echo", "gRPC"), ("capnp_echo", "Cap'n Proto")):
        if not (ctx.build / "bench" / program).exists():
            print(f"  {peer} is not installed: scripts/setup.sh --bench")
            continue
        for size in SIZES:
            for depth in DEPTHS:
                name = f"tcp {size_name(size)} depth {depth}"

                def ours(size=size, depth=depth, name=name):
                    return measured(ctx.json(ctx.program("srpc_bench"), "srpc", "auto", size, depth, seconds), name)

                def theirs(program=program, size=size, depth=depth, name=name):
                    return measured(ctx.json(ctx.program(program), size, depth, seconds), name)

                cases += ctx.compare_many(metrics(name), ours, theirs, peer=peer, note="automatic mode")
    return cases


def ucx_round_trip(transports, size, iterations):
    """UCX reports half of it."""
    environment = dict(os.environ, UCX_TLS=transports, UCX_WARN_UNUSED_ENV_VARS="n")
    if "tcp" in transports:
        environment["UCX_NET_DEVICES"] = "lo"
    command = ["ucx_perftest", "-p", str(UCX_PORT)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        # Not by connecting, which would be taken for the client.
        time.sleep(0.3)
        done = subprocess.run([*command, "127.0.0.1", "-t", "tag_lat", "-s", str(size), "-n", str(iterations), "-w", "500", "-f"],
                              capture_output=True, text=True, check=True, env=environment, timeout=120)
    finally:
        server.terminate()
        server.wait()
    last = re.findall(r"^\s*\d+\s+([\d.]+)\s", done.stdout, re.MULTILINE)
    return 2 * float(last[-1])


def beside_ucx(ctx, seconds):
    if not lib.have("ucx_perftest"):
        print("  UCX is not installed: scripts/setup.sh --bench")
        return []
    cases = []
    for side, transports in UCX.items():
        for size in UCX_SIZES:
            iterations = 200 if ctx.quick else 2000 if size == MIB else 50_000
            name = f"{'shm' if side == 'shm' else 'tcp'} {size_name(size)} depth 1, both poll"
            cases.append(ctx.compare(
                name, "us", "lower",
                lambda s=side, z=size: ctx.json(ctx.program("srpc_bench"), s, "poll", z, 1, seconds)["p50_us"],
                lambda t=transports, z=size, n=iterations: ucx_round_trip(t, z, n), peer="UCX tag_lat", note="p50"))
    return cases


def run(ctx):
    seconds = 0.2 if ctx.quick else 1
    return beside_rpc(ctx, seconds) + beside_ucx(ctx, seconds)
