#!/usr/bin/env python3
"""SRPC as a stranger gets it: installed into a folder of its own, its examples built against nothing else, and run."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import node as nodes  # noqa: E402
from cairntest import srpc, suite  # noqa: E402


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="package-", dir=nodes.scratch_folder()))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.prefix = cls.folder / "prefix"
        suite.run(["cmake", "--install", nodes.bin_folder(), "--component", "srpc", "--prefix", cls.prefix])
        cls.build = cls.folder / "build"
        # The installed copy of the examples, outside of the tree.
        cls.source = cls.prefix / "share/doc/srpc/examples"
        cls.configure(cls.source, cls.build, "-DCMAKE_CXX_COMPILER=clang++-19", "-DCMAKE_BUILD_TYPE=Release",
                      # Whoever is stricter than the package must not fail on its headers.
                      "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
        suite.run(["cmake", "--build", cls.build])

    @classmethod
    def configure(cls, source, build, *arguments, check=True, **more):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("CMAKE", "CXX", "CC", "CPP"))}
        return suite.run(["cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={cls.prefix}", *arguments],
                         env={**environment, **more}, check=check)

    def start(self, *command):
        server = srpc.Server([self.build / command[0], *command[1:]])
        self.addCleanup(server.close)
        return server

    def example(self, *command, check=True):
        return suite.run([self.build / command[0], *command[1:]], timeout=srpc.TIMEOUT, check=check)

    def test_echo(self):
        server = self.start("echo", "serve", "127.0.0.1:0")
        self.assertEqual(self.example("echo", "say", "hello", server.address).stdout, "hellohello\n")
        refused = self.example("echo", "say", "", server.address, check=False)
        self.assertEqual((refused.returncode, refused.stdout), (1, "echo: invalid_argument: nothing to say\n"))
        self.assertEqual(server.stop()[0], 0)

    def test_key_value_and_four_threads(self):
        server = self.start("key_value", "serve", 2, "127.0.0.1:0")
        for size in (0, 1, 4096, 4097, 3 << 20):
            path = self.folder / "value"
            path.write_bytes((b"0123456789abcde" * (size // 15 + 1))[:size])
            self.example("key_value", "put", f"key-{size}", path, server.address)
            got = subprocess.run([self.build / "key_value", "get", f"key-{size}", server.address],
                                 capture_output=True, timeout=srpc.TIMEOUT, check=True)
            self.assertTrue(got.stdout == path.read_bytes(), f"{size} bytes come back as they were put")
        missing = self.example("key_value", "get", "no", server.address, check=False)
        self.assertEqual((missing.returncode, missing.stdout), (1, "key_value: not_found: no such key: no\n"))
        threads = self.example("threads", server.address).stdout.splitlines()
        self.assertEqual(threads, [f"thread {i}, poll group {i % 2}: 6400 calls" for i in range(4)])
        self.assertEqual(server.stop()[0], 0)

    def test_it_is_whole(self):
        """Each installed header compiles alone, with what the package says and nothing else."""
        commands = (self.build / "compile_commands.json").read_text()
        flags = re.search(r'"command": "(\S+) (.*?) -o ', commands)
        includes = [f for f in flags[2].replace("-isystem ", "-isystem").split()
                    if f.startswith(("-I", "-isystem", "-D", "-std"))]
        folder = self.prefix / "include/cairn"
        headers = sorted(folder.rglob("*.h"))
        self.assertGreater(len(headers), 40)
        for include in includes:
            self.assertNotIn(str(nodes.ROOT / "src"), include)
        everything = self.folder / "all.cc"
        everything.write_text("".join(f'#include "{h.relative_to(folder)}"\n' for h in headers))
        suite.run(["clang++-19", *includes, "-fsyntax-only", everything])
        for header in (h for h in headers if h.parent.name == "srpc"):
            suite.run(["clang++-19", *includes, "-fsyntax-only", "-Wno-pragma-once-outside-header", "-x", "c++",
                       header])

    def test_nothing_of_ours_leaks(self):
        for path in (self.prefix / "lib/cmake/srpc").glob("*.cmake"):
            text = path.read_text()
            for word in (str(nodes.ROOT), "-Werror", "-Wall", "pch", "precompile", "-fsanitize"):
                self.assertNotIn(word, text, path.name)
        folder = self.prefix / "include/cairn"
        self.assertEqual({p.relative_to(folder).parts[0] for p in folder.rglob("*.h")}, {"base", "mem", "reactor", "srpc"})

    def test_programs_and_man_pages_come_along(self):
        for name in ("srpc-ping", "srpc-perf", "srpc-doctor"):
            self.assertEqual(suite.run([self.prefix / "bin" / name, "--help"]).returncode, 0)
            self.assertTrue((self.prefix / f"share/man/man1/{name}.1").exists())

    def test_rdma_is_a_component(self):
        """A server that would go over to RDMA, from the installed package; this machine may have no device."""
        source = self.folder / "rdma"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(x CXX)\nfind_package(srpc REQUIRED COMPONENTS verbs)\n"
            "add_executable(server server.cc)\ntarget_link_libraries(server PRIVATE srpc::srpc srpc::verbs)\n")
        (source / "server.cc").write_text(
            '#include "srpc/server_process.h"\n#include "srpc/verbs/system_verbs.h"\nusing namespace cairn;\n'
            "int main() {\n"
            "  const auto verbs = srpc::rdma::system_verbs();\n"
            "  srpc::rdma::RdmaOptions rdma;\n  rdma.verbs = verbs.get();\n"
            "  auto server = srpc::ServerProcess::start({.at = Address::loopback(0), .rdma = rdma},\n"
            "                                           [](auto&, auto&) { return nullptr; });\n"
            "  return server ? 0 : 1;\n}\n")
        build = self.folder / "rdma-build"
        self.configure(source, build, "-DCMAKE_CXX_COMPILER=clang++-19", "-DCMAKE_BUILD_TYPE=Release")
        suite.run(["cmake", "--build", build])
        suite.run([build / "server"], timeout=srpc.TIMEOUT)

    def test_says_what_is_missing(self):
        script = self.folder / "gcc.cmake"
        script.write_text("set(CMAKE_CXX_COMPILER_ID GNU)\nset(CMAKE_CXX_COMPILER_VERSION 12.2)\n"
                          f"include({self.prefix}/lib/cmake/srpc/srpc-config.cmake)\n"
                          'message("${srpc_FOUND}: ${srpc_NOT_FOUND_MESSAGE}")\n')
        self.assertIn("FALSE: SRPC needs clang 19 or newer, and this is GNU 12.2",
                      suite.run(["cmake", "-P", script]).stdout)
        bare = self.configure(self.source, self.folder / "bare", "-DCMAKE_CXX_COMPILER=clang++-19", check=False,
                              PKG_CONFIG_LIBDIR=str(self.folder / "none"))
        self.assertNotEqual(bare.returncode, 0)
        self.assertIn("install liburing-dev", " ".join(bare.stdout.split()))
        newer = self.folder / "newer"
        newer.mkdir()
        (newer / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(x CXX)\n"
                                              "find_package(srpc 9.0 REQUIRED)\n")
        old = self.configure(newer, self.folder / "old", "-DCMAKE_CXX_COMPILER=clang++-19", check=False)
        self.assertNotEqual(old.returncode, 0)
        self.assertIn("9.0", old.stdout)


if __name__ == "__main__":
    srpc.main()
