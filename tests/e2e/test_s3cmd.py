#!/usr/bin/env python3
"""s3cmd: put, get, ls, sync, del, multipart."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import payload, suite  # noqa: E402

MIB = 1 << 20


class S3cmd(suite.NodeTest):
    def s3cmd(self, *arguments, **kwargs):
        config = self.tmp / "s3cfg"
        host = self.node.endpoint()
        config.write_text("[default]\n" + "\n".join(f"{n} = {v}" for n, v in {
            "access_key": self.node.access_key, "secret_key": self.node.secret_key, "host_base": host, "host_bucket": host,
            "use_https": False, "signature_v2": False, "bucket_location": "us-east-1", "multipart_chunk_size_mb": 5,
            "check_ssl_certificate": False, "max_retries": 1}.items()) + "\n")
        return suite.run([suite.need("s3cmd"), "-c", config, "--no-progress", *arguments], env=self.client_env(), **kwargs)

    def test_put_get_info_del(self):
        for size in (0, 1, 4096, 8 * MIB, 17 * MIB + 3):
            there, back = self.tmp / "there", self.tmp / f"back-{size}"
            digest = payload.write_file(there, f"s3cmd {size}", size)
            self.s3cmd("put", there, f"s3://{self.bucket}/dir/{size}.bin")
            self.s3cmd("get", f"s3://{self.bucket}/dir/{size}.bin", back)
            self.assertEqual(payload.file_sha256(back), digest, size)
        listing = self.s3cmd("ls", f"s3://{self.bucket}/dir/").stdout
        self.assertEqual(listing.count(f"s3://{self.bucket}/dir/"), 5, listing)
        self.assertIn("DIR", self.s3cmd("ls", f"s3://{self.bucket}").stdout)
        self.assertIn("4096", self.s3cmd("info", f"s3://{self.bucket}/dir/4096.bin").stdout)
        self.s3cmd("del", f"s3://{self.bucket}/dir/1.bin")
        self.assertEqual(self.s3.head(self.bucket, "dir/1.bin").status, 404)
        self.s3cmd("del", "--recursive", "--force", f"s3://{self.bucket}/")
        self.assertEqual(list(self.s3.list_keys(self.bucket)), [])

    def test_sync_both_ways(self):
        source, target = self.tmp / "source", self.tmp / "target"
        names = ["plain", "with space", "plus+", "per%cent", "ünï/çødé", "日本", "amp&<>'\""]
        for name in names:
            path = source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(payload.make(name, 3000))
        self.s3cmd("sync", f"{source}/", f"s3://{self.bucket}/t/")
        self.assertEqual(sorted(self.s3.list_keys(self.bucket)), sorted(f"t/{n}" for n in names))
        target.mkdir()
        self.s3cmd("sync", f"s3://{self.bucket}/t/", f"{target}/")
        for name in names:
            self.assertEqual((target / name).read_bytes(), (source / name).read_bytes(), name)
        (source / "plain").write_bytes(b"other bytes")
        (source / "plus+").unlink()
        out = self.s3cmd("sync", "--delete-removed", f"{source}/", f"s3://{self.bucket}/t/").stdout
        self.assertEqual(out.count("upload:"), 1, out)
        self.assertEqual(self.s3.head(self.bucket, "t/plus+").status, 404)
        self.assertEqual(self.s3.get(self.bucket, "t/plain").body, b"other bytes")

    def test_buckets_copy_and_move(self):
        self.s3cmd("mb", "s3://made-by-s3cmd")
        self.assertIn("s3://made-by-s3cmd", self.s3cmd("ls").stdout)
        self.s3.put(self.bucket, "a b", b"move me")
        self.s3cmd("cp", f"s3://{self.bucket}/a b", "s3://made-by-s3cmd/copy of+a b")
        self.s3cmd("mv", f"s3://{self.bucket}/a b", "s3://made-by-s3cmd/moved")
        self.assertEqual(self.s3.get("made-by-s3cmd", "copy of+a b").body, b"move me")
        self.assertEqual(self.s3.head(self.bucket, "a b").status, 404)
        refused = self.s3cmd("rb", "s3://made-by-s3cmd", check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("BucketNotEmpty", refused.stdout)
        self.s3cmd("del", "--recursive", "--force", "s3://made-by-s3cmd")
        self.s3cmd("rb", "s3://made-by-s3cmd")

    def test_abandoned_multipart_is_seen_and_aborted(self):
        upload = self.s3.ok("POST", self.bucket, "half", query=[("uploads", "")]).xml.findtext("UploadId")
        self.assertIn(upload, self.s3cmd("multipart", f"s3://{self.bucket}").stdout)
        self.s3cmd("abortmp", f"s3://{self.bucket}/half", upload)
        self.assertNotIn(upload, self.s3cmd("multipart", f"s3://{self.bucket}").stdout)


if __name__ == "__main__":
    suite.main()
