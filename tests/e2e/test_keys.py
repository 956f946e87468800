#!/usr/bin/env python3
"""Keys are bytes: any spelling of the path that means the same key verifies and nothing is normalised (P22, P24)."""

import hashlib
import http.client
import pathlib
import sys
import unicodedata
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import s3, suite  # noqa: E402

KEYS = ["a+b", "a b", "ab@cd", "v0/2:x", "100%", "te st%20x", "a//b", "/lead", "//", "./a", "../a", "a/..", "a/./b", ".", "..", "trail/",
        unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é"), "日本", "😀", "q?x=1&y=2#f", "<&>\"'", "~tilde-_.!*()",
        "=equals=", "semi;colon", "back\\slash", "a,b", "$dollar", "[brackets]{braces}|pipe^caret`tick", "%41", "%2F", "x" * 1024,
        "ü" * 512, "d/" * 512]


class Keys(suite.NodeTest):
    def spellings(self, key):
        """Paths that all mean the key: encoded as little and as much as is legal, with lower and upper hex."""
        raw_legal = urllib.parse.quote(key, safe="/-_.~!$&'()*+,;=:@")
        everything = "".join(f"%{b:02X}" for b in key.encode())
        lower = "".join(f"%{b:02x}" if not (chr(b).isalnum() and b < 128 or b == 0x2F) else chr(b) for b in key.encode())
        slashes = urllib.parse.quote(key, safe="-_.~")
        return dict.fromkeys([s3.encode(key), raw_legal, everything, lower, slashes])

    def test_put_head_get_list_delete(self):
        for key in KEYS:
            body = b"of " + key.encode()
            self.s3.put(self.bucket, key, body)
            self.assertEqual(self.s3.get(self.bucket, key).body, body, key)
            self.assertEqual(int(self.s3.head(self.bucket, key).headers["content-length"]), len(body), key)
        expected = sorted(KEYS, key=str.encode)
        self.assertEqual(list(self.s3.list_keys(self.bucket)), expected)
        # Also without url encoding: these are all legal in XML.
        self.assertEqual([k.text for k in self.s3.list_page(self.bucket).iterfind("Contents/Key")], expected)
        for key in KEYS:
            self.s3.delete(self.bucket, key)
            self.assertEqual(self.s3.head(self.bucket, key).status, 404, key)
        self.assertEqual(list(self.s3.list_keys(self.bucket)), [])

    def test_every_spelling_of_the_path_verifies(self):
        for key in KEYS:
            self.s3.put(self.bucket, key, key.encode())
            for spelling in self.spellings(key):
                reply = self.s3.request("GET", self.bucket, key, path=f"/{self.bucket}/{spelling}")
                self.assertEqual((reply.status, reply.body), (200, key.encode()), (key, spelling))

    def test_presigned(self):
        for key in KEYS:
            put = self.s3.send("PUT", self.s3.presigned("PUT", self.bucket, key), {"host": self.s3.netloc, "content-length": "3"}, b"xyz")
            self.assertEqual(put.status, 200, (key, put))
            got = self.s3.send("GET", self.s3.presigned("GET", self.bucket, key), {"host": self.s3.netloc})
            self.assertEqual((got.status, got.body), (200, b"xyz"), key)

    def test_copy_from_and_to(self):
        for index, key in enumerate(KEYS):
            if len(key) < 100:
                self.s3.put(self.bucket, key, key.encode())
                self.s3.copy(self.bucket, f"copy {index}", self.bucket, key)
                self.assertEqual(self.s3.get(self.bucket, f"copy {index}").body, key.encode(), key)
                self.s3.copy(self.bucket, "to " + key, self.bucket, f"copy {index}")
                self.assertEqual(self.s3.get(self.bucket, "to " + key).body, key.encode(), key)

    def test_too_long(self):
        for key in ("x" * 1025, "é" * 513):
            self.assert_code(self.s3.request("PUT", self.bucket, key, body=b"x"), 400, "KeyTooLongError")
        self.assertEqual(list(self.s3.list_keys(self.bucket)), [])

    def test_control_characters(self):
        # U+0010 is no character of XML 1.0, but a legal byte of a key.
        self.s3.put(self.bucket, b"a\x10b", b"dle")
        self.s3.put(self.bucket, "<&>\n\t", b"xml")
        self.assertEqual(sorted(self.s3.list_keys(self.bucket)), sorted(["a\x10b", "<&>\n\t"]))
        plain = self.s3.request("GET", self.bucket, query=[("list-type", "2")])
        self.assertNotIn(b"\x10", plain.body)
        self.assertEqual(self.s3.request("DELETE", self.bucket, b"a\x10b").status, 204)
        self.assertEqual(list(self.s3.list_keys(self.bucket)), ["<&>\n\t"])

    def test_malformed_escapes_are_refused(self):
        for path in (f"/{self.bucket}/%", f"/{self.bucket}/a%2", f"/{self.bucket}/a%zz", f"/{self.bucket}/%ff%fe"):
            connection = http.client.HTTPConnection(*self.node.address, timeout=10)
            connection.request("GET", path)
            self.assertIn(connection.getresponse().status, (400, 403), path)
            connection.close()


