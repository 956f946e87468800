#!/usr/bin/env python3
"""What S3 promises about objects: conditions, ranges, copies, presigned URLs, buckets (P26, P28, P30, P32)."""

import concurrent.futures
import hashlib
import pathlib
import sys
import threading
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import payload, s3, suite  # noqa: E402

MIB = 1 << 20


class Conditions(suite.NodeTest):
    def test_one_winner_of_parallel_creations_p26(self):
        workers, rounds = 16, 40
        for number in range(rounds):
            key = f"once {number}"
            barrier = threading.Barrier(workers)

            def put(worker):
                barrier.wait()
                return self.s3.request("PUT", self.bucket, key, body=f"{number} by {worker}".encode() * 100, headers={"if-none-match": "*"})

            with concurrent.futures.ThreadPoolExecutor(workers) as pool:
                replies = list(pool.map(put, range(workers)))
            winners = [w for w, r in enumerate(replies) if r.status == 200]
            self.assertEqual(len(winners), 1, [str(r)[:80] for r in replies])
            for reply in replies:
                if reply.status != 200:
                    self.assertIn((reply.status, reply.code), [(412, "PreconditionFailed"), (409, "ConditionalRequestConflict")])
            self.assertEqual(self.s3.get(self.bucket, key).body, f"{number} by {winners[0]}".encode() * 100)

    def test_if_match_on_put(self):
        first = self.s3.put(self.bucket, "k", b"first").etag
        second = self.s3.put(self.bucket, "k", b"second").etag
        self.assert_code(self.s3.request("PUT", self.bucket, "k", body=b"x", headers={"if-match": f'"{first}"'}), 412, "PreconditionFailed")
        self.assert_code(self.s3.request("PUT", self.bucket, "none", body=b"x", headers={"if-match": f'"{first}"'}), 404, "NoSuchKey")
        self.assertEqual(self.s3.get(self.bucket, "k").body, b"second")
        self.assertEqual(self.s3.request("PUT", self.bucket, "k", body=b"third", headers={"if-match": f'"{second}"'}).status, 200)

    def test_any_object_will_do(self):
        """If-Match: * asks for an object, whichever."""
        star = {"if-match": "*"}
        for method in ("PUT", "DELETE"):
            self.assert_code(self.s3.request(method, self.bucket, "k", headers=star), 404, "NoSuchKey")
        self.s3.put(self.bucket, "k", b"old")
        self.assertEqual(self.s3.request("PUT", self.bucket, "k", body=b"new", headers=star).status, 200)
        self.assertEqual(self.s3.get(self.bucket, "k").body, b"new")
        self.assertEqual(self.s3.request("DELETE", self.bucket, "k", headers=star).status, 204)
        self.assertEqual(self.s3.head(self.bucket, "k").status, 404)

    def test_writers_and_a_deleter_with_the_same_etag_p26(self):
        for number in range(25):
            match = {"if-match": f'"{self.s3.put(self.bucket, "k", b"round %d" % number).etag}"'}
            barrier = threading.Barrier(6)

            def change(worker):
                barrier.wait()
                if worker == 0:
                    return self.s3.request("DELETE", self.bucket, "k", headers=match)
                return self.s3.request("PUT", self.bucket, "k", body=b"%d by %d" % (number, worker), headers=match)

            with concurrent.futures.ThreadPoolExecutor(6) as pool:
                replies = list(pool.map(change, range(6)))
            winners = [w for w, r in enumerate(replies) if r.status in (200, 204)]
            self.assertEqual(len(winners), 1, [str(r)[:80] for r in replies])
            for reply in replies:
                if reply.status not in (200, 204):
                    self.assertIn((reply.status, reply.code), [(412, "PreconditionFailed"), (409, "ConditionalRequestConflict"), (404, "NoSuchKey")])
            left = self.s3.request("GET", self.bucket, "k")
            self.assertEqual((left.status, left.body) if left.status == 200 else left.status,
                             404 if winners == [0] else (200, b"%d by %d" % (number, winners[0])))

    def test_compare_and_swap_by_many(self):
        self.s3.put(self.bucket, "counter", b"0")
        done = []

        def add_five(_):
            for _ in range(5):
                while True:
                    got = self.s3.get(self.bucket, "counter")
                    reply = self.s3.request("PUT", self.bucket, "counter", body=b"%d" % (int(got.body) + 1), headers={"if-match": f'"{got.etag}"'})
                    if reply.status == 200:
                        done.append(1)
                        break
                    self.assertIn(reply.status, (409, 412), reply)

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(add_five, range(8)))
        self.assertEqual(self.s3.get(self.bucket, "counter").body, b"40")
        self.assertEqual(len(done), 40)

    def test_conditional_reads(self):
        etag = self.s3.put(self.bucket, "k", b"body").etag
        modified = self.s3.head(self.bucket, "k").headers["last-modified"]
        past, future = "Mon, 01 Jan 2001 00:00:00 GMT", "Thu, 01 Jan 2099 00:00:00 GMT"
        for method in ("GET", "HEAD"):
            for headers, status in [({"if-match": f'"{etag}"'}, 200), ({"if-match": '"0"'}, 412), ({"if-match": "*"}, 200),
                                    ({"if-none-match": f'"{etag}"'}, 304), ({"if-none-match": '"0"'}, 200), ({"if-none-match": "*"}, 304),
                                    ({"if-none-match": f'"0", "{etag}"'}, 304), ({"if-modified-since": modified}, 304), ({"if-modified-since": past}, 200),
                                    ({"if-unmodified-since": past}, 412), ({"if-unmodified-since": future}, 200),
                                    ({"if-match": f'"{etag}"', "if-unmodified-since": past}, 200),
                                    ({"if-none-match": '"0"', "if-modified-since": future}, 200)]:
                reply = self.s3.request(method, self.bucket, "k", headers=headers)
                self.assertEqual(reply.status, status, (method, headers, reply))
                if status == 304:
                    self.assertEqual((reply.etag, reply.body), (etag, b""))

    def test_readers_see_old_or_new_whole(self):
        bodies = {bytes([65 + i]) * (256 * 1024 + i) for i in range(8)}
        self.s3.put(self.bucket, "k", min(bodies))
        stop = threading.Event()

        def write(worker):
            for body in sorted(bodies)[worker::2] * 6:
                self.s3.put(self.bucket, "k", body)

        def read(_):
            seen = 0
            while not stop.is_set():
                got = self.s3.get(self.bucket, "k")
                self.assertIn(got.body, bodies, f"{len(got.body)} bytes of {set(got.body)}")
                self.assertEqual(got.etag, hashlib.md5(got.body).hexdigest())
                seen += 1
            return seen

        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            readers = [pool.submit(read, i) for i in range(4)]
            try:
                list(pool.map(write, range(2)))
            finally:
                stop.set()
            self.assertGreater(sum(r.result() for r in readers), 20)

    def test_an_open_read_survives_overwrite_and_delete(self):
        size = 64 * MIB
        self.s3.put(self.bucket, "k", payload.Stream("old", size))
        other, digest, count = self.node.s3(), hashlib.sha256(), [0]

        def sink(piece):
            if count[0] == 0:  # far more is still to come than buffers hold
                other.put(self.bucket, "k", b"new")
                other.delete(self.bucket, "k")
            count[0] += len(piece)
            digest.update(piece)

        self.s3.get(self.bucket, "k", sink=sink)
        self.assertEqual((count[0], digest.hexdigest()), (size, payload.stream_sha256("old", size)))


