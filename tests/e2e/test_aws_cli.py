#!/usr/bin/env python3
"""The AWS command line as people use it: Debian's, and a newer one where there is one (it sends CRC trailers)."""

import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import payload, suite  # noqa: E402

MIB = 1 << 20


class AwsCli(suite.NodeTest):
    def each_aws(self):
        installed = suite.every("aws")
        self.assertTrue(installed, "aws is missing: run scripts/setup.sh")
        for program in installed:
            print(f"[{suite.run([program, '--version'], env=self.client_env()).stdout.split()[0]}]", end=" ", flush=True)
            yield lambda *a, program=program, **kw: suite.run([program, "--endpoint-url", self.node.url, *a], env=self.client_env(), **kw)

    def test_mb_ls_rb(self):
        for number, aws in enumerate(self.each_aws()):
            bucket = f"made-by-aws-{number}"
            aws("s3", "mb", f"s3://{bucket}")
            self.assertIn(bucket, aws("s3", "ls").stdout)
            done = aws("s3", "rb", f"s3://{self.bucket}-missing", check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("NoSuchBucket", done.stdout)
            aws("s3", "rb", f"s3://{bucket}")
            self.assertNotIn(bucket, aws("s3", "ls").stdout)

    def test_cp_sizes_with_multipart(self):
        for aws in self.each_aws():
            for size in (0, 1, 4096, 8 * MIB, 20 * MIB + 1):  # above 8 MiB the CLI sends parts
                there, back = self.tmp / f"there-{size}", self.tmp / f"back-{size}"
                digest = payload.write_file(there, f"aws {size}", size)
                aws("s3", "cp", there, f"s3://{self.bucket}/f/{size}")
                aws("s3", "cp", f"s3://{self.bucket}/f/{size}", back)
                self.assertEqual(payload.file_sha256(back), digest, size)
            listing = aws("s3", "ls", f"s3://{self.bucket}/f/").stdout
            self.assertIn(str(20 * MIB + 1), listing)
            aws("s3", "rm", "--recursive", f"s3://{self.bucket}/f/")
            self.assertEqual(aws("s3", "ls", f"s3://{self.bucket}/f/", check=False).stdout.strip(), "")

    def test_stdin_and_stdout(self):
        for aws in self.each_aws():
            data = payload.make("stdin", 9 * MIB)
            aws("s3", "cp", "-", f"s3://{self.bucket}/piped", input=data)
            self.assertEqual(self.s3.get(self.bucket, "piped").body, data)

    def test_sync_and_rm(self):
        for aws in self.each_aws():
            source, target = self.tmp / "source", self.tmp / "target"
            names = ["a.txt", "with space.txt", "plus+sign", "per%cent", "deep/er/ünï çødé.txt", "日本/語", "tilde~and'quote", "@:;=&$,!"]
            for index, name in enumerate(names):
                path = source / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(payload.make(name, 1000 + index))
                os.utime(path, (1_700_000_000, 1_700_000_000))  # older than its upload, whose time has whole seconds
            aws("s3", "sync", source, f"s3://{self.bucket}/tree")
            self.assertEqual(sorted(self.s3.list_keys(self.bucket, prefix="tree/")), sorted(f"tree/{n}" for n in names))
            aws("s3", "sync", f"s3://{self.bucket}/tree", target)
            for name in names:
                self.assertEqual((target / name).read_bytes(), (source / name).read_bytes(), name)
            # Nothing changed, so nothing may be sent again; then one change and one deletion.
            self.assertNotIn("upload:", aws("s3", "sync", source, f"s3://{self.bucket}/tree").stdout)
            (source / "a.txt").write_bytes(b"changed, and of another size")
            (source / "plus+sign").unlink()
            out = aws("s3", "sync", "--delete", source, f"s3://{self.bucket}/tree").stdout
            self.assertEqual(out.count("upload:"), 1, out)
            self.assertEqual(out.count("delete:"), 1, out)
            self.assertEqual(self.s3.get(self.bucket, "tree/a.txt").body, b"changed, and of another size")
            aws("s3", "rm", f"s3://{self.bucket}/tree", "--recursive")
            self.assertEqual(list(self.s3.list_keys(self.bucket)), [])

    def test_copy_and_move_on_the_server(self):
        for aws in self.each_aws():
            data = payload.make("copied", 12 * MIB)  # large enough that the CLI copies in parts
            self.s3.put(self.bucket, "from here", data)
            aws("s3", "cp", f"s3://{self.bucket}/from here", f"s3://{self.bucket}/to/there+")
            aws("s3", "mv", f"s3://{self.bucket}/from here", f"s3://{self.bucket}/moved")
            self.assertEqual(self.s3.get(self.bucket, "to/there+").body, data)
            self.assertEqual(self.s3.get(self.bucket, "moved").body, data)
            self.assertEqual(self.s3.head(self.bucket, "from here").status, 404)

    def test_api_calls(self):
        for aws in self.each_aws():
            body = self.tmp / "body"
            body.write_bytes(b"hello world")

            def api(*arguments):
                out = aws("s3api", *arguments, "--output", "json").stdout
                return json.loads(out) if out.strip() else {}

            put = api("put-object", "--bucket", self.bucket, "--key", "k", "--body", str(body), "--content-type", "text/x-cairn",
                      "--metadata", "colour=blue", "--cache-control", "max-age=7")
            self.assertEqual(put["ETag"].strip('"'), "5eb63bbbe01eeed093cb22bb8f5acdc3")
            head = api("head-object", "--bucket", self.bucket, "--key", "k")
            self.assertEqual((head["ContentLength"], head["ContentType"], head["Metadata"], head["CacheControl"]),
                             (11, "text/x-cairn", {"colour": "blue"}, "max-age=7"))
            api("get-object", "--bucket", self.bucket, "--key", "k", "--range", "bytes=6-", str(self.tmp / "part"))
            self.assertEqual((self.tmp / "part").read_bytes(), b"world")
            upload = api("create-multipart-upload", "--bucket", self.bucket, "--key", "m")["UploadId"]
            uploads = api("list-multipart-uploads", "--bucket", self.bucket)["Uploads"]
            self.assertEqual([u["UploadId"] for u in uploads], [upload])
            api("upload-part", "--bucket", self.bucket, "--key", "m", "--upload-id", upload, "--part-number", "1", "--body", str(body))
            self.assertEqual(api("list-parts", "--bucket", self.bucket, "--key", "m", "--upload-id", upload)["Parts"][0]["Size"], 11)
            api("abort-multipart-upload", "--bucket", self.bucket, "--key", "m", "--upload-id", upload)
            self.assertFalse(api("list-multipart-uploads", "--bucket", self.bucket).get("Uploads"))
            deleted = api("delete-objects", "--bucket", self.bucket, "--delete", '{"Objects":[{"Key":"k"},{"Key":"never there"}]}')
            self.assertEqual(sorted(d["Key"] for d in deleted["Deleted"]), ["k", "never there"])
            self.assertEqual(api("get-bucket-location", "--bucket", self.bucket).get("LocationConstraint"), None)

    def test_presigned_url(self):
        curl = suite.need("curl")
        self.s3.put(self.bucket, "a key + more", b"presigned")
        # Version 1 of the CLI presigns with the retired signature version 2 unless told otherwise.
        (self.tmp / "no-config").write_text("[default]\ns3 =\n    signature_version = s3v4\n")
        for aws in self.each_aws():
            url = aws("s3", "presign", f"s3://{self.bucket}/a key + more").stdout.strip()
            self.assertEqual(suite.run([curl, "-sS", "--fail", url]).stdout, "presigned")
            done = suite.run([curl, "-sS", "-o", os.devnull, "-w", "%{http_code}", url[:-1] + ("0" if url[-1] != "0" else "1")])
            self.assertEqual(done.stdout, "403")


if __name__ == "__main__":
    suite.main()
