#!/usr/bin/env python3
"""boto3 through clients_boto3.py: Debian's, and a newer one where some python3 on PATH has it (it sends CRC trailers)."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
from cairntest import suite  # noqa: E402


class Boto3(suite.NodeTest):
    def test_every_boto3(self):
        tried = 0
        for python in suite.every("python3"):
            if suite.run([python, "-c", "import boto3"], env=self.client_env(), check=False).returncode:
                continue
            bucket = f"{self.bucket}-{tried}"
            self.s3.create_bucket(bucket)
            done = suite.run([python, HERE / "clients_boto3.py", self.node.url, bucket], env=self.client_env())
            print(done.stdout.splitlines()[0], end=" ")
            self.assertTrue(done.stdout.rstrip().endswith("ok"), done.stdout)
            tried += 1
        self.assertGreater(tried, 0, "no python3 has boto3: run scripts/setup.sh")


if __name__ == "__main__":
    suite.main()
