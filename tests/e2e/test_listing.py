#!/usr/bin/env python3
"""Listings: 10,000 keys in pages of 1,000 and of 7, order, delimiters, encoding-type, tokens (P23, P25)."""

import concurrent.futures
import pathlib
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from cairntest import suite  # noqa: E402


def unquoted(element, path):
    text = element.findtext(path)
    return None if text is None else urllib.parse.unquote_plus(text)


class Listing(suite.NodeTest):
    def put_all(self, keys, workers=8):
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            list(pool.map(lambda k: self.s3.put(self.bucket, k, b""), keys))

    def walk(self, **parameters):
        """Pages as (keys, prefixes), following the tokens; checks what must hold on every page."""
        pages, token = [], {}
        while True:
            page = self.s3.list_page(self.bucket, encoding_type="url", **parameters, **token)
            keys = [unquoted(c, "Key") for c in page.iterfind("Contents")]
            prefixes = [unquoted(c, "Prefix") for c in page.iterfind("CommonPrefixes")]
            self.assertEqual(int(page.findtext("KeyCount")), len(keys) + len(prefixes))
            self.assertLessEqual(len(keys) + len(prefixes), min(1000, int(parameters.get("max_keys", 1000))))
            truncated, next_token = page.findtext("IsTruncated") == "true", page.findtext("NextContinuationToken")
            self.assertEqual(truncated, bool(next_token), "IsTruncated and NextContinuationToken disagree")
            pages.append((keys, prefixes))
            if not truncated:
                return pages
            self.assertLess(len(pages), 20000, "the listing loops")
            token = {"continuation_token": next_token}

    def walk_v1(self, page_size, **parameters):
        seen, marker = [], ""
        while True:
            query = [("max-keys", str(page_size)), ("encoding-type", "url"), ("marker", marker), *parameters.items()]
            page = self.s3.ok("GET", self.bucket, query=query).xml
            keys = [unquoted(c, "Key") for c in page.iterfind("Contents")]
            prefixes = [unquoted(c, "Prefix") for c in page.iterfind("CommonPrefixes")]
            seen += sorted(keys + prefixes, key=str.encode)
            if page.findtext("IsTruncated") != "true":
                return seen
            # Without a delimiter there is no NextMarker: clients go on from the last key.
            marker = unquoted(page, "NextMarker") or keys[-1]

    def test_ten_thousand_keys_in_pages_of_1000_and_7(self):
        keys = sorted(f"{'even' if i % 2 == 0 else 'odd'}/{i % 100:02}/{i:05} +%é" for i in range(10_000))
        self.put_all(keys)
        for size in (1000, 7):
            pages = self.walk(max_keys=size)
            self.assertEqual([k for page, _ in pages for k in page], keys)
            self.assertEqual({len(page) for page, _ in pages[:-1]}, {size})
        self.assertEqual(self.walk_v1(1000), keys)
        self.assertEqual([p for _, prefixes in self.walk(delimiter="/") for p in prefixes], ["even/", "odd/"])
        self.assertEqual([p for _, prefixes in self.walk(delimiter="/", prefix="even/", max_keys=7) for p in prefixes],
                         [f"even/{i:02}/" for i in range(0, 100, 2)])
        self.assertEqual([k for page, _ in self.walk(prefix="odd/33/", max_keys=9) for k in page], [k for k in keys if k.startswith("odd/33/")])
        after = keys[4321]
        self.assertEqual([k for page, _ in self.walk(start_after=after) for k in page], keys[4322:])
        # A page never counts what was deleted, and gone keys don't make it slow or short.
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda k: self.s3.delete(self.bucket, k), keys[:9000]))
        self.assertEqual([k for page, _ in self.walk(max_keys=1000) for k in page], keys[9000:])

    def test_delimiter_pages_p25(self):
        self.put_all([f"photos/2026/{i:04}" for i in range(2500)] + ["a.txt", "z.txt"])
        for size in (1, 2, 1000):
            entries = [e for keys, prefixes in self.walk(delimiter="/", max_keys=size) for e in sorted(keys + prefixes)]
            self.assertEqual(entries, ["a.txt", "photos/", "z.txt"], size)
            self.assertEqual(self.walk_v1(size, delimiter="/"), ["a.txt", "photos/", "z.txt"], size)

    def test_max_keys(self):
        self.put_all([f"{i:04}" for i in range(1200)])
        page = self.s3.list_page(self.bucket, max_keys=0)
        self.assertEqual((page.findtext("KeyCount"), page.findtext("IsTruncated")), ("0", "false"))
        self.assertEqual(len(list(self.s3.list_page(self.bucket, max_keys=5000).iterfind("Contents"))), 1000)
        for bad in ("-1", "many", "99999999999999999999"):
            reply = self.s3.request("GET", self.bucket, query=[("list-type", "2"), ("max-keys", bad)])
            self.assert_code(reply, 400, "InvalidArgument")
        self.assert_code(self.s3.request("GET", self.bucket, query=[("list-type", "2"), ("continuation-token", "made up")]), 400, "InvalidArgument")
        for query in ([("prefix", "x" * 4000)], [("marker", "x" * 4000)], [("list-type", "2"), ("start-after", "x" * 1025)],
                      [("uploads", ""), ("key-marker", "x" * 4000)], [("versions", ""), ("key-marker", "x" * 4000)]):
            self.assert_code(self.s3.request("GET", self.bucket, query=query), 400, "KeyTooLongError")
        self.assertEqual(self.s3.list_page(self.bucket, prefix="x" * 1024).findtext("KeyCount"), "0")

    def test_token_survives_changes(self):
        self.put_all([f"k{i:03}" for i in range(0, 100, 2)])
        page = self.s3.list_page(self.bucket, max_keys=10)
        token = page.findtext("NextContinuationToken")
        self.put_all(["k001", "k021", "zz"])  # before the token, after it
        self.s3.delete(self.bucket, "k018")   # the last key that was returned
        rest = [c.findtext("Key") for c in self.s3.list_page(self.bucket, continuation_token=token).iterfind("Contents")]
        self.assertEqual(rest, sorted([f"k{i:03}" for i in range(20, 100, 2)] + ["k021", "zz"]))

    def test_encoding_type_p23(self):
        keys = sorted(["Blabla_50%.jpg", "a+b", "a b", "x\x10y", "<&>", "p%/1", "p%/2", "q+/1", "é/日"], key=str.encode)
        for key in keys:
            self.s3.put(self.bucket, key.encode(), b"")
        for version in ("1", "2"):
            query = [("encoding-type", "url"), ("delimiter", "/"), *([("list-type", "2")] if version == "2" else [])]
            page = self.s3.ok("GET", self.bucket, query=query).xml
            self.assertEqual(page.findtext("EncodingType"), "url")
            self.assertEqual([unquoted(c, "Key") for c in page.iterfind("Contents")], [k for k in keys if "/" not in k])
            self.assertEqual([unquoted(c, "Prefix") for c in page.iterfind("CommonPrefixes")], ["p%/", "q+/", "é/"])
        page = self.s3.ok("GET", self.bucket, query=[("versions", ""), ("encoding-type", "url"), ("delimiter", "%"), ("key-marker", "a+")]).xml
        self.assertEqual((page.findtext("EncodingType"), unquoted(page, "Delimiter"), unquoted(page, "KeyMarker")), ("url", "%", "a+"))
        self.assertEqual([unquoted(v, "Key") for v in page.iterfind("Version")], [k for k in keys if "%" not in k and k > "a+"])
        self.assertEqual([unquoted(c, "Prefix") for c in page.iterfind("CommonPrefixes")], ["p%"])
        for key in keys:
            self.s3.ok("POST", self.bucket, key.encode(), query=[("uploads", "")])
        page = self.s3.ok("GET", self.bucket, query=[("uploads", ""), ("encoding-type", "url"), ("prefix", "p%"), ("delimiter", "/")]).xml
        self.assertEqual((page.findtext("EncodingType"), unquoted(page, "Prefix"), [unquoted(c, "Prefix") for c in page.iterfind("CommonPrefixes")]),
                         ("url", "p%", ["p%/"]))
        page = self.s3.ok("GET", self.bucket, query=[("uploads", ""), ("encoding-type", "url")]).xml
        self.assertEqual([unquoted(u, "Key") for u in page.iterfind("Upload")], keys)
        page = self.s3.list_page(self.bucket, encoding_type="url", prefix="p%", delimiter="%", start_after="a+", max_keys=1)
        self.assertEqual((unquoted(page, "Prefix"), unquoted(page, "Delimiter"), unquoted(page, "StartAfter")), ("p%", "%", "a+"))
        self.assertEqual([unquoted(c, "Key") for c in self.s3.list_page(
            self.bucket, encoding_type="url", prefix="p%/", delimiter="/").iterfind("Contents")], ["p%/1", "p%/2"])
        self.assert_code(self.s3.request("GET", self.bucket, query=[("list-type", "2"), ("encoding-type", "base64")]), 400, "InvalidArgument")

    def test_uploads_are_listed_in_pages(self):
        keys = [f"u/{i % 3}/{i:02}" for i in range(12)]
        ids = {}
        for key in keys:
            ids[key] = self.s3.ok("POST", self.bucket, key, query=[("uploads", "")]).xml.findtext("UploadId")
        seen, markers = [], []
        while True:
            page = self.s3.ok("GET", self.bucket, query=[("uploads", ""), ("max-uploads", "5"), *markers]).xml
            seen += [(u.findtext("Key"), u.findtext("UploadId")) for u in page.iterfind("Upload")]
            if page.findtext("IsTruncated") != "true":
                break
            self.assertLess(len(seen), 20)
            markers = [("key-marker", page.findtext("NextKeyMarker")), ("upload-id-marker", page.findtext("NextUploadIdMarker"))]
        self.assertEqual(seen, sorted(ids.items()))
        page = self.s3.ok("GET", self.bucket, query=[("uploads", ""), ("prefix", "u/"), ("delimiter", "/")]).xml
        self.assertEqual([p.findtext("Prefix") for p in page.iterfind("CommonPrefixes")], ["u/0/", "u/1/", "u/2/"])


if __name__ == "__main__":
    suite.main()
