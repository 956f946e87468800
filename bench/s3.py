"""S3 GET and PUT of 4 KiB and 4 MiB at 16 connections, against nginx serving files and receiving WebDAV PUTs of the same bytes on
the same disk, with one load generator for both. Warm: every object was read once. nginx gets as many workers as Cairn has
reactors, and writes to the page cache, while a PUT to Cairn is on the disk when it is answered: the note says so."""

import os
import pathlib
import subprocess
import sys

import lib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/lib"))
from cairntest import node as nodes  # noqa: E402

CONNECTIONS = 16
KIB, MIB = 1 << 10, 1 << 20
SIZES = {"4 KiB": (4 * KIB, 256), "4 MiB": (4 * MIB, 24)}  # size, number of objects
BUCKET = "bench"

NGINX = """
daemon off; master_process on; worker_processes {workers}; pid {folder}/pid; error_log {folder}/error.log warn; {user}
events {{ worker_connections 512; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000; keepalive_timeout 600; client_max_body_size 0;
  client_body_temp_path {folder}/temp; client_body_buffer_size 64k; types {{ }} default_type application/octet-stream;
  server {{
    listen 127.0.0.1:{port}; root {folder}/root;
    location / {{ dav_methods PUT; create_full_put_path on; }}
  }}
}}
"""


def free_port():
    import socket
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Nginx:
    def __init__(self, ctx, workers):
        self.folder = ctx.scratch / "nginx"
        for name in ("root", "temp"):
            (self.folder / name).mkdir(parents=True)
        self.port = free_port()
        user = "user root;" if os.geteuid() == 0 else ""  # the scratch folder is the caller's
        (self.folder / "nginx.conf").write_text(NGINX.format(workers=workers, folder=self.folder, user=user, port=self.port))
        self.process = subprocess.Popen(["nginx", "-p", self.folder, "-c", self.folder / "nginx.conf"],
                                        stderr=subprocess.DEVNULL)
        lib.wait_port(self.port)
        self.address = ("127.0.0.1", self.port)

    def targets(self, method, size_name, count):
        return [f"{method} /{BUCKET}/{size_name.replace(' ', '')}-{i}" for i in range(count)]

    def close(self):
        self.process.terminate()
        self.process.wait(30)


class Cairn:
    def __init__(self, ctx):
        os.environ["CAIRN_BIN"] = str(ctx.build)
        os.environ["CAIRN_TEST_TMP"] = str(ctx.scratch)
        self.node = nodes.Node(device_size="8GiB", settings={"mode": "performance"}).start()
        self.address = self.node.address
        self.s3 = self.node.s3()
        self.s3.create_bucket(BUCKET)

    def targets(self, method, size_name, count):
        # Presigned once: the generator needn't sign, Cairn verifies each signature as always.
        return [f"{method} {self.s3.presigned(method, BUCKET, f'{size_name.replace(chr(32), str())}-{i}', expires=86400)}"
                for i in range(count)]

    def close(self):
        self.node.close()


def load(ctx, server, targets, size, seconds, connections=CONNECTIONS):
    host, port = server.address
    return ctx.json(ctx.program("http_load"), host, port, connections, seconds, size, input="\n".join(targets) + "\n", timeout=300)


def version():
    done = subprocess.run(["nginx", "-v"], capture_output=True, text=True, check=False)
    return done.stderr.strip().rpartition("/")[2]


def run(ctx):
    if not lib.have("nginx"):
        print("  nginx is missing: scripts/setup.sh --bench", file=sys.stderr)
        return []
    cairn = Cairn(ctx)
    workers = max(1, (os.cpu_count() or 2) - 1)
    nginx = Nginx(ctx, workers)
    peer = f"nginx {version()}, {workers} worker(s)"
    seconds, cases = (0.3 if ctx.quick else 3), []
    try:
        for name, (size, count) in SIZES.items():
            large = size >= MIB
            unit, field = ("MB/s", "mb_per_second") if large else ("req/s", "requests_per_second")
            for method in ("PUT", "GET"):  # PUT first: it makes what GET reads
                sides = {}
                for server in (cairn, nginx):
                    sides[server] = server.targets(method, name, count)
                    load(ctx, server, sides[server], size, 0.5)
                note = "nginx doesn't flush; Cairn's PUT is durable and checksummed" if method == "PUT" else "warm"
                cases.append(ctx.compare(f"{method} {name}, {CONNECTIONS} connections", unit, "higher",
                                         lambda s=size, t=sides[cairn], f=field: load(ctx, cairn, t, s, seconds)[f],
                                         lambda s=size, t=sides[nginx], f=field: load(ctx, nginx, t, s, seconds)[f], peer, note))
    finally:
        nginx.close()
        cairn.close()
    return cases
