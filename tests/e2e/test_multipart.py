#!/usr/bin/env python3
"""Multipart uploads, with the retries and mistakes that clients make (P27)."""

import concurrent.futures
import hashlib
import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import payload, s3, suite  # noqa: E402

MIB = 1 << 20


class Multipart(suite.NodeTest):
    def begin(self, key="k", **kwargs):
        return self.s3.ok("POST", self.bucket, key, query=[("uploads", "")], **kwargs).xml.findtext("UploadId")

    def part(self, upload, number, body, key="k", **kwargs):
        return self.s3.request("PUT", self.bucket, key, query=[("partNumber", str(number)), ("uploadId", upload)], body=body, **kwargs)

    def finish(self, upload, parts, key="k", body=None, **kwargs):
        return self.s3.request("POST", self.bucket, key, query=[("uploadId", upload)], body=s3.complete_xml(parts) if body is None else body, **kwargs)

    def test_parts_in_any_order_at_once(self):
        upload = self.begin(headers={"content-type": "text/m", "x-amz-meta-a": "1"})
        parts = {n: payload.make(f"part {n}", 5 * MIB + n) for n in (1, 2, 5, 900)}
        parts[10000] = b"the last may be small"
        with concurrent.futures.ThreadPoolExecutor(5) as pool:
            etags = dict(zip(parts, pool.map(lambda n: self.part(upload, n, parts[n]).etag, parts)))
        for number, body in parts.items():
            self.assertEqual(etags[number], hashlib.md5(body).hexdigest())
        self.assertEqual(self.s3.head(self.bucket, "k").status, 404, "nothing is visible before the completion")
        reply = self.finish(upload, sorted(etags.items()))
        whole = b"".join(parts[n] for n in sorted(parts))
        etag = hashlib.md5(b"".join(hashlib.md5(parts[n]).digest() for n in sorted(parts))).hexdigest() + f"-{len(parts)}"
        self.assertEqual((reply.status, reply.xml.findtext("ETag").strip('"')), (200, etag), reply)
        got = self.s3.get(self.bucket, "k")
        self.assertEqual((got.body, got.etag, got.headers["content-type"], got.headers["x-amz-meta-a"]), (whole, etag, "text/m", "1"))

    def test_completing_again_p27(self):
        upload = self.begin()
        etags = [(1, self.part(upload, 1, payload.make("a", 5 * MIB)).etag), (2, self.part(upload, 2, b"end").etag)]
        first = self.finish(upload, etags)
        again = self.finish(upload, etags)
        self.assertEqual((first.status, again.status), (200, 200), again)
        self.assertEqual(first.xml.findtext("ETag"), again.xml.findtext("ETag"))
        self.assertEqual(list(self.s3.list_keys(self.bucket)), ["k"])
        self.assert_code(self.part(upload, 3, b"x"), 404, "NoSuchUpload")
        self.assertEqual(list(self.s3.ok("GET", self.bucket, query=[("uploads", "")]).xml.iterfind("Upload")), [])

    def test_mistakes_p27(self):
        upload = self.begin()
        one, two = self.part(upload, 1, payload.make("a", 5 * MIB)).etag, self.part(upload, 2, payload.make("b", 4 * MIB)).etag
        three = self.part(upload, 3, b"end").etag
        for unknown in ("0" * 32, "nonsense", "../x"):
            self.assert_code(self.finish(unknown, [(1, one)]), 404, "NoSuchUpload")
            self.assert_code(self.part(unknown, 1, b"x"), 404, "NoSuchUpload")
        self.assert_code(self.finish(upload, [(2, two), (1, one)]), 400, "InvalidPartOrder")
        self.assert_code(self.finish(upload, [(1, one), (1, one)]), 400, "InvalidPartOrder")
        self.assert_code(self.finish(upload, [(1, one), (2, two), (3, three)]), 400, "EntityTooSmall")
        self.assert_code(self.finish(upload, [(1, two)]), 400, "InvalidPart")
        self.assert_code(self.finish(upload, [(1, one), (7, one)]), 400, "InvalidPart")
        for body in (b"<CompleteMultipartUpload/>", b"", b"<CompleteMultipartUpload>", b"text"):
            self.assert_code(self.finish(upload, [], body=body), 400, ["MalformedXML", "MissingRequestBodyError"])
        for number in (0, 10001, -1, "x"):
            self.assert_code(self.part(upload, number, b"x"), 400, "InvalidArgument")
        self.assert_code(self.finish(upload, [(1, one)], key="other"), 404, "NoSuchUpload")
        self.assertEqual(self.s3.head(self.bucket, "k").status, 404)
        # After all that the upload is still good.
        self.assertEqual(self.finish(upload, [(1, one), (3, three)]).status, 200)
        self.assertEqual(self.s3.get(self.bucket, "k").body, payload.make("a", 5 * MIB) + b"end")

    def test_completions_at_once_p27(self):
        upload = self.begin()
        etags = [(1, self.part(upload, 1, payload.make("a", 5 * MIB)).etag), (2, self.part(upload, 2, b"end").etag)]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda _: self.finish(upload, etags), range(8)))
        self.assertEqual({(r.status, r.xml.tag, r.xml.findtext("ETag")) for r in replies},
                         {(200, "CompleteMultipartUploadResult", f'"{self.s3.head(self.bucket, "k").etag}"')})
        self.assertEqual(self.s3.get(self.bucket, "k").body, payload.make("a", 5 * MIB) + b"end")

    def test_abort_against_complete(self):
        for number in range(20):
            key = f"k{number}"
            upload = self.begin(key)
            etag = self.part(upload, 1, b"x", key=key).etag
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                aborted = pool.submit(self.s3.request, "DELETE", self.bucket, key, query=[("uploadId", upload)])
                completed = pool.submit(self.finish, upload, [(1, etag)], key)
            aborted, completed = aborted.result(), completed.result()
            self.assertIn((aborted.status, completed.status), [(204, 404), (404, 200)], (aborted, completed))
            self.assertEqual(self.s3.head(self.bucket, key).status, completed.status)

    def test_abort_while_parts_arrive(self):
        upload = self.begin()
        began = threading.Event()

        def send(number):
            began.set()
            return [self.part(upload, number * 100 + i, payload.make(f"{number} {i}", MIB)) for i in range(6)]

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            senders = [pool.submit(send, n) for n in range(1, 5)]
            began.wait()
            self.assertEqual(self.s3.request("DELETE", self.bucket, "k", query=[("uploadId", upload)]).status, 204)
            for reply in (r for sender in senders for r in sender.result()):
                self.assertIn((reply.status, reply.code), [(200, ""), (404, "NoSuchUpload")])
        self.assert_code(self.s3.request("GET", self.bucket, "k", query=[("uploadId", upload)]), 404, "NoSuchUpload")
        self.assertEqual(self.s3.request("DELETE", self.bucket).status, 204)

    def test_part_sent_again_replaces(self):
        upload = self.begin()
        first = self.part(upload, 1, b"first").etag
        second = self.part(upload, 1, b"second").etag
        self.assert_code(self.finish(upload, [(1, first)]), 400, "InvalidPart")
        self.assertEqual(self.finish(upload, [(1, second)]).status, 200)
        self.assertEqual(self.s3.get(self.bucket, "k").body, b"second")

    def test_abort_and_list(self):
        upload = self.begin()
        for number in range(1, 8):
            self.part(upload, number, b"x" * number)
        seen, marker = [], "0"
        while True:
            page = self.s3.ok("GET", self.bucket, "k", query=[("uploadId", upload), ("max-parts", "3"), ("part-number-marker", marker)]).xml
            seen += [(int(p.findtext("PartNumber")), int(p.findtext("Size"))) for p in page.iterfind("Part")]
            if page.findtext("IsTruncated") != "true":
                break
            marker = page.findtext("NextPartNumberMarker")
        self.assertEqual(seen, [(n, n) for n in range(1, 8)])
        self.assertEqual(self.s3.request("DELETE", self.bucket, "k", query=[("uploadId", upload)]).status, 204)
        for reply in (self.part(upload, 1, b"x"), self.finish(upload, [(1, "0" * 32)]), self.s3.request("GET", self.bucket, "k", query=[("uploadId", upload)]),
                      self.s3.request("DELETE", self.bucket, "k", query=[("uploadId", upload)])):
            self.assert_code(reply, 404, "NoSuchUpload")

    def test_overwrite_by_completion_is_atomic_and_conditional(self):
        self.s3.put(self.bucket, "k", b"old")
        upload = self.begin()
        etag = self.part(upload, 1, b"new").etag
        self.assertEqual(self.s3.get(self.bucket, "k").body, b"old")
        refused = self.finish(upload, [(1, etag)], headers={"if-none-match": "*"})
        self.assert_code(refused, 412, "PreconditionFailed")
        self.assertEqual(self.s3.get(self.bucket, "k").body, b"old")
        self.assertEqual(self.finish(upload, [(1, etag)]).status, 200)
        self.assertEqual(self.s3.get(self.bucket, "k").body, b"new")

    def test_a_failed_part_leaves_no_part(self):
        upload = self.begin()
        self.assert_code(self.part(upload, 1, b"x", headers={"content-md5": "AAAAAAAAAAAAAAAAAAAAAA=="}), 400, "BadDigest")
        page = self.s3.ok("GET", self.bucket, "k", query=[("uploadId", upload)]).xml
        self.assertEqual(list(page.iterfind("Part")), [])

    def test_many_small_uploads_leave_nothing(self):
        for index in range(50):
            upload = self.begin(f"u{index}")
            self.part(upload, 1, b"x" * 5000, key=f"u{index}")
            self.s3.ok("DELETE", self.bucket, f"u{index}", query=[("uploadId", upload)])
        self.assertEqual(list(self.s3.ok("GET", self.bucket, query=[("uploads", "")]).xml.iterfind("Upload")), [])
        self.assertEqual(self.s3.request("DELETE", self.bucket).status, 204)


if __name__ == "__main__":
    suite.main()