class Ranges(suite.NodeTest):
    def test_ranges_p28(self):
        self.s3.put(self.bucket, "ten", b"0123456789")
        self.s3.put(self.bucket, "empty", b"")
        cases = [("bytes=5-15", 206, b"56789", "bytes 5-9/10"), ("bytes=0-0", 206, b"0", "bytes 0-0/10"), ("bytes=3-", 206, b"3456789", "bytes 3-9/10"),
                 ("bytes=-3", 206, b"789", "bytes 7-9/10"), ("bytes=-20", 206, b"0123456789", "bytes 0-9/10"), ("bytes=3-0", 200, b"0123456789", None),
                 ("bytes=abc", 200, b"0123456789", None), ("lines=1-2", 200, b"0123456789", None), ("bytes=10-", 416, None, "bytes */10"),
                 ("bytes=100-200", 416, None, "bytes */10"), ("bytes=-0", 416, None, "bytes */10")]
        for spelling, status, body, content_range in cases:
            for method in ("GET", "HEAD"):
                reply = self.s3.request(method, self.bucket, "ten", headers={"range": spelling})
                self.assertEqual(reply.status, status, (method, spelling, reply))
                if method == "GET":
                    self.assertEqual(reply.code if status == 416 else reply.body, "InvalidRange" if status == 416 else body, spelling)
                elif status != 416:
                    self.assertEqual(int(reply.headers["content-length"]), len(body), spelling)
                self.assertEqual(reply.headers["content-range"], content_range, (method, spelling))
        several = self.s3.request("GET", self.bucket, "ten", headers={"range": "bytes=0-1,5-6"})
        self.assertIn((several.status, several.body), [(200, b"0123456789")])
        self.assertEqual(self.s3.request("GET", self.bucket, "empty", headers={"range": "bytes=0-0"}).status, 416)

    def test_ranges_over_chunk_borders(self):
        data = payload.make("borders", 9 * MIB + 17)
        self.s3.put(self.bucket, "k", data)
        self.s3.multipart(self.bucket, "m", [data[:5 * MIB + 3], data[5 * MIB + 3:]])
        for key in ("k", "m"):
            for start, end in [(0, 1), (4095, 4097), (4 * MIB - 1, 4 * MIB + 1), (4 * MIB, 8 * MIB), (5 * MIB, 5 * MIB + 7), (1, len(data)), (8 * MIB - 5, len(data)),
                               (65535, 65537), (12345, 7654321)]:
                got = self.s3.request("GET", self.bucket, key, headers={"range": f"bytes={start}-{end - 1}"})
                self.assertEqual((got.status, hashlib.sha256(got.body).digest()), (206, hashlib.sha256(data[start:end]).digest()), (key, start, end))

    def test_part_number_reads(self):
        parts = [payload.make("p1", 5 * MIB), payload.make("p2", 100)]
        self.s3.multipart(self.bucket, "m", parts)
        for number, part in enumerate(parts, 1):
            got = self.s3.request("GET", self.bucket, "m", query=[("partNumber", str(number))])
            self.assertEqual((got.status, got.body, got.headers["x-amz-mp-parts-count"]), (206, part, "2"))
        self.assertEqual(self.s3.request("GET", self.bucket, "m", query=[("partNumber", "3")]).status, 416)


