"""A small S3 client on http.client. It signs as the specification says and otherwise does what it is told, so that tests
can send what an SDK would refuse to. One instance may be used by several threads: each has its own connection."""

import dataclasses
import datetime
import hashlib
import hmac
import http.client
import select
import threading
import urllib.parse
import xml.etree.ElementTree as ElementTree

UNSIGNED = "UNSIGNED-PAYLOAD"
EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
_UNRESERVED = "-_.~"


def encode(text, keep_slash=True):
    data = text if isinstance(text, bytes) else text.encode()
    return urllib.parse.quote(data, safe=_UNRESERVED + ("/" if keep_slash else ""))


def canonical_query(query):
    pairs = sorted((encode(k, False), encode(v, False)) for k, v in query)
    return "&".join(f"{k}={v}" for k, v in pairs)


class Signer:
    """AWS Signature Version 4 for S3: the path is encoded once and never normalised."""

    def __init__(self, access_key, secret_key, region="us-east-1"):
        self.access_key, self.secret_key, self.region = access_key, secret_key, region

    def scope(self, stamp):
        return f"{stamp[:8]}/{self.region}/s3/aws4_request"

    def _key(self, stamp):
        key = ("AWS4" + self.secret_key).encode()
        for part in (stamp[:8], self.region, "s3", "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return key

    def sign_text(self, stamp, algorithm, *lines):
        text = "\n".join([algorithm, stamp, self.scope(stamp), *lines])
        return hmac.new(self._key(stamp), text.encode(), hashlib.sha256).hexdigest()

    def signature(self, stamp, method, path, query, headers, signed, payload_hash):
        canonical = "\n".join([method, path, canonical_query(query),
                               "".join(f"{n}:{' '.join(str(headers[n]).split())}\n" for n in signed), ";".join(signed),
                               payload_hash])
        return self.sign_text(stamp, "AWS4-HMAC-SHA256", hashlib.sha256(canonical.encode()).hexdigest())

    def headers(self, method, path, query, headers, payload_hash, stamp=None):
        """`headers` (lower case) with date, payload hash and authorization added."""
        stamp = stamp or now_stamp()
        headers = {k.lower(): v for k, v in headers.items()}
        headers.setdefault("x-amz-date", stamp)
        headers.setdefault("x-amz-content-sha256", payload_hash)
        signed = sorted(n for n in headers if n in ("host", "content-md5", "content-type") or n.startswith("x-amz-"))
        signature = self.signature(stamp, method, path, query, headers, signed, headers["x-amz-content-sha256"])
        headers["authorization"] = (f"AWS4-HMAC-SHA256 Credential={self.access_key}/{self.scope(stamp)}, "
                                    f"SignedHeaders={';'.join(signed)}, Signature={signature}")
        return headers

    def presign(self, method, host, path, query=(), expires=3600, headers=None, stamp=None):
        """The query string (not the URL) that authorises the request; `headers` are signed, too."""
        stamp = stamp or now_stamp()
        headers = {"host": host, **{k.lower(): v for k, v in (headers or {}).items()}}
        signed = sorted(headers)
        query = [*query, ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"), ("X-Amz-Credential", f"{self.access_key}/{self.scope(stamp)}"),
                 ("X-Amz-Date", stamp), ("X-Amz-Expires", str(expires)), ("X-Amz-SignedHeaders", ";".join(signed))]
        signature = self.signature(stamp, method, path, query, headers, signed, UNSIGNED)
        return canonical_query(query) + f"&X-Amz-Signature={signature}"

    def chunked_body(self, stamp, seed_signature, chunks, trailers=None, sign_trailer=True):
        """The bytes of a STREAMING-AWS4-HMAC-SHA256-PAYLOAD body; with trailers, of its -TRAILER variant."""
        previous, out = seed_signature, bytearray()
        for chunk in [*chunks, b""]:
            previous = self.sign_text(stamp, "AWS4-HMAC-SHA256-PAYLOAD", previous, EMPTY_SHA256,
                                      hashlib.sha256(chunk).hexdigest())
            out += f"{len(chunk):x};chunk-signature={previous}\r\n".encode() + chunk
            if chunk or trailers is None:
                out += b"\r\n"
        if trailers is not None:
            text = "".join(f"{n.lower()}:{v}\n" for n, v in trailers)
            signature = self.sign_text(stamp, "AWS4-HMAC-SHA256-TRAILER", previous, hashlib.sha256(text.encode()).hexdigest())
            out += "".join(f"{n}:{v}\r\n" for n, v in trailers).encode()
            if sign_trailer:
                out += f"x-amz-trailer-signature:{signature}\r\n".encode()
            out += b"\r\n"
        return bytes(out)


def now_stamp(offset_seconds=0):
    now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=offset_seconds)
    return now.strftime("%Y%m%dT%H%M%SZ")


@dataclasses.dataclass
class Response:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def etag(self):
        return (self.headers.get("etag") or "").strip('"')

    @property
    def xml(self):
        """The document without its namespace."""
        root = ElementTree.fromstring(self.body)
        for element in root.iter():
            element.tag = element.tag.rpartition("}")[2]
        return root

    @property
    def code(self):
        """The <Code> of S3's error document, or ''."""
        try:
            return self.xml.findtext("Code") or ""
        except ElementTree.ParseError:
            return ""

    def __str__(self):
        return f"{self.status} {dict(self.headers)} {self.body[:500]!r}"


class S3Error(Exception):
    def __init__(self, what, response):
        super().__init__(f"{what}: {response}")
        self.response = response
        self.status, self.code = response.status, response.code


def readable(sock):
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


