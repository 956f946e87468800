"""An idle SRPC server with 1,000 connections over TCP, in automatic and in economy mode: its processor time while nobody calls
(clients send a ping every 10 s), and by how much the first call after a pause of 100 ms takes longer than one of a busy connection. The
aims are 1 % of a core, and 200 us. Waking a thread costs what it costs: the last case sets the second figure beside what the barest
server, a thread in recv(), takes more after a pause in the same run."""

import resource
import subprocess

CONNECTIONS = 1000
MODES = ("automatic", "economy")
AIM_CPU_PERCENT = 1
AIM_FIRST_US = 200


def measure(ctx, mode):
    connections = 50 if ctx.quick else CONNECTIONS
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    server = subprocess.Popen(
        [str(ctx.program("srpc-perf")), "server", "--listen", "127.0.0.1:0", "--mode", mode, "--memory", "64MiB", "--print-address"],
        stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files[1], files[1])))
    try:
        address = server.stdout.readline().strip()
        return ctx.json(ctx.program("srpc_idle"), address, server.pid, connections, 0.5 if ctx.quick else 12)
    finally:
        server.terminate()
        server.wait()


def run(ctx):
    cases = []
    for mode in MODES:
        cpu, first, wake = (f"idle, {CONNECTIONS} connections, {mode}: {what}" for what in (
            "cpu", "first call after a pause", "its wake-up"))
        last = {}

        def ours(mode=mode, cpu=cpu, first=first, wake=wake, last=last):
            found = measure(ctx, mode)
            more = found["first_us"] - found["busy_us"]
            last["bare"] = found["bare_first_us"] - found["bare_busy_us"]
            return {cpu: found["cpu_percent"], first: more, wake: more}

        def theirs(cpu=cpu, first=first, wake=wake, last=last):
            return {cpu: AIM_CPU_PERCENT, first: AIM_FIRST_US, wake: last["bare"]}

        cases += ctx.compare_many([(cpu, "% core", "lower"), (first, "us more", "lower"), (wake, "us more", "lower")], ours, theirs,
                                  peer="aim; its wake-up: a bare recv()", note="medians of 40 first calls and of 2,000 busy ones", runs=3)
    return cases