class Copies(suite.NodeTest):
    def test_copy_p32(self):
        data = payload.make("copy", 12 * MIB)
        parts = [data[:5 * MIB], data[5 * MIB:10 * MIB], data[10 * MIB:]]
        self.s3.multipart(self.bucket, "m", parts, headers={"content-type": "text/m", "x-amz-meta-a": "1"})
        expected = hashlib.md5(b"".join(hashlib.md5(p).digest() for p in parts)).hexdigest() + "-3"
        self.assertEqual(self.s3.head(self.bucket, "m").etag, expected)
        copied = self.s3.copy(self.bucket, "c", self.bucket, "m")
        self.assertEqual(copied.xml.findtext("ETag").strip('"'), hashlib.md5(data).hexdigest())
        got = self.s3.get(self.bucket, "c")
        self.assertEqual((got.body, got.etag, got.headers["content-type"], got.headers["x-amz-meta-a"]), (data, hashlib.md5(data).hexdigest(), "text/m", "1"))
        self.s3.copy(self.bucket, "c", self.bucket, "m", headers={"x-amz-metadata-directive": "REPLACE", "content-type": "text/c", "x-amz-meta-b": "2"})
        head = self.s3.head(self.bucket, "c")
        self.assertEqual((head.headers["content-type"], head.headers["x-amz-meta-a"], head.headers["x-amz-meta-b"]), ("text/c", None, "2"))
        # Onto itself: only with something to change.
        refused = self.s3.request("PUT", self.bucket, "c", headers={"x-amz-copy-source": f"/{self.bucket}/c"})
        self.assert_code(refused, 400, "InvalidRequest")
        self.s3.copy(self.bucket, "c", self.bucket, "c", headers={"x-amz-metadata-directive": "REPLACE", "x-amz-meta-c": "3"})
        self.assertEqual((self.s3.get(self.bucket, "c").body, self.s3.head(self.bucket, "c").headers["x-amz-meta-c"]), (data, "3"))

    def test_copy_conditions_and_errors(self):
        etag = self.s3.put(self.bucket, "src", b"source").etag
        source = {"x-amz-copy-source": f"/{self.bucket}/src"}
        for more, status in [({"x-amz-copy-source-if-match": f'"{etag}"'}, 200), ({"x-amz-copy-source-if-match": '"0"'}, 412),
                             ({"x-amz-copy-source-if-none-match": f'"{etag}"'}, 412), ({"x-amz-copy-source-if-none-match": '"0"'}, 200)]:
            self.assertEqual(self.s3.request("PUT", self.bucket, "dst", headers={**source, **more}).status, status, more)
        self.assert_code(self.s3.request("PUT", self.bucket, "dst", headers={"x-amz-copy-source": f"/{self.bucket}/missing"}), 404, "NoSuchKey")
        self.assert_code(self.s3.request("PUT", self.bucket, "dst", headers={"x-amz-copy-source": "/no-such-bucket/x"}), 404, "NoSuchBucket")
        self.assertEqual(self.s3.request("PUT", self.bucket, "dst", headers={"x-amz-copy-source": "nonsense"}).status, 400)
        self.s3.delete(self.bucket, "src")
        self.assertEqual(self.s3.get(self.bucket, "dst").body, b"source", "a copy doesn't depend on its source")

    def test_part_copy(self):
        data = payload.make("part copy", 11 * MIB)
        self.s3.put(self.bucket, "src", data)
        upload = self.s3.ok("POST", self.bucket, "dst", query=[("uploads", "")]).xml.findtext("UploadId")
        ranges = [(0, 5 * MIB + 1), (5 * MIB + 1, 11 * MIB)]
        etags = []
        for number, (start, end) in enumerate(ranges, 1):
            reply = self.s3.ok("PUT", self.bucket, "dst", query=[("partNumber", str(number)), ("uploadId", upload)], headers={
                "x-amz-copy-source": f"/{self.bucket}/src", "x-amz-copy-source-range": f"bytes={start}-{end - 1}"})
            etags.append(reply.xml.findtext("ETag").strip('"'))
            self.assertEqual(etags[-1], hashlib.md5(data[start:end]).hexdigest())
        for bad in ("bytes=5-99999999", "bytes=x", "5-6", "bytes=5-"):
            reply = self.s3.request("PUT", self.bucket, "dst", query=[("partNumber", "3"), ("uploadId", upload)], headers={
                "x-amz-copy-source": f"/{self.bucket}/src", "x-amz-copy-source-range": bad})
            self.assert_code(reply, 400, ["InvalidArgument", "InvalidRange"])
        self.s3.complete(self.bucket, "dst", upload, list(enumerate(etags, 1)))
        self.assertEqual(self.s3.get(self.bucket, "dst").body, data)


