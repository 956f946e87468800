#!/usr/bin/env python3
"""rclone: sync, check, copyto, which compare ETags and modification times (P32)."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import payload, suite  # noqa: E402

MIB = 1 << 20


class Rclone(suite.NodeTest):
    def rclone(self, *arguments, **kwargs):
        config = self.tmp / "rclone.conf"
        config.write_text(f"[cairn]\ntype = s3\nprovider = Other\naccess_key_id = {self.node.access_key}\n"
                          f"secret_access_key = {self.node.secret_key}\nendpoint = {self.node.url}\nregion = us-east-1\n"
                          "upload_cutoff = 8M\nchunk_size = 5M\nforce_path_style = true\n")
        return suite.run([suite.need("rclone"), "--config", config, "--retries", "1", "--low-level-retries", "1", *arguments],
                         env=self.client_env(), **kwargs)

    def tree(self):
        source = self.tmp / "source"
        names = {"plain": 100, "empty": 0, "with space": 5000, "plus+and%25": 4096, "deep/ünï/çødé": 70000, "日本/語": 1, "big": 18 * MIB + 5}
        for name, size in names.items():
            path = source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            payload.write_file(path, name, size)
        return source, names

    def test_sync_check_and_back(self):
        source, names = self.tree()
        remote = f"cairn:{self.bucket}/tree"
        self.rclone("sync", source, remote)
        self.assertEqual(sorted(self.s3.list_keys(self.bucket)), sorted(f"tree/{n}" for n in names))
        self.assertIn("0 differences found", self.rclone("check", source, remote).stdout)
        self.assertIn("0 differences found", self.rclone("check", "--download", source, remote).stdout)
        self.rclone("sync", remote, self.tmp / "back")
        self.assertIn("0 differences found", self.rclone("check", source, self.tmp / "back").stdout)
        # A second sync has nothing to do: times and hashes are kept.
        self.assertNotIn("Copied", self.rclone("sync", "-v", source, remote).stdout)
        (source / "plain").write_bytes(b"new")
        (source / "empty").unlink()
        self.rclone("sync", source, remote)
        self.assertEqual(self.s3.get(self.bucket, "tree/plain").body, b"new")
        self.assertEqual(self.s3.head(self.bucket, "tree/empty").status, 404)

    def test_copyto_both_ways_and_on_the_server(self):
        for size in (0, 1, 8 * MIB, 17 * MIB + 1):
            there, back = self.tmp / "there", self.tmp / "back"
            digest = payload.write_file(there, f"rclone {size}", size)
            self.rclone("copyto", there, f"cairn:{self.bucket}/a/{size}")
            self.rclone("copyto", f"cairn:{self.bucket}/a/{size}", f"cairn:{self.bucket}/b/{size}")
            self.rclone("copyto", f"cairn:{self.bucket}/b/{size}", back)
            self.assertEqual(payload.file_sha256(back), digest, size)
            back.unlink()
        self.assertIn("0 differences found", self.rclone("check", f"cairn:{self.bucket}/a", f"cairn:{self.bucket}/b").stdout)

    def test_stream_of_unknown_length(self):
        data = payload.make("rcat", 13 * MIB)
        self.rclone("rcat", f"cairn:{self.bucket}/streamed", input=data)
        self.assertEqual(self.s3.get(self.bucket, "streamed").body, data)

    def test_directories_purge_and_mkdir(self):
        self.rclone("mkdir", "cairn:made-by-rclone")
        self.rclone("rcat", "cairn:made-by-rclone/d/e/f", input=b"x")
        self.assertIn("d/", self.rclone("lsf", "cairn:made-by-rclone").stdout)
        self.assertEqual(self.rclone("lsf", "-R", "--files-only", "cairn:made-by-rclone").stdout.strip(), "d/e/f")
        self.rclone("purge", "cairn:made-by-rclone")
        self.assertEqual(self.s3.request("HEAD", "made-by-rclone").status, 404)


if __name__ == "__main__":
    suite.main()
