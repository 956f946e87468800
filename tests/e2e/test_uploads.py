#!/usr/bin/env python3
"""How bodies arrive on the wire, spelled out byte by byte: aws-chunked with and without signatures and trailers, checksums,
lengths (P18, P19, P21, P31)."""

import base64
import binascii
import hashlib
import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import payload, raw, s3, suite  # noqa: E402

HELLO = b"hello world"
HELLO_MD5 = "5eb63bbbe01eeed093cb22bb8f5acdc3"
HELLO_CRC32 = base64.b64encode(binascii.crc32(HELLO).to_bytes(4, "big")).decode()
UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
SIGNED = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
SIGNED_TRAILER = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"


def chunked(pieces, trailers=(), upper=False):
    out = bytearray()
    for piece in [*pieces, b""]:
        out += (f"{len(piece):X}" if upper else f"{len(piece):x}").encode() + b"\r\n" + piece + (b"\r\n" if piece else b"")
    return bytes(out) + b"".join(f"{n}:{v}\r\n".encode() for n, v in trailers) + b"\r\n"


class Uploads(suite.NodeTest):
    def put_chunked(self, key, body, decoded_length, payload_hash=UNSIGNED_TRAILER, trailer="x-amz-checksum-crc32", **more):
        headers = {"content-encoding": "aws-chunked", "x-amz-decoded-content-length": str(decoded_length),
                   **({"x-amz-trailer": trailer} if trailer else {}), **more}
        return self.s3.request("PUT", self.bucket, key, headers=headers, body=body, payload_hash=payload_hash)

    def assert_hello(self, key, response):
        self.assertEqual(response.status, 200, response)
        self.assertEqual(response.etag, HELLO_MD5)
        got = self.s3.get(self.bucket, key)
        self.assertEqual((got.body, got.headers["content-length"], got.etag), (HELLO, "11", HELLO_MD5))
        self.assertNotIn("aws-chunked", got.headers.get("content-encoding", ""))

    # -- P19: framing is never content

    def test_unsigned_trailer(self):
        body = chunked([HELLO], [("x-amz-checksum-crc32", HELLO_CRC32)])
        self.assertEqual(body, b"b\r\nhello world\r\n0\r\nx-amz-checksum-crc32:DUoRhQ==\r\n\r\n")
        self.assert_hello("k", self.put_chunked("k", body, 11))
        self.assert_hello("upper", self.put_chunked("upper", chunked([HELLO], [("x-amz-checksum-crc32", HELLO_CRC32)], upper=True), 11))
        head = self.s3.head(self.bucket, "k", headers={"x-amz-checksum-mode": "ENABLED"})
        self.assertEqual(head.headers["x-amz-checksum-crc32"], HELLO_CRC32)

    def test_the_stream_split_after_every_byte(self):
        body = chunked([HELLO], [("x-amz-checksum-crc32", HELLO_CRC32)])
        target = f"/{self.bucket}/split"
        headers = self.s3.signer.headers("PUT", target, (), {
            "host": self.s3.netloc, "content-encoding": "aws-chunked", "x-amz-decoded-content-length": "11",
            "x-amz-trailer": "x-amz-checksum-crc32", "content-length": str(len(body))}, UNSIGNED_TRAILER)
        with raw.Connection(self.node.address) as connection:
            for cut in range(1, len(body)):
                connection.send(raw.head("PUT", target, headers) + body[:cut])
                connection.pause()
                connection.send(body[cut:])
                reply = connection.response()
                self.assertEqual((reply.status, reply.headers["etag"]), (200, f'"{HELLO_MD5}"'), (cut, reply))
        self.assertEqual(self.s3.get(self.bucket, "split").body, HELLO)

    def test_the_head_split_after_every_byte(self):
        target = f"/{self.bucket}/head"
        headers = self.s3.signer.headers("PUT", target, (), {"host": self.s3.netloc, "content-length": "11"}, hashlib.sha256(HELLO).hexdigest())
        message = raw.head("PUT", target, headers) + HELLO
        with raw.Connection(self.node.address) as connection:
            for cut in range(1, len(message), 3):
                connection.send(message[:cut])
                connection.pause()
                connection.send(message[cut:])
                self.assertEqual(connection.response().status, 200, cut)

    def test_chunk_sizes(self):
        data = payload.make("chunks", 200_000)
        crc = base64.b64encode(binascii.crc32(data).to_bytes(4, "big")).decode()
        for size in (1000, 4096, 8192, 65536, 65537, 200_000):
            pieces = [data[i:i + size] for i in range(0, len(data), size)]
            self.assertEqual(self.put_chunked(f"c{size}", chunked(pieces, [("x-amz-checksum-crc32", crc)]), len(data)).status, 200, size)
            self.assertEqual(self.s3.get(self.bucket, f"c{size}").body, data, size)
        single = [data[i:i + 1] for i in range(300)]
        crc = base64.b64encode(binascii.crc32(data[:300]).to_bytes(4, "big")).decode()
        self.assertEqual(self.put_chunked("one", chunked(single, [("x-amz-checksum-crc32", crc)]), 300).status, 200)
        self.assertEqual(self.s3.get(self.bucket, "one").body, data[:300])

    def test_chunked_with_unsigned_payload_or_no_trailer(self):
        self.assert_hello("u", self.put_chunked("u", chunked([HELLO], [("x-amz-checksum-crc32", HELLO_CRC32)]), 11, "UNSIGNED-PAYLOAD"))
        self.assert_hello("n", self.put_chunked("n", chunked([HELLO]), 11, trailer=None))

    def test_framing_that_nothing_announces_is_refused_p19(self):
        body = chunked([HELLO], [("x-amz-checksum-crc32", HELLO_CRC32)])
        for headers in ({"x-amz-trailer": "x-amz-checksum-crc32"}, {"x-amz-decoded-content-length": "11"}):
            self.assert_code(self.s3.request("PUT", self.bucket, "k", body=body, headers=headers, payload_hash=s3.UNSIGNED), 400, "InvalidRequest")
        self.assertEqual(self.s3.head(self.bucket, "k").status, 404)

    def test_other_content_encoding_is_kept(self):
        reply = self.s3.request("PUT", self.bucket, "gz", body=chunked([HELLO], [("x-amz-checksum-crc32", HELLO_CRC32)]), headers={
            "content-encoding": "gzip,aws-chunked", "x-amz-decoded-content-length": "11", "x-amz-trailer": "x-amz-checksum-crc32"},
            payload_hash=UNSIGNED_TRAILER)
        self.assertEqual(reply.status, 200, reply)
        self.assertEqual(self.s3.get(self.bucket, "gz").headers["content-encoding"], "gzip")

    def test_wrong_lengths_and_framing(self):
        good = chunked([HELLO], [("x-amz-checksum-crc32", HELLO_CRC32)])
        self.s3.put(self.bucket, "k", b"before")
        for name, body, length in (("decoded too small", good, 10), ("decoded too large", good, 12)):
            self.assert_code(self.put_chunked("k", body, length), 400, ["IncompleteBody", "InvalidRequest"])
        for name, body in (("no size", b"\r\nhello world\r\n0\r\n\r\n"), ("bad size", b"xyz\r\nhello world\r\n0\r\n\r\n"),
                           ("negative", b"-b\r\nhello world\r\n0\r\n\r\n"), ("huge", b"ffffffffffffffff\r\nhello world\r\n0\r\n\r\n"),
                           ("no end", b"b\r\nhello world\r\n"), ("size too small", b"a\r\nhello world\r\n0\r\n\r\n"),
                           ("endless size line", b"0" * 100_000 + b"b\r\nhello world\r\n0\r\n\r\n")):
            reply = self.put_chunked("k", body, 11)
            self.assertEqual(reply.status, 400, (name, reply))
            self.s3.drop()
        self.assertEqual(self.s3.get(self.bucket, "k").body, b"before")

    # -- signed chunks

    def signed(self, key, chunks, trailers=None, sign_trailer=True, damage=None, decoded=None):
        stamp, target = s3.now_stamp(), f"/{self.bucket}/{key}"
        kind = SIGNED if trailers is None else SIGNED_TRAILER
        total = sum(map(len, chunks))
        headers = {"host": self.s3.netloc, "content-encoding": "aws-chunked", "x-amz-decoded-content-length": str(decoded if decoded is not None else total)}
        if trailers is not None:
            headers["x-amz-trailer"] = ",".join(n for n, _ in trailers)
        headers = self.s3.signer.headers("PUT", target, (), headers, kind, stamp)
        seed = headers["authorization"].rpartition("Signature=")[2]
        body = self.s3.signer.chunked_body(stamp, seed, chunks, trailers, sign_trailer)
        if damage:
            body = damage(body)
        headers["content-length"] = str(len(body))
        try:
            return self.s3.send("PUT", target, headers, body)
        finally:
            if damage:
                self.s3.drop()

    def test_signed_chunks(self):
        data = payload.make("signed", 150_000)
        chunks = [data[i:i + 65536] for i in range(0, len(data), 65536)]
        self.assertEqual(self.signed("s", chunks).status, 200)
        self.assertEqual(self.s3.get(self.bucket, "s").body, data)
        self.assert_hello("h", self.signed("h", [HELLO]))
        self.assert_hello("t", self.signed("t", [HELLO], [("x-amz-checksum-crc32", HELLO_CRC32)]))

    def test_signed_chunks_tampered_with(self):
        self.s3.put(self.bucket, "s", b"before")
        flips = {"payload": lambda b: b.replace(b"hello", b"hellp"), "signature": lambda b: b.replace(b"chunk-signature=", b"chunk-signature=0", 1)[:-1],
                 "missing signature": lambda b: b[:b.index(b";")] + b[b.index(b"\r\n"):], "last chunk": lambda b: b[:-10] + b"0123\r\n\r\n"}
        for name, damage in flips.items():
            reply = self.signed("s", [HELLO], damage=damage)
            self.assertIn(reply.status, (400, 403), (name, reply))
            self.assertIn(reply.code, ("SignatureDoesNotMatch", "IncompleteBody", "InvalidRequest", "InvalidChunkSizeError", "AccessDenied"), name)
        self.assert_code(self.signed("s", [HELLO], damage=flips["payload"]), 403, "SignatureDoesNotMatch")
        self.assertEqual(self.s3.get(self.bucket, "s").body, b"before")

    def test_directory_marker_of_hadoop_p31(self):
        reply = self.signed("dir/", [])
        self.assertEqual(reply.status, 200, reply)
        self.assertEqual(self.s3.head(self.bucket, "dir").status, 404)
        head = self.s3.head(self.bucket, "dir/")
        self.assertEqual((head.status, head.headers["content-length"]), (200, "0"))
        self.s3.put(self.bucket, "dir/x", b"1")
        self.s3.put(self.bucket, "dir", b"an object of the same name")
        for size in (1, 2):
            seen, token = [], {}
            while True:
                page = self.s3.list_page(self.bucket, prefix="dir/", delimiter="/", max_keys=size, **token)
                seen += [c.findtext("Key") for c in page.iterfind("Contents")]
                if page.findtext("IsTruncated") != "true":
                    break
                token = {"continuation_token": page.findtext("NextContinuationToken")}
            self.assertEqual(seen, ["dir/", "dir/x"], size)
        self.assertEqual(self.s3.get(self.bucket, "dir").body, b"an object of the same name")
        # A rename is a copy of each key and a delete: the marker and its children move, the object of the same name stays.
        for key in list(self.s3.list_keys(self.bucket, prefix="dir/")):
            self.s3.copy(self.bucket, "new/" + key.removeprefix("dir/"), self.bucket, key)
            self.s3.delete(self.bucket, key)
        self.assertEqual(list(self.s3.list_keys(self.bucket)), ["dir", "new/", "new/x"])
        self.assertEqual((self.s3.get(self.bucket, "new/").body, self.s3.get(self.bucket, "new/x").body), (b"", b"1"))

    # -- P21: trailers and checksums

    def test_trailers(self):
        self.s3.put(self.bucket, "k", b"before")
        wrong = base64.b64encode(b"\0\0\0\0").decode()
        self.assert_code(self.put_chunked("k", chunked([HELLO], [("x-amz-checksum-crc32", wrong)]), 11), 400, "BadDigest")
        self.assert_code(self.put_chunked("k", chunked([b"hello worle"], [("x-amz-checksum-crc32", HELLO_CRC32)]), 11), 400, "BadDigest")
        self.assert_code(self.put_chunked("k", chunked([HELLO]), 11), 400, ["MalformedTrailerError", "InvalidRequest"])
        self.assert_code(self.put_chunked("k", chunked([HELLO], [("x-amz-checksum-crc32", HELLO_CRC32), ("x-amz-meta-a", "1")]), 11), 400,
                         ["MalformedTrailerError", "InvalidRequest"])
        self.assert_code(self.put_chunked("k", chunked([HELLO], [("x-amz-checksum-crc32", HELLO_CRC32.rstrip("="))]), 11), 400,
                         ["MalformedTrailerError", "InvalidRequest"])
        self.assert_code(self.put_chunked("k", chunked([HELLO], [("x-amz-checksum-crc32", HELLO_CRC32)]), 11, **{"x-amz-checksum-crc32": HELLO_CRC32}), 400,
                         "InvalidRequest")
        self.assert_code(self.signed("k", [HELLO], [("x-amz-checksum-crc32", HELLO_CRC32)], sign_trailer=False), 403,
                         ["SignatureDoesNotMatch", "AccessDenied"])
        self.s3.drop()
        self.assertEqual(self.s3.get(self.bucket, "k").body, b"before", "a refused upload replaced the object")

    def test_trailers_that_end_with_a_line_feed_of_their_own(self):
        """S3's documentation ends a trailing header with LF before the CRLF, and some widespread clients do so, too."""
        trailer = f"x-amz-checksum-crc32:{HELLO_CRC32}"
        self.assert_hello("u", self.put_chunked("u", f"b\r\nhello world\r\n0\r\n{trailer}\n\r\n\r\n".encode(), 11))
        self.assert_hello("s", self.signed("s", [HELLO], [("x-amz-checksum-crc32", HELLO_CRC32)],
                                           damage=lambda body: body.replace(trailer.encode(), trailer.encode() + b"\n")))
        wrong = trailer.replace(HELLO_CRC32, "AAAAAA==")
        self.assert_code(self.put_chunked("u", f"b\r\nhello world\r\n0\r\n{wrong}\n\r\n\r\n".encode(), 11), 400, "BadDigest")
        # An empty object, sent by a client that doesn't know its own length.
        target = f"/{self.bucket}/empty"
        headers = self.s3.signer.headers("PUT", target, (), {
            "host": self.s3.netloc, "transfer-encoding": "chunked", "content-encoding": "aws-chunked", "x-amz-decoded-content-length": "0",
            "x-amz-trailer": "x-amz-checksum-crc32"}, UNSIGNED_TRAILER)
        with raw.Connection(self.node.address) as connection:
            connection.send(raw.head("PUT", target, headers) + chunked([b"0\r\nx-amz-checksum-crc32:AAAAAA==\n\r\n\r\n"]))
            self.assertEqual(connection.response().status, 200)
        self.assertEqual(self.s3.get(self.bucket, "empty").body, b"")

    def test_checksum_headers(self):
        sha = base64.b64encode(hashlib.sha256(HELLO).digest()).decode()
        good = {"x-amz-checksum-crc32": HELLO_CRC32, "x-amz-checksum-sha256": sha,
                "x-amz-checksum-sha1": base64.b64encode(hashlib.sha1(HELLO).digest()).decode(),
                "x-amz-checksum-crc32c": base64.b64encode(bytes.fromhex("c99465aa")).decode()}
        for name, value in good.items():
            reply = self.s3.request("PUT", self.bucket, name, body=HELLO, headers={name: value})
            self.assertEqual(reply.status, 200, (name, reply))
            got = self.s3.get(self.bucket, name, headers={"x-amz-checksum-mode": "ENABLED"})
            self.assertEqual(got.headers[name], value)
            self.assertIsNone(self.s3.get(self.bucket, name).headers.get(name), "only when asked for")
        for name, headers in {"hex": {"x-amz-checksum-sha256": hashlib.sha256(HELLO).hexdigest()}, "unpadded": {"x-amz-checksum-sha256": sha.rstrip("=")},
                              "short": {"x-amz-checksum-crc32": "AAA="}, "two": {"x-amz-checksum-sha256": sha, "x-amz-checksum-crc32": HELLO_CRC32}}.items():
            self.assert_code(self.s3.request("PUT", self.bucket, "bad", body=HELLO, headers=headers), 400, "InvalidRequest")
        self.assert_code(self.s3.request("PUT", self.bucket, "bad", body=b"other", headers={"x-amz-checksum-sha256": sha}), 400, "BadDigest")
        self.assert_code(self.s3.request("PUT", self.bucket, "bad", body=HELLO, headers={"content-md5": "bm90IG1kNQ=="}), 400, "InvalidDigest")
        self.assert_code(self.s3.request("PUT", self.bucket, "bad", body=HELLO, payload_hash=hashlib.sha256(b"other").hexdigest()), 400,
                         "XAmzContentSHA256Mismatch")
        self.assertEqual(self.s3.head(self.bucket, "bad").status, 404)

    def test_documents_in_aws_chunks(self):
        """DeleteObjects and CompleteMultipartUpload from clients that stream everything."""

        def post(key, query, document, trailers):
            return self.s3.request("POST", self.bucket, key, query=query, body=chunked([document], trailers), payload_hash=UNSIGNED_TRAILER, headers={
                "content-encoding": "aws-chunked", "x-amz-decoded-content-length": str(len(document)),
                **({"x-amz-trailer": trailers[0][0]} if trailers else {})})

        def crc(data):
            return [("x-amz-checksum-crc32", base64.b64encode(binascii.crc32(data).to_bytes(4, "big")).decode())]

        upload = self.s3.ok("POST", self.bucket, "m", query=[("uploads", "")]).xml.findtext("UploadId")
        etag = self.s3.ok("PUT", self.bucket, "m", query=[("partNumber", "1"), ("uploadId", upload)], body=HELLO).etag
        reply = post("m", [("uploadId", upload)], s3.complete_xml([(1, etag)]), [])
        self.assertEqual(reply.status, 200, reply)
        self.assertEqual(self.s3.get(self.bucket, "m").body, HELLO)
        document = b"<Delete><Object><Key>m</Key></Object></Delete>"
        self.assert_code(post(None, [("delete", "")], document, crc(b"other")), 400, "BadDigest")
        self.assert_code(post(None, [("delete", "")], document, []), 400, "MissingContentMD5")
        self.assertEqual(self.s3.head(self.bucket, "m").status, 200)
        self.assertEqual(post(None, [("delete", "")], document, crc(document)).status, 200)
        self.assertEqual(self.s3.head(self.bucket, "m").status, 404)

    # -- plain HTTP

    def test_expectations_in_odd_orders(self):
        """A body sent without waiting, nothing to send, an expectation of a GET; the connection stays good."""
        target = f"/{self.bucket}/odd"
        signed = lambda method, length: self.s3.signer.headers(  # noqa: E731
            method, target, (), {"host": self.s3.netloc, "content-length": str(length), "expect": "100-continue"}, s3.UNSIGNED)
        with raw.Connection(self.node.address) as connection:
            for _ in range(2):
                connection.send(raw.head("PUT", target, signed("PUT", 11)) + HELLO)
                self.assertEqual(connection.response().status, 200)
                connection.send(raw.head("GET", target, signed("GET", 0)))
                self.assertEqual(connection.response().body, HELLO)
                connection.send(raw.head("PUT", target, signed("PUT", 0)))
                self.assertEqual(connection.response().status, 200)

    def test_refused_bodies_do_not_spoil_the_connection(self):
        """An error that was answered before the body was read: what follows is the next request, not the rest of that body."""
        target = f"/{self.bucket}/k"
        good = raw.head("PUT", target, self.s3.signer.headers("PUT", target, (), {"host": self.s3.netloc, "content-length": "11"}, s3.UNSIGNED)) + HELLO
        decoy = raw.head("DELETE", target, self.s3.signer.headers("DELETE", target, (), {"host": self.s3.netloc}, s3.EMPTY_SHA256))
        for length in (len(decoy), 4096, 60_000):
            body = decoy.ljust(length, b"x")
            bad = raw.head("PUT", "/no-such-bucket/k", self.s3.signer.headers(
                "PUT", "/no-such-bucket/k", (), {"host": self.s3.netloc, "content-length": str(len(body))}, s3.UNSIGNED)) + body
            with raw.Connection(self.node.address) as connection:
                connection.send(good + bad + good)
                self.assertEqual([connection.response().status for _ in range(3)], [200, 404, 200], length)
            self.assertEqual(self.s3.get(self.bucket, "k").body, HELLO)

    def test_expect_continue(self):
        target = f"/{self.bucket}/expect"
        headers = self.s3.signer.headers("PUT", target, (), {"host": self.s3.netloc, "content-length": "11", "expect": "100-continue"},
                                         hashlib.sha256(HELLO).hexdigest())
        with raw.Connection(self.node.address) as connection:
            connection.send(raw.head("PUT", target, headers))
            self.assertEqual(connection.status_line()[:12], b"HTTP/1.1 100")
            connection.send(HELLO)
            self.assertEqual(connection.response().status, 200)
        # Refused before the body was asked for: the client needn't send it.
        headers["authorization"] = headers["authorization"][:-4] + "0000"
        with raw.Connection(self.node.address) as connection:
            connection.send(raw.head("PUT", target, headers))
            self.assertEqual(connection.response().status, 403)

    def test_pipelining_and_keep_alive(self):
        for index in range(5):
            self.s3.put(self.bucket, f"p{index}", f"body {index}".encode())
        with raw.Connection(self.node.address) as connection:
            for _ in range(3):
                message = b""
                for index in range(5):
                    target = f"/{self.bucket}/p{index}"
                    message += raw.head("GET", target, self.s3.signer.headers("GET", target, (), {"host": self.s3.netloc}, s3.EMPTY_SHA256))
                connection.send(message)
                for index in range(5):
                    self.assertEqual(connection.response().body, f"body {index}".encode())

    def test_http_1_0_and_connection_close(self):
        self.s3.put(self.bucket, "k", HELLO)
        target = f"/{self.bucket}/k"
        headers = self.s3.signer.headers("GET", target, (), {"host": self.s3.netloc}, s3.EMPTY_SHA256)
        for version, more in (("HTTP/1.0", {}), ("HTTP/1.1", {"connection": "close"})):
            with raw.Connection(self.node.address) as connection:
                connection.send(raw.head("GET", target, {**headers, **more}, version))
                self.assertEqual(connection.response().body, HELLO)
                self.assertTrue(connection.closed_by_peer(), version)

    def test_transfer_encoding_chunked(self):
        """An SDK with a stream sends aws-chunked inside HTTP's own chunks, and no Content-Length (P18)."""
        data = payload.make("te", 100_000)
        crc = base64.b64encode(binascii.crc32(data).to_bytes(4, "big")).decode()
        inner = chunked([data[:70_000], data[70_000:]], [("x-amz-checksum-crc32", crc)])
        target = f"/{self.bucket}/te"
        headers = self.s3.signer.headers("PUT", target, (), {
            "host": self.s3.netloc, "transfer-encoding": "chunked", "content-encoding": "aws-chunked", "x-amz-trailer": "x-amz-checksum-crc32",
            "x-amz-decoded-content-length": str(len(data))}, UNSIGNED_TRAILER)
        with raw.Connection(self.node.address) as connection:
            connection.send(raw.head("PUT", target, headers))
            connection.send(chunked([inner[:30_001], inner[30_001:]]))
            reply = connection.response()
            self.assertEqual(reply.status, 200, reply)
        self.assertEqual(self.s3.get(self.bucket, "te").body, data)

    def test_no_length_at_all(self):
        target = f"/{self.bucket}/none"
        with raw.Connection(self.node.address) as connection:
            connection.send(raw.head("PUT", target, self.s3.signer.headers("PUT", target, (), {"host": self.s3.netloc}, s3.UNSIGNED)))
            reply = connection.response()
            self.assertIn((reply.status, reply.code), [(411, "MissingContentLength"), (200, "")])

    def test_body_shorter_than_promised_leaves_the_old_object(self):
        self.s3.put(self.bucket, "k", b"before")
        target = f"/{self.bucket}/k"
        headers = self.s3.signer.headers("PUT", target, (), {"host": self.s3.netloc, "content-length": "1000000"}, s3.UNSIGNED)
        for sent in (0, 1, 4096, 999_999):
            with raw.Connection(self.node.address) as connection:
                connection.send(raw.head("PUT", target, headers) + b"x" * sent)
                connection.shutdown(socket.SHUT_WR)
                connection.drain(5)
        self.assertEqual(self.s3.get(self.bucket, "k").body, b"before")


if __name__ == "__main__":
    suite.main()