class Presigned(suite.NodeTest):
    def ask(self, target, host=None, headers=None, method="GET", body=b""):
        headers = {"host": host or self.s3.netloc, **(headers or {})}
        if body:
            headers["content-length"] = str(len(body))
        return self.s3.send(method, target, headers, body)

    def test_presigned_p30(self):
        self.s3.put(self.bucket, "k", b"body")
        for host, signed_for in [(self.s3.netloc, self.s3.netloc), ("h:80", "h"), ("h", "h:80"), ("h", "h")]:
            reply = self.ask(self.s3.presigned("GET", self.bucket, "k", host=signed_for), host)
            self.assertEqual((reply.status, reply.body), (200, b"body"), (host, signed_for, reply))
        self.assertEqual(self.ask(self.s3.presigned("GET", self.bucket, "k", expires=604800)).status, 200)
        for expires in (604801, -1, "soon"):
            self.assert_code(self.ask(self.s3.presigned("GET", self.bucket, "k", expires=expires)), 400, "AuthorizationQueryParametersError")
        self.assertIn(self.ask(self.s3.presigned("GET", self.bucket, "k", expires=0)).status, (400, 403))
        self.assert_code(self.ask(self.s3.presigned("GET", self.bucket, "k", expires=60, stamp=s3.now_stamp(-61))), 403, "AccessDenied")
        self.assertEqual(self.ask(self.s3.presigned("GET", self.bucket, "k", expires=60, stamp=s3.now_stamp(-55))).status, 200)
        self.assert_code(self.ask(self.s3.presigned("GET", self.bucket, "k", expires=60, stamp=s3.now_stamp(1200))), 403,
                         ["AccessDenied", "RequestTimeTooSkewed"])
        target = self.s3.presigned("GET", self.bucket, "k")
        self.assert_code(self.ask(target + "&response-content-type=text/evil"), 403, "SignatureDoesNotMatch")
        self.assert_code(self.ask(target.replace("/k?", "/other?")), 403, "SignatureDoesNotMatch")
        self.assert_code(self.ask(target, method="DELETE"), 403, "SignatureDoesNotMatch")
        self.assert_code(self.ask(target.replace("X-Amz-Credential=", "X-Amz-Credential=NOBODY")), 403, "InvalidAccessKeyId")

    def test_presigned_put_with_signed_header(self):
        target = self.s3.presigned("PUT", self.bucket, "k", headers={"content-type": "text/a"})
        self.assert_code(self.ask(target, headers={"content-type": "text/b"}, method="PUT", body=b"x"), 403, "SignatureDoesNotMatch")
        self.assertEqual(self.ask(target, headers={"content-type": "text/a"}, method="PUT", body=b"x").status, 200)
        self.assertEqual(self.s3.head(self.bucket, "k").headers["content-type"], "text/a")

    def test_response_overrides(self):
        self.s3.put(self.bucket, "k", b"body")
        query = [("response-content-type", "a/b"), ("response-content-disposition", 'attachment; filename="x y"')]
        reply = self.ask(self.s3.presigned("GET", self.bucket, "k", query))
        self.assertEqual((reply.headers["content-type"], reply.headers["content-disposition"]), ("a/b", 'attachment; filename="x y"'))


