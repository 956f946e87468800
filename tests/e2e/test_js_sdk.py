#!/usr/bin/env python3
"""A current AWS SDK (JavaScript v3, js/client.mjs): CRC32 trailers by default, parallel multipart uploads."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
from cairntest import suite  # noqa: E402


class JsSdk(suite.NodeTest):
    def test_client(self):
        self.assertTrue((HERE / "js/node_modules").is_dir(), "run scripts/npm-install")
        done = suite.run([suite.need("node"), HERE / "js/client.mjs", self.node.url, self.bucket], env=self.client_env())
        self.assertTrue(done.stdout.rstrip().endswith("ok"), done.stdout)


if __name__ == "__main__":
    suite.main()
