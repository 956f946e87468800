"""unittest's base class with a node for the whole class, and running programs with a time limit."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from cairntest import node as nodes


class ProgramFailed(AssertionError):
    pass


def run(command, timeout=300, env=None, check=True, input=None, cwd=None):
    """A program to its end. Text out; ProgramFailed with what it said when it fails or takes too long."""
    command = [str(c) for c in command]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout, env=env, check=False,
                              input=input, cwd=cwd, stdin=subprocess.DEVNULL if input is None else None)
    except subprocess.TimeoutExpired as late:
        raise ProgramFailed(f"{' '.join(command)}\nstill ran after {timeout} s:\n{(late.stdout or b'')[-3000:].decode(errors='replace')}")
    done.stdout = done.stdout.decode(errors="replace")
    if check and done.returncode != 0:
        raise ProgramFailed(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done


def every(program):
    """All different installations of a program: Debian's first, then what else is on PATH."""
    found = []
    for candidate in (f"/usr/bin/{program}", shutil.which(program)):
        if candidate and os.path.exists(candidate) and candidate not in found:
            found.append(candidate)
    return found


def need(program):
    path = shutil.which(program)
    if not path:
        raise AssertionError(f"{program} is missing: run scripts/setup.sh")  # a skip would hide it for ever
    return path


class NodeTest(unittest.TestCase):
    """One node for all tests of a class; each test has its own bucket, `self.bucket`."""

    device_size = "2GiB"
    settings = {}
    needs_process = False  # the class looks at the process, its files or its metrics

    @classmethod
    def setUpClass(cls):
        if nodes.external() and cls.needs_process:
            raise unittest.SkipTest("needs a cairnd of its own")
        cls.node = nodes.make(device_size=cls.device_size, settings=cls.settings)
        cls.node.__enter__()
        cls.addClassCleanup(cls._finish)
        cls.s3 = cls.node.s3()
        cls._count = 0

    @classmethod
    def _finish(cls):
        failed = getattr(cls, "_failed", False)
        cls.node.__exit__(AssertionError if failed else None, None, None)

    def setUp(self):
        type(self)._count += 1
        stem = "".join(c if c.isalnum() else "-" for c in self._testMethodName.lower()).strip("-")
        self.bucket = f"{stem[:40].rstrip('-')}-{self._count}"
        self.s3.create_bucket(self.bucket)
        self.tmp = pathlib.Path(tempfile.mkdtemp(prefix="client-", dir=self.node.folder))
        self.addCleanup(shutil.rmtree, self.tmp, ignore_errors=True)

    def run(self, result=None):  # unittest calls this for each test
        before = len(result.failures) + len(result.errors) if result else 0
        super().run(result)
        if result and len(result.failures) + len(result.errors) > before:
            type(self)._failed = True
        return result

    def assert_code(self, response, status, code=None):
        """An S3 error: its status and its <Code>."""
        self.assertEqual(response.status, status, response)
        if code is not None and not isinstance(code, (list, tuple)):
            code = [code]
        if code:
            self.assertIn(response.code, code, response)

    def client_env(self, **more):
        """The environment for programs: the node's credentials, and nobody's configuration."""
        env = {n: v for n, v in os.environ.items() if not n.startswith(("AWS_", "RCLONE_")) and "proxy" not in n.lower()}
        env.update({"LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "AWS_ACCESS_KEY_ID": self.node.access_key,
                    "AWS_SECRET_ACCESS_KEY": self.node.secret_key, "AWS_DEFAULT_REGION": "us-east-1",
                    "AWS_MAX_ATTEMPTS": "1", "AWS_EC2_METADATA_DISABLED": "true",
                    "AWS_CONFIG_FILE": str(self.tmp / "no-config"), "AWS_SHARED_CREDENTIALS_FILE": str(self.tmp / "no-credentials")})
        env.update(more)
        return env


def main():
    """For a suite's file: `python3 tests/e2e/NAME.py [-k PATTERN]`."""
    sys.stdout.reconfigure(line_buffering=True)
    unittest.main(verbosity=2, failfast=False)
