#!/usr/bin/env python3
"""srpc-perf: server, client and sweep as people run them, shortly."""

import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import node as nodes  # noqa: E402
from cairntest import srpc  # noqa: E402

SECONDS = ("--seconds", "0.1")
SVG = "{http://www.w3.org/2000/svg}"


class Perf(srpc.ProgramTest):
    program = "srpc-perf"

    def client(self, *arguments):
        done = self.run_program("client", *arguments, *SECONDS, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def assert_sound(self, run):
        """Figures that hold whatever the machine."""
        self.assertGreater(run["calls"], 0)
        self.assertAlmostEqual(run["calls_per_second"], run["calls"] / run["seconds"], delta=1)
        directions = 2 if run["operation"] == "echo" else 1
        self.assertAlmostEqual(run["bytes_per_second"], run["calls_per_second"] * run["size_bytes"] * directions,
                               delta=run["size_bytes"] * 2 + 1)
        latency = run["latency_us"]
        order = [latency[name] for name in ("min", "p50", "p90", "p99", "p999", "max")]
        self.assertEqual(order, sorted(order))
        self.assertGreater(latency["min"], 0)
        self.assertGreater(run["cpu_us_per_call"]["client"], 0)
        self.assertGreater(run["cpu_us_per_call"]["server"], 0)


class Keys(Perf):
    def test_measures_with_a_key(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="srpc-keys-"))
        self.addCleanup(shutil.rmtree, folder)
        key = srpc.make_key_file(folder)
        server = srpc.perf_server("--key-file", key)
        self.addCleanup(server.close)
        for transport in ("tcp", "shm"):
            said = self.client(server.address, "--transport", transport, "--key-file", key)
            self.assertEqual(said["runs"][0]["transport"], transport)
        self.assert_fails(self.run_program("client", server.address, *SECONDS), 1, "not_authenticated", "--key-file FILE")
        done = self.run_program("sweep", "--key-file", key, "--depth", "1", "--transport", "shm", *SECONDS, "--out", folder / "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        for command in ("server", "client", "load", "sweep"):
            self.assert_fails(self.run_program(command, "--key-file", folder / "none"), 2, "--key-file", "No such file")


class Client(Perf):
    @classmethod
    def setUpClass(cls):
        cls.server = srpc.perf_server("--poll-groups", 2)
        cls.addClassCleanup(cls.server.close)

    def test_measures_every_combination(self):
        said = self.client(self.server.address, "--transport", "tcp,shm,near", "--size", "0,64,4097,1MiB",
                           "--depth", "1,8")
        self.assertEqual(said["server"], self.server.address)
        runs = said["runs"]
        self.assertEqual([(r["asked_for"], r["size_bytes"], r["depth"]) for r in runs],
                         [(t, s, d) for t in ("tcp", "shm", "near") for s in (0, 64, 4097, 1 << 20) for d in (1, 8)])
        for run in runs:
            self.assertEqual(run["transport"], "tcp" if run["asked_for"] == "tcp" else "shm")
            self.assert_sound(run)

    def test_operations_modes_and_threads(self):
        for operation in ("write", "read", "echo"):
            for mode in ("performance", "economy", "automatic"):
                run, = self.client(self.server.address, "--op", operation, "--mode", mode, "--threads", 3,
                                   "--depth", 2, "--size", "16KiB")["runs"]
                self.assertEqual((run["operation"], run["mode"], run["threads"]), (operation, mode, 3))
                self.assert_sound(run)

    def test_the_largest_payload_and_many_calls(self):
        for operation in ("write", "read"):
            run, = self.client(self.server.address, "--op", operation, "--size", "8MiB", "--depth", 2)["runs"]
            self.assert_sound(run)
        run, = self.client(self.server.address, "--size", 64, "--depth", 1500)["runs"]
        self.assert_sound(run)

    def test_prints_a_table(self):
        done = self.run_program("client", self.server.address, "--depth", "1,2", *SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 3)
        self.assertTrue(lines[0].startswith("transport"))
        self.assertEqual([line.split()[:4] for line in lines[1:]],
                         [["shm", "write", "4KiB", "1"], ["shm", "write", "4KiB", "2"]])

    def test_wrong_usage(self):
        for arguments in ((), ("fly",), ("client", "--size", "17MiB"), ("client", "--size", "x"),
                          ("client", "--depth", "0"), ("client", "--op", "append"), ("client", "--mode", "fast"),
                          ("client", "--transport", "tcp,ib"), ("client", "--threads", "0"),
                          ("client", "--seconds", "0"), ("client", "--seconds", "1y"),
                          ("sweep", "--bulk-size", "1TiB"), ("server", "--mode", "fast"),
                          ("server", "--memory", "1"), ("server", "--poll-groups", "0"),
                          ("server", "--listen", "127.0.0.1:99999")):
            done = self.run_program(*arguments)
            self.assertEqual(done.returncode, 2, (arguments, done.stderr))
            self.assertTrue(done.stderr.strip(), arguments)

    def test_more_memory_than_there_is(self):
        done = self.run_program("client", self.server.address, "--op", "read", "--size", "16MiB", "--depth", "65536")
        self.assert_fails(done, 1, "TiB of memory", "--depth")
        # Writes share one payload.
        done = self.run_program("client", self.server.address, "--size", "8MiB", "--depth", "100", *SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_servers_that_are_none(self):
        address, holder = srpc.unused_address()
        self.addCleanup(holder.close)
        self.assert_fails(self.run_program("client", address), 3, address, "is the server running")
        said = self.assert_fails(self.run_program("client", address, "--json"), 3)
        self.assertEqual(json.loads(said)["error"]["code"], "unavailable")
        other = srpc.OtherServer(srpc.HTTP_ANSWER)
        self.addCleanup(other.close)
        self.assert_fails(self.run_program("client", other.address), 4, "doesn't speak SRPC")

    def test_help_and_man_page(self):
        self.assert_help_teaches("server", "client", "load", "sweep")
        self.assert_man_page_is_complete("server", "client", "load", "sweep")


class Node(Perf):
    def test_an_srpc_server_that_is_not_perf(self):
        with nodes.Node(device_size="512MiB") as node:
            self.assertEqual(srpc.run("srpc-ping", node.ready["endpoints"]["srpc"], "-c", 3).returncode, 0)
            done = self.run_program("client", node.ready["endpoints"]["srpc"])
            self.assert_fails(done, 4, "srpc-perf server")


class Server(Perf):
    def test_without_arguments_it_serves_the_client_without_arguments(self):
        try:
            server = srpc.Server([nodes.bin_folder() / "srpc-perf", "server"])
        except AssertionError as refused:
            self.assertIn("can't listen on 127.0.0.1:7410", str(refused))
            self.skipTest("somebody else on this machine uses port 7410")
        self.addCleanup(server.close)
        self.assertIn("127.0.0.1:7410", server.first_line)
        done = self.run_program("client", *SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_signals_end_it_gracefully(self):
        for how in (signal.SIGINT, signal.SIGTERM):
            server = srpc.perf_server()
            self.addCleanup(server.close)
            code, rest = server.stop(how)
            self.assertEqual(code, 0, rest)
            self.assertTrue(rest.endswith("srpc-perf: stopped\n"), rest)

    def test_a_stop_under_load(self):
        server = srpc.perf_server()
        self.addCleanup(server.close)
        client = subprocess.Popen([nodes.bin_folder() / "srpc-perf", "client", server.address, "--seconds", "60",
                                   "--depth", "8", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            self.wait_for_load(server)
            self.assertEqual(server.stop()[0], 0)
            # Its calls wait for the server to come back, and end with their deadline; nobody has to see that here.
            self.assertIsNone(client.poll())
        finally:
            client.kill()
            client.communicate()

    def wait_for_load(self, server):
        """Until the server's process has used some processor time beyond what its start took."""
        def used():
            fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            return int(fields[11]) + int(fields[12])
        before = used()
        deadline = time.monotonic() + srpc.TIMEOUT
        while used() < before + 20:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def test_a_port_in_use(self):
        server = srpc.perf_server()
        self.addCleanup(server.close)
        done = self.run_program("server", "--listen", server.address)
        self.assert_fails(done, 1, server.address, "in use", "choose another port with --listen")
        done = self.run_program("server", "--listen", "203.0.113.7:0")
        self.assert_fails(done, 1, "203.0.113.7:0", "an address of this machine with --listen")

    def test_tcp_only(self):
        server = srpc.perf_server("--tcp-only")
        self.addCleanup(server.close)
        run, = self.client(server.address)["runs"]
        self.assertEqual(run["transport"], "tcp")
        self.assert_fails(self.run_program("client", server.address, "--transport", "shm"), 3, "--transport tcp")


class Load(Perf):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="srpc-load-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def test_plots_each_mode_over_the_rates(self):
        done = self.run_program("load", "--out", self.folder / "out", "--rates", "2000,200", "--seconds", "0.3", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads((self.folder / "out" / "load.json").read_text())
        self.assertEqual(said, json.loads(done.stdout))
        self.assertEqual([(r["mode"], r["offered_calls_per_second"]) for r in said["runs"]],
                         [(m, r) for m in ("performance", "economy", "automatic") for r in (200, 2000)])
        for run in said["runs"]:
            self.assert_sound(run)
            # Never more than was asked for, but for what was due before and ended after the warm-up.
            self.assertLessEqual(run["calls"], run["offered_calls_per_second"] * run["seconds"] + 256)
            self.assertGreater(run["cpu_cores"]["server"], 0)
        for name in ("load-latency.svg", "load-cpu.svg"):
            plot = xml.etree.ElementTree.parse(self.folder / "out" / name)
            lines = plot.findall(f"{SVG}polyline")
            self.assertEqual([len(line.get("points").split()) for line in lines], [2] * 6)

    def test_finds_the_rates_by_itself(self):
        done = self.run_program("load", "--out", self.folder / "out", "--modes", "automatic", "--transport", "tcp", *SECONDS)
        # In a tenth of a second there may be no call at ten a second: that is said, and not taken for a result.
        if done.returncode == 0:
            rates = [r["offered_calls_per_second"] for r in json.loads((self.folder / "out" / "load.json").read_text())["runs"]]
            self.assertEqual(rates, sorted(rates))
            self.assertEqual(rates[0], 10)
        else:
            self.assert_fails(done, 1, "no call was answered while it was measured")

    def test_wrong_usage(self):
        for arguments in (("--rates", "0"), ("--rates", "x"), ("--modes", "fast"), ("--size", "1,2"), ("--depth", "1,2"),
                          ("--mode", "economy")):
            self.assertEqual(self.run_program("load", *arguments).returncode, 2, arguments)


class Sweep(Perf):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sweep-", dir=nodes.scratch_folder()))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def lines_of(self, name):
        """Names in the legend, and how many points each line has."""
        root = xml.etree.ElementTree.parse(self.folder / "out" / name).getroot()
        texts = [t.text for t in root.iter(f"{SVG}text")]
        points = [len(p.get("points").split()) for p in root.iter(f"{SVG}polyline")]
        return texts, points

    def test_makes_the_plots_from_one_command(self):
        done = self.run_program("sweep", "--out", self.folder / "out", "--depth", "1,4", "--size", "64,4KiB", *SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("throughput.svg", done.stdout)
        said = json.loads((self.folder / "out" / "sweep.json").read_text())
        self.assertEqual(len(said["runs"]), 2 * 2 * 2 + 2 * 2)
        for run in said["runs"]:
            self.assert_sound(run)
        for name in ("latency.svg", "rate.svg"):
            texts, points = self.lines_of(name)
            self.assertEqual(points, [2, 2, 2, 2])
            for legend in ("shm, 64B", "shm, 4KiB", "tcp, 64B", "tcp, 4KiB"):
                self.assertIn(legend, texts)
        texts, points = self.lines_of("throughput.svg")
        self.assertEqual(points, [2, 2])
        self.assertIn("tcp, 1MiB", texts)
        self.assertIn("MiB/s", texts)

    def test_a_server_elsewhere(self):
        server = srpc.perf_server()
        self.addCleanup(server.close)
        done = self.run_program("sweep", "--connect", server.address, "--out", self.folder / "out", "--depth", "1",
                                "--transport", "tcp", "--bulk-size", "256KiB", "--json", *SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual(said["server"], server.address)
        self.assertEqual([r["size_bytes"] for r in said["runs"]], [4096, 256 << 10])

    def test_its_server_ends_with_it(self):
        sweep = subprocess.Popen([nodes.bin_folder() / "srpc-perf", "sweep", "--out", self.folder / "out",
                                  "--seconds", "60"], stdout=subprocess.PIPE, text=True)
        self.assertTrue(sweep.stdout.readline().startswith("transport"))  # its server runs
        children = pathlib.Path(f"/proc/{sweep.pid}/task/{sweep.pid}/children").read_text().split()
        self.assertEqual(len(children), 1)
        sweep.kill()
        sweep.communicate()
        deadline = time.monotonic() + srpc.TIMEOUT
        while pathlib.Path(f"/proc/{children[0]}/exe").exists():
            self.assertLess(time.monotonic(), deadline, "the server outlived its sweep")
            time.sleep(0.05)

    def test_says_at_once_what_it_cannot_write(self):
        (self.folder / "file").write_text("")
        done = self.run_program("sweep", "--out", self.folder / "file" / "out", *SECONDS)
        self.assert_fails(done, 1, "can't write to")


if __name__ == "__main__":
    srpc.main()