class Client:
    def __init__(self, endpoint, access_key, secret_key, region="us-east-1", timeout=60):
        self.host, _, port = endpoint.removeprefix("http://").rstrip("/").rpartition(":")
        self.port = int(port)
        self.netloc = f"{self.host}:{self.port}"
        self.signer = Signer(access_key, secret_key, region)
        self.timeout = timeout
        self._local = threading.local()

    # -- transport

    def connection(self):
        connection = getattr(self._local, "connection", None)
        # Readable while nothing was asked: the server closed it when it had been idle. As any client's pool does.
        if connection is not None and connection.sock is not None and readable(connection.sock):
            self.drop()
        if getattr(self._local, "connection", None) is None:
            self._local.connection = http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)
        return self._local.connection

    def drop(self):
        connection, self._local.connection = getattr(self._local, "connection", None), None
        if connection:
            connection.close()

    def send(self, method, target, headers, body=b"", sink=None):
        """The request as given, on this thread's connection. `sink` takes a 2xx body in pieces. A failure drops the
        connection and is raised; nothing is repeated."""
        connection = self.connection()
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders()
            if hasattr(body, "read"):
                while piece := body.read(1 << 18):
                    connection.send(piece)
            elif body:
                connection.send(body)
            response = connection.getresponse()
            if sink and response.status < 300:
                while piece := response.read(1 << 18):
                    sink(piece)
                data = b""
            else:
                data = response.read()
            if response.will_close:
                self.drop()
            return Response(response.status, response.headers, data)
        except BaseException:
            self.drop()
            raise

    def request(self, method, bucket="", key=None, query=(), headers=None, body=b"", payload_hash=None, path=None, sink=None,
                stamp=None):
        """A request signed in its headers. `path` overrides how bucket and key are spelled on the wire; `key` may be bytes."""
        canonical = "/" + encode(bucket) + ("" if key is None else "/" + encode(key))
        target = path or canonical
        if query:
            target += "?" + canonical_query(query)
        headers = {"host": self.netloc, **{k.lower(): v for k, v in (headers or {}).items()}}
        streaming = hasattr(body, "read")
        if payload_hash is None:
            payload_hash = UNSIGNED if streaming else hashlib.sha256(body).hexdigest()
        if "content-length" not in headers and "transfer-encoding" not in headers and (body or streaming or method in ("PUT", "POST")):
            headers["content-length"] = str(len(body))
        headers = self.signer.headers(method, canonical, query, headers, payload_hash, stamp)
        return self.send(method, target, headers, body, sink)

    def ok(self, method, *args, statuses=(200, 204, 206), **kwargs):
        response = self.request(method, *args, **kwargs)
        if response.status not in statuses:
            raise S3Error(f"{method} {args[:2]}", response)
        return response

    # -- what tests do all the time

    def create_bucket(self, bucket):
        return self.ok("PUT", bucket)

    def put(self, bucket, key, body=b"", headers=None, **kwargs):
        return self.ok("PUT", bucket, key, body=body, headers=headers, **kwargs)

    def get(self, bucket, key, headers=None, **kwargs):
        return self.ok("GET", bucket, key, headers=headers, **kwargs)

    def head(self, bucket, key, **kwargs):
        return self.request("HEAD", bucket, key, **kwargs)

    def delete(self, bucket, key):
        return self.ok("DELETE", bucket, key)

    def copy(self, bucket, key, source_bucket, source_key, headers=None):
        return self.ok("PUT", bucket, key, headers={"x-amz-copy-source": f"/{source_bucket}/{encode(source_key)}", **(headers or {})})

    def list_page(self, bucket, **parameters):
        query = [("list-type", "2"), *[(k.replace("_", "-"), str(v)) for k, v in parameters.items()]]
        return self.ok("GET", bucket, query=query).xml

    def list_keys(self, bucket, **parameters):
        """Every key, page by page. The listing asks for url encoding, so that any key comes back as it is."""
        token = {}
        while True:
            page = self.list_page(bucket, encoding_type="url", **parameters, **token)
            for key in page.iterfind("Contents/Key"):
                yield urllib.parse.unquote_plus(key.text)
            next_token = page.findtext("NextContinuationToken")
            if not next_token:
                return
            token = {"continuation_token": next_token}

    def multipart(self, bucket, key, parts, headers=None):
        """A whole multipart upload of byte strings; the reply of the completion."""
        upload_id = self.ok("POST", bucket, key, query=[("uploads", "")], headers=headers).xml.findtext("UploadId")
        etags = [self.ok("PUT", bucket, key, query=[("partNumber", str(n)), ("uploadId", upload_id)], body=part).etag
                 for n, part in enumerate(parts, 1)]
        return self.complete(bucket, key, upload_id, list(enumerate(etags, 1)))

    def complete(self, bucket, key, upload_id, parts, headers=None):
        body = complete_xml(parts)
        response = self.request("POST", bucket, key, query=[("uploadId", upload_id)], body=body, headers=headers)
        # A failure after the headers went out is a 200 with an <Error> document.
        if response.status != 200 or response.xml.tag == "Error":
            raise S3Error(f"complete {bucket}/{key}", response)
        return response

    def presigned(self, method, bucket, key, query=(), **kwargs):
        path = f"/{encode(bucket)}/{encode(key)}"
        return path + "?" + self.signer.presign(method, kwargs.pop("host", self.netloc), path, query, **kwargs)


def complete_xml(parts):
    return ("<CompleteMultipartUpload>" + "".join(
        f"<Part><PartNumber>{n}</PartNumber><ETag>&quot;{etag}&quot;</ETag></Part>" for n, etag in parts)
        + "</CompleteMultipartUpload>").encode()