class Signatures(suite.NodeTest):
    def test_refusals(self):
        self.s3.put(self.bucket, "k", b"secret")
        anonymous = self.s3.send("GET", f"/{self.bucket}/k", {"host": self.s3.netloc})
        self.assert_code(anonymous, 403, "AccessDenied")
        self.assertNotIn(b"secret", anonymous.body)
        for seconds in (-16 * 60, 16 * 60):
            self.assert_code(self.s3.request("GET", self.bucket, "k", stamp=s3.now_stamp(seconds)), 403, "RequestTimeTooSkewed")
        self.assertEqual(self.s3.request("GET", self.bucket, "k", stamp=s3.now_stamp(-14 * 60)).status, 200)
        wrong = s3.Client(self.node.endpoint(), self.node.access_key, "wrong")
        self.assert_code(wrong.request("GET", self.bucket, "k"), 403, "SignatureDoesNotMatch")
        self.assert_code(s3.Client(self.node.endpoint(), "NOBODY", "wrong").request("GET", self.bucket, "k"), 403, "InvalidAccessKeyId")
        for header in ("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA256 Credential=a", "AWS4-HMAC-SHA256 Credential=a/b/c, SignedHeaders=host, Signature=x",
                       "AWS " + self.node.access_key + ":abc=", "Basic YTpi", "AWS4-HMAC-SHA256 " + "," * 5000):
            reply = self.s3.send("GET", f"/{self.bucket}/k", {"host": self.s3.netloc, "authorization": header, "x-amz-date": s3.now_stamp()})
            self.assertIn(reply.status, (400, 403), header[:80])
        region = s3.Client(self.node.endpoint(), self.node.access_key, self.node.secret_key, region="eu-west-9")
        # Any region is taken: there is one place here, and clients are configured for all kinds of regions.
        self.assertEqual(region.request("GET", self.bucket, "k").status, 200)

    def test_replies_carry_request_ids_and_no_surprises(self):
        reply = self.s3.put(self.bucket, "k", b"x")
        self.assertTrue(reply.headers["x-amz-request-id"])
        self.assertTrue(reply.headers["date"])
        missing = self.s3.request("GET", self.bucket, "missing")
        self.assertEqual(missing.xml.tag, "Error")
        self.assertEqual(missing.xml.findtext("RequestId"), missing.headers["x-amz-request-id"])
        self.assertEqual(missing.headers["content-type"], "application/xml")


