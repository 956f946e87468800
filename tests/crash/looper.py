#!/usr/bin/env python3
"""Kills a node with SIGKILL at random moments under mixed load, starts it again, and compares what it serves with what it had
acknowledged. One round:

    load for a random time  →  SIGKILL  →  start (sometimes killed again while it recovers)  →  read everything, compare

The load is puts, overwrites, multipart uploads, copies, deletes and reads of several clients. The device is small, so that
space that a crash leaves behind would soon fill it; at the end everything is deleted and the space must be back."""

import argparse
import hashlib
import json
import http.client
import os
import pathlib
import random
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE)]
from cairntest import node as nodes  # noqa: E402
from cairntest import payload, s3  # noqa: E402
from model import Model, Violation  # noqa: E402

MIB = 1 << 20
BUCKET = "crash"
SIZES = [0, 1, 100, 4096, 5000, 65536, 200_000, MIB, 4 * MIB + 77]
SPACE_SECONDS = 120
BROKEN = (OSError, http.client.HTTPException)


def digest(data):
    return f"{len(data)}:{hashlib.sha256(data).hexdigest()[:24]}"


class Full(Exception):
    """Deleted data is given back some 10 s after its deletion: a fast load fills a small device meanwhile."""


class Worker:
    """One client with its own keys, its own randomness and its own model, so that nothing needs a lock."""

    def __init__(self, number, seed):
        self.number, self.random = number, random.Random(f"{seed} {number}")
        self.model = Model()
        self.keys = [f"w{number}/{i:02}" for i in range(24)]
        self.counts = {}
        self.problem = None
        self.client = None
        self.uploads = set()  # begun, and neither completed nor aborted as far as we know

    def run(self, client, stop):
        self.client = client
        actions = [(self.put, 45), (self.delete, 15), (self.multipart, 12), (self.copy, 10), (self.read, 18)]
        try:
            while not stop.is_set():
                action = self.random.choices([a for a, _ in actions], [w for _, w in actions])[0]
                try:
                    action(self.random.choice(self.keys))
                    self.counts[action.__name__] = self.counts.get(action.__name__, 0) + 1
                except Full:
                    self.counts["refused as full"] = self.counts.get("refused as full", 0) + 1
                    stop.wait(0.2)
                except BROKEN:
                    client.drop()
                    if not stop.is_set():
                        stop.wait(0.01)
        except Exception as problem:  # noqa: BLE001: shown by the looper, which then fails
            self.problem = problem

    def settle(self, operation, before, reply, good):
        """Enters the answer to a change."""
        if reply.status in good:
            self.model.acknowledge(operation)
        elif reply.status == 507:
            self.model.refuse(operation, before)
            raise Full
        elif 400 <= reply.status < 500:
            self.model.refuse(operation, before)
            raise Violation(f"{operation}: refused: {reply}")
        elif reply.status == 503 and reply.code in ("ServiceUnavailable", "SlowDown"):
            self.model.unknown(operation)  # it was just being stopped
        else:
            raise Violation(f"{operation}: {reply}")

    def change(self, key, state, send, good=(200, 204)):
        before = self.model.possible(key)
        operation = self.model.begin(key, state)
        try:
            reply = send()
        except BROKEN:
            self.model.unknown(operation)
            raise
        self.settle(operation, before, reply, good)
        return reply

    def body(self):
        return payload.make(self.random.random(), self.random.choice(SIZES))

    def put(self, key):
        data = self.body()
        self.change(key, digest(data), lambda: self.client.request("PUT", BUCKET, key, body=data))

    def delete(self, key):
        self.change(key, None, lambda: self.client.request("DELETE", BUCKET, key))

    def multipart(self, key):
        begun = self.client.ok("POST", BUCKET, key, query=[("uploads", "")])
        upload = begun.xml.findtext("UploadId")
        self.uploads.add((key, upload))
        parts = [payload.make(self.random.random(), 5 * MIB + 3), self.body()][self.random.randrange(2):]
        etags = []
        for number, part in enumerate(parts, 1):
            reply = self.client.request("PUT", BUCKET, key, query=[("partNumber", str(number)), ("uploadId", upload)], body=part)
            if reply.status == 507:
                raise Full
            if reply.status != 200:
                raise Violation(f"part {number} of {key}: {reply}")
            etags.append(reply.etag)
        if self.random.random() < 0.2:
            return  # left lying about, like many a client does
        self.change(key, digest(b"".join(parts)), lambda: self.client.request(
            "POST", BUCKET, key, query=[("uploadId", upload)], body=s3.complete_xml(enumerate(etags, 1))))
        self.uploads.discard((key, upload))

    def copy(self, key):
        source = self.random.choice(self.keys)
        if source == key or not self.model.is_certain(source) or self.model.certain(source) is None:
            return
        self.change(key, self.model.certain(source), lambda: self.client.request(
            "PUT", BUCKET, key, headers={"x-amz-copy-source": f"/{BUCKET}/{s3.encode(source)}"}))

    def read(self, key):
        reply = self.client.request("GET", BUCKET, key)
        if reply.status in (200, 404):
            self.model.observe(key, digest(reply.body) if reply.status == 200 else None)
        elif reply.status != 503:
            raise Violation(f"GET {key}: {reply}")

    def check(self, client):
        """After a restart: every key as it may be. Each is read twice, the second time from whatever cache the first filled."""
        present = set()
        for key in self.keys:
            for _ in range(2):
                reply = client.request("GET", BUCKET, key)
                if reply.status not in (200, 404):
                    raise Violation(f"GET {key} after the restart: {reply}")
                self.model.observe(key, digest(reply.body) if reply.status == 200 else None)
            if reply.status == 200:
                present.add(key)
        return present