class VirtualHosts(suite.NodeTest):
    """Buckets named by the host; the rest of the path is the key, whatever is in it (P22)."""

    settings = {"s3.domains": "s3.example.com"}
    needs_process = True

    def ask(self, method, path, host, body=b""):
        headers = {"host": host, **({"content-length": str(len(body))} if body else {})}
        signed = self.s3.signer.headers(method, s3.encode(urllib.parse.unquote_to_bytes(path)), (), headers, hashlib.sha256(body).hexdigest())
        return self.s3.send(method, path, signed, body)

    def test_every_key_p22(self):
        for key in KEYS:
            path, host = "/" + s3.encode(key), f"{self.bucket}.s3.example.com"
            self.assertEqual(self.ask("PUT", path, host, key.encode()).status, 200, key)
            self.assertEqual(self.s3.get(self.bucket, key).body, key.encode(), key)
            for spelling in (host, host.upper(), host + ":80"):
                self.assertEqual(self.ask("GET", path, spelling).body, key.encode(), (key, spelling))
            presigned = path + "?" + self.s3.signer.presign("GET", host, path)
            self.assertEqual(self.s3.send("GET", presigned, {"host": host}).body, key.encode(), key)
            self.assertEqual(self.ask("DELETE", path, host).status, 204, key)
        self.assertEqual(self.ask("GET", f"/{self.bucket}", "s3.example.com").xml.tag, "ListBucketResult")


    def test_the_target_s_host_is_the_one_that_must_be_signed(self):
        """RFC 9112 section 3.2.2: the authority of an absolute target counts, not the Host field beside it. A signature for one bucket
        must not open another."""
        other = self.bucket + "-x"
        self.s3.create_bucket(other)
        self.s3.put(self.bucket, "k", b"mine")
        self.s3.put(other, "k", b"not yours")
        host, foreign = f"{self.bucket}.s3.example.com", f"{other}.s3.example.com"
        target = "/k?" + self.s3.signer.presign("GET", host, "/k")
        self.assertEqual(self.s3.send("GET", f"http://{host}{target}", {"host": "proxy"}).body, b"mine")
        for authority, field in ((foreign, host), (foreign, foreign)):
            self.assert_code(self.s3.send("GET", f"http://{authority}{target}", {"host": field}), 403, "SignatureDoesNotMatch")


