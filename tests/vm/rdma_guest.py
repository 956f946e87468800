#!/usr/bin/env python3
"""What test_rdma.py runs inside a guest: the folder with the programs is the first argument, the checks
to run may follow. Each check prints its name and what
it saw; the first that fails ends it."""

import json
import pathlib
import re
import resource
import subprocess
import sys
import time

BIN = pathlib.Path(sys.argv[1])
HOST, PORT = "10.9.0.1", 7400
# A guest is thirty times slower than its host.
LONG = 240


def sh(command, check=True):
    done = subprocess.run(command, shell=True, text=True, capture_output=True, check=False, timeout=LONG)
    if check and done.returncode != 0:
        raise AssertionError(f"{command}\nended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def objects():
    """What the device holds: queue pairs, completion queues, memory regions, ..."""
    found = re.search(r"rxe0: (.*)", sh("rdma res show"))
    words = found.group(1).split()
    return {name: int(count) for name, count in zip(words[::2], words[1::2])}


def listening():
    return re.search(rf":{PORT:04X} 00000000:0000 0A ", sh("cat /proc/net/tcp"))


def until(condition, what, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {seconds} s; {objects()}"
        time.sleep(0.05)


class Server:
    """srpc-perf's. Beyond loopback, since an RDMA address is that of a network device."""

    def __init__(self, *options, limit=None):
        self.log = open("/tmp/server.log", "w+")
        self.process = subprocess.Popen(
            [BIN / "srpc-perf", "server", "--rdma", "on", "--memory", "16MiB", "--listen", f"{HOST}:{PORT}", *options],
            stdout=self.log, stderr=self.log,
            preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit))) if limit else None)
        until(listening, "the server listens")

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def end(self, kill=False):
        self.process.kill() if kill else self.process.terminate()
        self.process.wait(LONG)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


def ping(transport, check=True, patience="60s"):
    done = subprocess.run([BIN / "srpc-ping", f"{HOST}:{PORT}", "--transport", transport, "-c", "10", "--timeout", patience,
                           "--json"],
                          text=True, capture_output=True, check=False, timeout=LONG)
    if check:
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)
    return done


def perf(*options):
    done = subprocess.run([BIN / "srpc-perf", "client", f"{HOST}:{PORT}", "--transport", "rdma", "--json", *options],
                          text=True, capture_output=True, check=False, timeout=LONG)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def no_message_is_empty():
    """P01, for the client of two guests: a device that talks to itself sends nothing that could be seen. In a SEND what is
    between the headers of UDP and BTH and the checksum is the payload."""
    capture = subprocess.Popen(["tcpdump", "-i", "eth1", "-n", "-U", "-w", "/tmp/roce.pcap", "udp port 4791"],
                               stderr=subprocess.PIPE, text=True)
    until(lambda: "listening" in capture.stderr.readline(), "tcpdump listens")
    for _ in range(3):
        assert ping("rdma")["transport"] == "rdma"
    perf("--op", "echo", "--size", "0,1", "--depth", "1,16", "--seconds", "2")
    time.sleep(1)
    capture.terminate()
    capture.wait(LONG)
    data = pathlib.Path("/tmp/roce.pcap").read_bytes()
    sends, at = 0, 24
    while at + 16 <= len(data):
        length = int.from_bytes(data[at + 8:at + 12], "little")
        ip = data[at + 16 + 14:at + 16 + length]
        at += 16 + length
        udp = ip[(ip[0] & 15) * 4:]
        opcode, pad = udp[8], udp[9] >> 4 & 3
        if opcode > 5:  # of a reliable connection: 0 to 5 are SENDs, 3 and 5 with an immediate value
            continue
        payload = int.from_bytes(udp[4:6], "big") - 8 - 12 - 4 - pad - (4 if opcode in (3, 5) else 0)
        assert payload > 0, f"a SEND (opcode {opcode}) without a byte"
        sends += 1
    assert sends > 100, f"only {sends} SENDs were captured"
    print(f"no_message_is_empty: {sends} SENDs")