class Buckets(suite.NodeTest):
    def test_life_of_a_bucket(self):
        self.assertEqual(self.s3.request("HEAD", self.bucket).status, 200)
        again = self.s3.request("PUT", self.bucket)
        self.assertIn((again.status, again.code), [(200, ""), (409, "BucketAlreadyOwnedByYou")])
        self.s3.put(self.bucket, "k", b"x")
        self.assert_code(self.s3.request("DELETE", self.bucket), 409, "BucketNotEmpty")
        self.s3.delete(self.bucket, "k")
        self.assertEqual(self.s3.request("DELETE", self.bucket).status, 204)
        self.assertEqual(self.s3.request("HEAD", self.bucket).status, 404)
        for method, key in (("GET", None), ("DELETE", None), ("GET", "k"), ("PUT", "k"), ("DELETE", "k")):
            self.assert_code(self.s3.request(method, self.bucket, key, body=b""), 404, "NoSuchBucket")

    def test_a_new_bucket_of_an_old_name_is_empty(self):
        self.s3.put(self.bucket, "k", b"old")
        upload = self.s3.ok("POST", self.bucket, "k2", query=[("uploads", "")]).xml.findtext("UploadId")
        self.s3.delete(self.bucket, "k")
        self.assertEqual(self.s3.request("DELETE", self.bucket).status, 204)
        self.s3.create_bucket(self.bucket)
        self.assertEqual(list(self.s3.list_keys(self.bucket)), [])
        reply = self.s3.request("PUT", self.bucket, "k2", query=[("partNumber", "1"), ("uploadId", upload)], body=b"x")
        self.assert_code(reply, 404, "NoSuchUpload")

    def test_names(self):
        for bad in ("ab", "Upper", "under_score", "dot..dot", "-dash", "dash-", "192.168.1.1", "x" * 64, "a b"):
            self.assert_code(self.s3.request("PUT", bad), 400, "InvalidBucketName")
        for good in ("abc", "a.b.c", "x" * 63, "1-2-3"):
            self.s3.create_bucket(good)
            self.assertEqual(self.s3.request("DELETE", good).status, 204)

    def test_list_buckets(self):
        names = [b.text for b in self.s3.ok("GET").xml.iterfind("Buckets/Bucket/Name")]
        self.assertIn(self.bucket, names)
        self.assertEqual(names, sorted(names))

    def test_what_isnt_there_yet_says_so(self):
        for query in ("versioning", "acl", "policy", "lifecycle", "cors", "tagging", "encryption", "object-lock", "replication"):
            reply = self.s3.request("GET", self.bucket, query=[(query, "")])
            # Either a truthful answer or a clear error: never a listing, never a 5xx other than NotImplemented.
            self.assertTrue(reply.status in (200, 404, 400, 403) or reply.code == "NotImplemented", (query, reply))
            self.assertNotIn(b"ListBucketResult", reply.body, query)
        self.assert_code(self.s3.request("PUT", self.bucket, query=[("lifecycle", "")], body=b"<LifecycleConfiguration/>"), 501, "NotImplemented")
        self.assertIn(self.s3.request("POST", self.bucket, "k", query=[("select", "")]).code, ("NotImplemented", "MethodNotAllowed"))
        self.assertEqual(self.s3.request("PATCH", self.bucket, "k").status, 405)

    def test_location(self):
        reply = self.s3.ok("GET", self.bucket, query=[("location", "")])
        self.assertEqual((reply.xml.tag, (reply.xml.text or "").strip()), ("LocationConstraint", ""))