class MultiDelete(suite.NodeTest):
    def delete(self, body, **headers):
        import base64
        import hashlib
        headers = {n.replace("_", "-"): v for n, v in headers.items()} or {"content-md5": base64.b64encode(hashlib.md5(body).digest()).decode()}
        headers = {n: v for n, v in headers.items() if v}
        return self.s3.request("POST", self.bucket, query=[("delete", "")], body=body, headers=headers)

    def document(self, *keys, quiet=False):
        from xml.sax.saxutils import escape
        return (f"<Delete>{'<Quiet>true</Quiet>' if quiet else ''}" + "".join(f"<Object><Key>{escape(k)}</Key></Object>" for k in keys)
                + "</Delete>").encode()

    def test_special_characters_p24(self):
        for key in ("aaa/a<a", "&", "\u20ac"):
            self.s3.put(self.bucket, key, b"x")
        reply = self.delete(self.document("aaa/a<a", "&", "\u20ac"))
        self.assertEqual(reply.status, 200, reply)
        self.assertEqual([d.text for d in reply.xml.iterfind("Deleted/Key")], ["aaa/a<a", "&", "\u20ac"])
        self.assertEqual(list(self.s3.list_keys(self.bucket)), [])

    def test_what_xml_forbids_is_no_silent_success(self):
        self.s3.put(self.bucket, b"a\x10b", b"x")
        self.assert_code(self.delete(b"<Delete><Object><Key>a&#x10;b</Key></Object></Delete>"), 400, "MalformedXML")
        self.assertEqual(self.s3.head(self.bucket, b"a\x10b").status, 200)
        for body in (b"<Delete></Delete>", b"<Delete>", b"", b"not xml", b"<Other/>", b"<Delete><Object></Object></Delete>"):
            self.assert_code(self.delete(body), 400, ["MalformedXML", "MissingRequestBodyError"])

    def test_keys_are_taken_whole_p24(self):
        """CDATA and comments split a text: what is deleted is all of it or nothing, never its first piece."""
        for text, key in (("a<![CDATA[b]]>c", "abc"), ("a<!-- -->b", "ab"), ("<![CDATA[<&>]]>", "<&>"), ("a&#13;b", "a\rb")):
            self.s3.put(self.bucket, "a", b"other")
            self.s3.put(self.bucket, key, b"x")
            self.assertEqual(self.delete(f"<Delete><Object><Key>{text}</Key></Object></Delete>".encode()).status, 200, text)
            self.assertEqual(list(self.s3.list_keys(self.bucket)), ["a"], text)
        for text in (b"a&#0;b", b"a\0b", b"a&b", b"a&unknown;", b"a\xff", b"a&#xD800;", b"a</Key></Object></Delete>a"):
            self.assert_code(self.delete(b"<Delete><Object><Key>" + text + b"</Key></Object></Delete>"), 400, "MalformedXML")
        self.assertEqual(list(self.s3.list_keys(self.bucket)), ["a"])

    def test_conditions_and_failures_of_single_keys_p24(self):
        for key in ("a", "b", "c"):
            self.s3.put(self.bucket, key, key.encode())
        etag = self.s3.head(self.bucket, "a").etag
        items = (f"<Object><Key>a</Key><ETag>&quot;{etag}&quot;</ETag></Object><Object><Key>b</Key><ETag>0</ETag></Object>"
                 f"<Object><Key>c</Key><VersionId>x</VersionId></Object><Object><Key>missing</Key></Object><Object><Key>{'x' * 1025}</Key></Object>")
        reply = self.delete(f"<Delete><Quiet>true</Quiet>{items}</Delete>".encode())
        self.assertEqual([(e.findtext("Key")[:3], e.findtext("Code")) for e in reply.xml.iterfind("Error")],
                         [("b", "PreconditionFailed"), ("c", "InvalidArgument"), ("xxx", "KeyTooLongError")], reply)
        self.assertEqual(list(reply.xml.iterfind("Deleted")), [])
        self.assertEqual(list(self.s3.list_keys(self.bucket)), ["b", "c"])
        self.assert_code(self.delete(b"<Delete><Object><Key>b</Key><Size>9</Size></Object></Delete>"), 501, "NotImplemented")
        self.assertEqual(self.s3.head(self.bucket, "b").status, 200)

    def test_integrity_header_p20(self):
        import base64
        import binascii
        import hashlib
        self.s3.put(self.bucket, "k", b"x")
        body = self.document("k", "never there")
        wrong = base64.b64encode(b"\0" * 4).decode()
        self.assert_code(self.delete(body, x_amz_checksum_crc32=wrong), 400, "BadDigest")
        self.assert_code(self.delete(body, content_md5=base64.b64encode(b"\0" * 16).decode()), 400, "BadDigest")
        # The body's SHA-256 in the signature is no integrity header for this call.
        self.assert_code(self.delete(body, content_md5=""), 400, ["InvalidRequest", "MissingContentMD5"])
        self.assertEqual(self.s3.head(self.bucket, "k").status, 200, "a refused delete deleted something")
        crc = base64.b64encode(binascii.crc32(body).to_bytes(4, "big")).decode()
        reply = self.delete(body, x_amz_checksum_crc32=crc)
        self.assertEqual((reply.status, len(list(reply.xml.iterfind("Deleted")))), (200, 2), reply)
        self.s3.put(self.bucket, "k", b"x")
        self.assertEqual(self.delete(body, content_md5=base64.b64encode(hashlib.md5(body).digest()).decode()).status, 200)
        self.assertEqual(self.s3.head(self.bucket, "k").status, 404)

    def test_limits_and_quiet(self):
        self.assert_code(self.delete(self.document(*(f"k{i}" for i in range(1001)))), 400, "MalformedXML")
        for index in range(1000):
            if index % 100 == 0:
                self.s3.put(self.bucket, f"k{index}", b"x")
        reply = self.delete(self.document(*(f"k{i}" for i in range(1000)), quiet=True))
        self.assertEqual((reply.status, list(reply.xml)), (200, []), reply)
        self.assertEqual(list(self.s3.list_keys(self.bucket)), [])


if __name__ == "__main__":
    suite.main()