def all_sizes(base):
    with Server("--poll-groups", "2"):
        rows = perf("--op", "echo", "--size", "0,1,4095,4096,65537,1MiB", "--depth", "1,8", "--seconds", "4")
        for row in rows["runs"]:
            assert row["transport"] == "rdma" and row["calls"] > 0, row
        perf("--op", "write", "--size", "4KiB", "--depth", "16", "--threads", "2", "--seconds", "2")
        perf("--op", "read", "--size", "64KiB", "--depth", "8", "--threads", "2", "--seconds", "2")
    print("all_sizes:", len(rows["runs"]), "combinations")


def killed_clients_leave_nothing(base):
    with Server():
        ping("rdma")
        idle = objects()
        for _ in range(4):
            client = subprocess.Popen([BIN / "srpc-perf", "client", f"{HOST}:{PORT}", "--transport", "rdma", "--op", "echo",
                                       "--depth", "16", "--seconds", "60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            until(lambda: objects()["qp"] >= idle["qp"] + 4, "the client's two connections")
            client.kill()
            client.wait(LONG)
        until(lambda: objects() == idle, f"as before: {idle}")
        ping("rdma")
    print("killed_clients_leave_nothing:", idle)


def a_killed_server_comes_back(base):
    first = Server()
    ping("rdma")
    first.end(kill=True)
    until(lambda: objects() == base, "the device forgets it")
    with Server():
        assert ping("rdma")["transport"] == "rdma"
    print("a_killed_server_comes_back")


def a_port_that_is_down(base):
    """P05, P07: at the start of the server; then it comes up, and RDMA works without a restart."""
    sh("ip link set rd1 down")
    with Server() as server:
        sh(f"ip addr add {HOST}/32 dev lo")
        said = ping("auto")
        sh(f"ip addr del {HOST}/32 dev lo")
        assert said["transport"] in ("tcp", "shm"), said
        failed = ping("rdma", check=False, patience="25s")
        assert failed.returncode == 1, failed.stdout + failed.stderr
        sh("ip link set rd1 up")
        until(lambda: "LINK_UP" in sh("rdma link"), "the port is up")
        assert ping("rdma")["transport"] == "rdma", server.said()
    print("a_port_that_is_down:", failed.stdout.strip() or failed.stderr.strip())


def little_locked_memory(base):
    """P05: root may lock what it likes, so the server runs without that right."""
    log = open("/tmp/server.log", "w+")
    server = subprocess.Popen(
        ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock", BIN / "srpc-perf", "server", "--rdma", "on", "--memory",
         "16MiB", "--listen", f"{HOST}:{PORT}"],
        stdout=log, stderr=log, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536)))
    until(listening, "the server listens")
    said = ping("tcp")
    assert said["transport"] == "tcp", said
    server.terminate()
    server.wait(LONG)
    log.seek(0)
    lines = [line for line in log.read().splitlines() if "warn" in line]
    assert len(lines) == 1 and "rxe0" in lines[0] and "ibv_reg_mr" in lines[0] and "locked memory" in lines[0], lines
    print("little_locked_memory:", lines[0])


def main():
    sh("ip link add rd0 type veth peer name rd1 && ip addr add 10.9.0.1/24 dev rd0 && ip link set rd0 up && ip link set rd1 up")
    sh("rdma link add rxe0 type rxe netdev rd0")
    base = objects()
    checks = (all_sizes, killed_clients_leave_nothing, a_killed_server_comes_back, a_port_that_is_down,
              little_locked_memory)
    for check in [each for each in checks if each.__name__ in sys.argv[2:] or not sys.argv[2:]]:
        began = time.monotonic()
        check(base)
        until(lambda: objects() == base, f"{check.__name__} left something; before: {base}")
        print(f"  {check.__name__} took {time.monotonic() - began:.0f} s", flush=True)
    print("all is well")


if __name__ == "__main__":
    no_message_is_empty() if sys.argv[2:] == ["capture"] else main()
