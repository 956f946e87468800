"""A cairnd of one's own: temporary data directory, free ports, a small device.

    with Node() as node:
        node.s3().create_bucket("b")
        node.kill(); node.start()          # the data stays
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

from cairntest import s3

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
READY_SECONDS = 90
STOP_SECONDS = 60


def bin_folder():
    return pathlib.Path(os.environ.get("CAIRN_BIN", ROOT / "build/release")).resolve()


def scratch_folder():
    """Where data directories go: beside the build, since /tmp may be memory, where O_DIRECT doesn't work."""
    folder = pathlib.Path(os.environ.get("CAIRN_TEST_TMP", bin_folder() / "test-data"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class NodeError(Exception):
    pass


class Node:
    def __init__(self, device_size="2GiB", settings=None, keep=False, command=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="node-", dir=scratch_folder()))
        self.data = self.folder / "data"
        self.log_path = self.folder / "cairnd.log"
        self.ready_path = self.folder / "ready.json"
        self.settings = {"device.size": device_size, "ports.base": 0, **(settings or {})}
        self.process = None
        self.ready = None
        self.starts = 0
        self._keep = keep
        self._command = command or [str(bin_folder() / "cairnd")]

    # -- life cycle

    def arguments(self):
        out = [*self._command, "--data", str(self.data), "--ready-file", str(self.ready_path)]
        for name, value in self.settings.items():
            out += ["--set", f"{name}={value}"]
        return out

    def start(self, seconds=READY_SECONDS):
        """Returns when every listener is up. NodeError, with the log's end, when it exits or takes too long."""
        assert self.process is None, "already running"
        if not os.access(self._command[0], os.X_OK):
            raise NodeError(f"{self._command[0]} is not built: make build")
        self.ready_path.unlink(missing_ok=True)
        began = time.monotonic()
        with open(self.log_path, "ab") as log:
            log.write(f"--- start {self.starts} ---\n".encode())
            self.process = subprocess.Popen(self.arguments(), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.starts += 1
        while time.monotonic() - began < seconds:
            if self.process.poll() is not None:
                code, self.process = self.process.returncode, None
                raise NodeError(f"cairnd ended with {code} instead of starting:\n{self.log_tail()}")
            if self.ready_path.exists():
                self.ready = json.loads(self.ready_path.read_text())
                self.start_seconds = time.monotonic() - began
                return self
            time.sleep(0.01)
        self.kill()
        raise NodeError(f"cairnd was not ready after {seconds} s:\n{self.log_tail()}")

    def stop(self):
        """Gracefully; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise NodeError(f"cairnd did not stop within {STOP_SECONDS} s:\n{self.log_tail()}") from None
        self.process = None
        return code

    def kill(self):
        """SIGKILL: what a crash looks like to the disk's page cache and to clients."""
        self.process.kill()
        self.process.wait()
        self.process = None

    def restart(self):
        code = self.stop()
        if code != 0:
            raise NodeError(f"cairnd stopped with {code}:\n{self.log_tail()}")
        return self.start()

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def close(self):
        crashed = self.process is not None and self.process.poll() not in (None, 0)
        code = self.process.returncode if crashed else 0
        if self.process is not None:
            if self.process.poll() is None:
                self.process.terminate()
                try:
                    self.process.wait(STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    self.process.kill()
                    self.process.wait()
            self.process = None
        if crashed:
            raise NodeError(f"cairnd died with {code} during the test:\n{self.log_tail()}")
        if not self._keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def __exit__(self, kind, *_):
        if kind is not None:
            print(f"--- the node's log ({self.log_path}) ends with:\n{self.log_tail()}")
            self._keep = self._keep or "CAIRN_KEEP" in os.environ
            if self._keep:
                self.autopsy()
        self.close()

    # -- looking at it

    def endpoint(self, service="s3"):
        return self.ready["endpoints"][service]

    @property
    def url(self):
        return f"http://{self.endpoint()}"

    @property
    def address(self):
        host, _, port = self.endpoint().rpartition(":")
        return host, int(port)

    @property
    def access_key(self):
        return self.ready["access_key"]

    @property
    def secret_key(self):
        return self.ready["secret_key"]

    def s3(self, timeout=60):
        return s3.Client(self.endpoint(), self.access_key, self.secret_key, timeout=timeout)

    def cli(self, *arguments, timeout=60):
        env = dict(os.environ, CAIRN_ENDPOINT=f"http://{self.endpoint('admin')}", CAIRN_TOKEN=self.ready["admin_token"])
        return subprocess.run([bin_folder() / "cairn", *arguments], capture_output=True, text=True, timeout=timeout, env=env,
                              check=False)

    def metrics_text(self):
        with urllib.request.urlopen(f"http://{self.endpoint('admin')}/metrics", timeout=10) as reply:
            return reply.read().decode()

    def metrics(self, **labels):
        """{name: sum over all its series with these labels}."""
        sums, wanted = {}, [f'{name}="{value}"' for name, value in labels.items()]
        for line in self.metrics_text().splitlines():
            match = re.match(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? ([-+.\deE]+|NaN)$", line)
            if match and all(pair in (match[2] or "") for pair in wanted):
                sums[match[1]] = sums.get(match[1], 0.0) + float(match[3])
        return sums

    def metric(self, name, **labels):
        return self.metrics(**labels)[name]

    def rss(self):
        """Resident memory in bytes."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)[1]) * 1024

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def autopsy(self):
        """Keeps what a hang leaves behind beside the log: metrics.txt, and stacks.txt where there is a gdb."""
        if not self.alive():
            return
        try:
            (self.folder / "metrics.txt").write_text(self.metrics_text())
        except OSError as silent:
            (self.folder / "metrics.txt").write_text(f"no answer: {silent}\n")
        if shutil.which("gdb"):
            with open(self.folder / "stacks.txt", "wb") as out:
                subprocess.run(["gdb", "-batch", "-p", str(self.process.pid), "-ex", "thread apply all backtrace 20"],
                               stdout=out, stderr=subprocess.DEVNULL, timeout=120, check=False)

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def log_tail(self, lines=40):
        return "\n".join(self.log().splitlines()[-lines:])


class External(Node):
    """A server that somebody else started, for trying the tests out: CAIRN_TEST_ENDPOINT=http://host:port, with
    CAIRN_TEST_ACCESS_KEY and CAIRN_TEST_SECRET_KEY. What needs a process of its own is skipped."""

    def __init__(self, **_):
        self.ready = {"endpoints": {"s3": os.environ["CAIRN_TEST_ENDPOINT"].removeprefix("http://").rstrip("/")},
                      "access_key": os.environ.get("CAIRN_TEST_ACCESS_KEY", "S3RVER"),
                      "secret_key": os.environ.get("CAIRN_TEST_SECRET_KEY", "S3RVER")}
        self.process = None
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="external-"))
        self.log_path = self.folder / "none"
        self._keep = False

    def start(self, seconds=0):
        return self


def make(**kwargs):
    return External() if "CAIRN_TEST_ENDPOINT" in os.environ else Node(**kwargs)


def external():
    return "CAIRN_TEST_ENDPOINT" in os.environ