class NeverAWrongAction(suite.NodeTest):
    """What asks for more than there is must not do less in silence."""

    def test_parameters_that_change_a_write(self):
        self.s3.put(self.bucket, "k", b"precious")
        for query in ([("partNumber", "1")], [("versionId", "x")], [("renameObject", "")], [("uploadId", "")], [("uploadId", "x"), ("partNumber", "1")],
                      [("acl", "")], [("tagging", "")], [("acl", ""), ("tagging", "")]):
            reply = self.s3.request("PUT", self.bucket, "k", query=query, body=b"overwritten")
            self.assertIn(reply.status, (400, 404, 501), (query, reply))
            self.assertEqual(self.s3.get(self.bucket, "k").body, b"precious", query)

    def test_headers_that_ask_for_more(self):
        for name, value in (("x-amz-server-side-encryption", "AES256"), ("x-amz-acl", "public-read"), ("x-amz-grant-read", "id=x"), ("x-amz-tagging", "a=b"),
                            ("x-amz-object-lock-mode", "COMPLIANCE")):
            for method, query in (("PUT", []), ("POST", [("uploads", "")])):
                self.assert_code(self.s3.request(method, self.bucket, "k", query=query, headers={name: value}), 501, "NotImplemented")
        self.s3.put(self.bucket, "k", b"x")
        self.assert_code(self.s3.request("DELETE", self.bucket, "k", headers={"x-amz-if-match-size": "2"}), 501, "NotImplemented")
        self.assertEqual(self.s3.head(self.bucket, "k").status, 200)
        self.assert_code(self.s3.request("PUT", "public-bucket", headers={"x-amz-acl": "public-read"}), 501, "NotImplemented")

    def test_a_path_without_a_bucket(self):
        for path in (f"//{self.bucket}/k", "//", f"/%2F{self.bucket}"):
            headers = self.s3.signer.headers("GET", urllib.parse.unquote(path), (), {"host": self.s3.netloc}, s3.EMPTY_SHA256)
            self.assert_code(self.s3.send("GET", path, headers), 400, "InvalidURI")


class Metadata(suite.NodeTest):
    def test_headers_come_back(self):
        headers = {"content-type": "text/x; charset=utf-8", "cache-control": "max-age=5", "content-disposition": "inline", "content-language": "de, en",
                   "expires": "Thu, 01 Dec 2094 16:00:00 GMT", "content-encoding": "br", "x-amz-meta-a": "1", "x-amz-meta-long": "v" * 1500,
                   "x-amz-meta-utf": "=?UTF-8?B?w7w=?="}
        self.s3.put(self.bucket, "k", b"x", headers=headers)
        for reply in (self.s3.head(self.bucket, "k"), self.s3.get(self.bucket, "k")):
            for name, value in headers.items():
                self.assertEqual(reply.headers[name], value, name)
        self.s3.put(self.bucket, "k", b"y")
        self.assertIsNone(self.s3.head(self.bucket, "k").headers["x-amz-meta-a"], "an overwrite replaces metadata, too")
        self.assertEqual(self.s3.head(self.bucket, "k").headers["content-type"], "binary/octet-stream")
        reply = self.s3.request("PUT", self.bucket, "big", body=b"x", headers={"x-amz-meta-a": "v" * 2100})
        self.assert_code(reply, 400, "MetadataTooLarge")

    def test_unquoted_plus_in_query(self):
        # "+" in a query is a space to AWS's SDKs when they decode, and they send %20 themselves.
        self.s3.put(self.bucket, "a b", b"1")
        self.s3.put(self.bucket, "a+b", b"2")
        page = self.s3.list_page(self.bucket, prefix="a+")
        self.assertEqual([k.text for k in page.iterfind("Contents/Key")], ["a+b"])
        self.assertEqual(urllib.parse.unquote_plus(self.s3.list_page(self.bucket, prefix="a+", encoding_type="url").findtext("Prefix")), "a+")


if __name__ == "__main__":
    suite.main()