class Looper:
    def __init__(self, args):
        self.args = args
        self.random = random.Random(args.seed)
        self.node = nodes.Node(device_size=args.device, command=[str(args.bin / "cairnd")], settings={
            "engine.checkpoint_interval": args.checkpoint, "memory.arena": "128MiB"})
        self.workers = [Worker(n, args.seed) for n in range(args.clients)]
        self.rounds = self.recovery_kills = 0
        self.slowest_start = self.free_at_start = 0.0

    def load(self, seconds):
        stop = threading.Event()
        threads = [threading.Thread(target=w.run, args=(self.node.s3(timeout=30), stop)) for w in self.workers]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        died = not self.node.alive()
        if not died:
            self.node.kill()
        stop.set()
        for thread in threads:
            thread.join()
        for worker in self.workers:
            if worker.problem:
                raise worker.problem
        if died:
            raise Violation("cairnd died by itself")

    def start(self):
        """Sometimes the node is killed while it recovers, too, even several times in a row."""
        while self.random.random() < 0.25:
            self.node.ready_path.unlink(missing_ok=True)
            with open(self.node.log_path, "ab") as log:
                log.write(b"--- killed while starting ---\n")
                process = subprocess.Popen(self.node.arguments(), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            time.sleep(self.random.uniform(0, 0.6))
            if process.poll() not in (None, 0):
                raise Violation(f"cairnd ended with {process.returncode} while recovering:\n{self.node.log_tail()}")
            process.kill()
            process.wait()
            self.recovery_kills += 1
        self.node.start()
        self.slowest_start = max(self.slowest_start, self.node.start_seconds)

    def check(self):
        client = self.node.s3()
        present = set()
        for worker in self.workers:
            present |= worker.check(client)
        listed = set(client.list_keys(BUCKET))
        if listed != present:
            raise Violation(f"the listing differs from the objects: only listed {sorted(listed - present)}, only there {sorted(present - listed)}")
        return len(present)

    def round(self):
        self.rounds += 1
        self.load(self.random.uniform(0.05, self.args.seconds))
        self.start()
        objects = self.check()
        self.tidy()
        if self.free_bytes() < self.free_at_start / 3:
            self.wait_space(self.free_at_start / 2, "with what was overwritten and deleted before the crash")
        return objects

    def tidy(self):
        """Aborts most uploads that lie about: at once, since their parts would fill the small device."""
        client = self.node.s3()
        for worker in self.workers:
            for key, upload in sorted(worker.uploads):
                reply = client.request("DELETE", BUCKET, key, query=[("uploadId", upload)])
                if reply.status not in (204, 404):
                    raise Violation(f"abort of {key}: {reply}")
            worker.uploads.clear()
        # An upload whose answer was lost is known by the listing only.
        page = client.ok("GET", BUCKET, query=[("uploads", "")]).xml
        for upload in page.iterfind("Upload"):
            client.ok("DELETE", BUCKET, upload.findtext("Key"), query=[("uploadId", upload.findtext("UploadId"))], statuses=(204, 404))

    def free_bytes(self):
        return self.node.metric("engine_space_bytes", state="free")

    def check_space(self, free_at_start):
        """With everything deleted, what crashes left behind must come back."""
        client = self.node.s3()
        for key in list(client.list_keys(BUCKET)):
            client.delete(BUCKET, key)
        self.tidy()
        self.wait_space(free_at_start - 4 * MIB, "after everything was deleted")
        self.wait_no_orphans()

    def wait_no_orphans(self):
        deadline = time.monotonic() + SPACE_SECONDS
        while (report := json.loads(self.node.cli("--json", "check", "orphans").stdout))["orphans"]:
            if time.monotonic() > deadline:
                raise Violation(f"chunks that nothing refers to: {report}")
            time.sleep(1)

    def wait_space(self, wanted, what):
        deadline = time.monotonic() + SPACE_SECONDS
        while (free := self.free_bytes()) < wanted:
            if time.monotonic() > deadline:
                raise Violation(f"space that never came back: {free:,.0f} of {self.free_at_start:,.0f} bytes free, {SPACE_SECONDS} s {what}")
            time.sleep(0.2)

    def run(self):
        began = time.monotonic()
        self.node.start()
        self.node.s3().create_bucket(BUCKET)
        self.free_at_start = self.free_bytes()
        for number in range(1, self.args.rounds + 1):
            objects = self.round()
            if number % 10 == 0 or number == self.args.rounds:
                counts = {}
                for worker in self.workers:
                    for name, count in worker.counts.items():
                        counts[name] = counts.get(name, 0) + count
                print(f"crash: round {number:4} of {self.args.rounds}, {time.monotonic() - began:5.0f} s, {objects} objects, operations {counts}", flush=True)
        if sum(sum(w.counts.values()) for w in self.workers) < self.args.rounds:
            raise Violation("hardly any operation was done: nothing was tested")
        self.check_space(self.free_at_start)
        print(f"crash: {self.rounds} rounds, {self.recovery_kills} more kills during recovery, slowest start {self.slowest_start:.2f} s, "
              f"seed {self.args.seed}: nothing lost, nothing back")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=nodes.bin_folder())
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=2.5, help="longest load before a kill")
    parser.add_argument("--device", default="2GiB")
    parser.add_argument("--checkpoint", default="500ms", help="engine.checkpoint_interval: short, so that kills hit checkpoints")
    parser.add_argument("--keep", action="store_true", help="keep the node's folder")
    args = parser.parse_args()
    args.bin = args.bin.resolve()
    os.environ["CAIRN_BIN"] = str(args.bin)

    print(f"crash: seed {args.seed}", flush=True)
    looper = Looper(args)
    try:
        looper.run()
    except BaseException as problem:
        looper.node._keep = True
        looper.node.autopsy()
        print(f"crash: FAILED in round {looper.rounds} of seed {args.seed}: {problem!r}\n"
              f"crash: the node's folder is kept: {looper.node.folder}\n{looper.node.log_tail()}", flush=True)
        raise
    finally:
        if looper.node.process is not None:
            looper.node.process.kill()
            looper.node.process.wait()
            looper.node.process = None
    if not args.keep:
        looper.node.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
