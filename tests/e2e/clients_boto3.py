"""Run by test_boto3.py with each interpreter that has a boto3: arguments endpoint, bucket. Exits non-zero, with a traceback, when
something is wrong."""

import base64
import binascii
import hashlib
import io
import sys

import boto3
import botocore
from boto3.s3.transfer import TransferConfig
from botocore.client import Config
from botocore.exceptions import ClientError

MIB = 1 << 20
endpoint, bucket = sys.argv[1:]
s3 = boto3.client("s3", endpoint_url=endpoint, config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 0}))
version = tuple(int(v) for v in botocore.__version__.split(".")[:2])
print("boto3", boto3.__version__, "python", sys.version.split()[0])


def fails(code, status, call, **kwargs):
    try:
        call(**kwargs)
    except ClientError as error:
        got = error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]
        assert got == (code, status), got
    else:
        raise AssertionError(f"{call} succeeded, expected {code}")


class Unseekable(io.RawIOBase):
    """A stream that can be read once and has no length."""

    def __init__(self, data):
        self._in = io.BytesIO(data)

    def readable(self):
        return True

    def readinto(self, buffer):
        return self._in.readinto(buffer)


def sizes_and_etags():
    for size in (0, 1, 5, 4096, 5 * MIB):
        data = bytes(i * 7 % 251 for i in range(min(size, 4096))) * (size // 4096 or 1)
        data = data[:size]
        put = s3.put_object(Bucket=bucket, Key=f"size/{size}", Body=data)
        assert put["ETag"] == f'"{hashlib.md5(data).hexdigest()}"', put
        assert s3.get_object(Bucket=bucket, Key=f"size/{size}")["Body"].read() == data, size
    s3.put_object(Bucket=bucket, Key="empty-string", Body="")
    assert s3.head_object(Bucket=bucket, Key="empty-string")["ContentLength"] == 0


def transfers():
    data = bytes(range(256)) * 4096 * 17  # 17 MiB
    config = TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB, max_concurrency=4)
    s3.upload_fileobj(io.BytesIO(data), bucket, "transfer", Config=config)
    s3.upload_fileobj(Unseekable(data), bucket, "transfer-unseekable", Config=config)
    for key in ("transfer", "transfer-unseekable"):
        out = io.BytesIO()
        s3.download_fileobj(bucket, key, out, Config=config)
        assert out.getvalue() == data, key
    parts = [hashlib.md5(data[i:i + 5 * MIB]).digest() for i in range(0, len(data), 5 * MIB)]
    expected = f'"{hashlib.md5(b"".join(parts)).hexdigest()}-{len(parts)}"'
    assert s3.head_object(Bucket=bucket, Key="transfer")["ETag"] == expected
    s3.copy({"Bucket": bucket, "Key": "transfer"}, bucket, "transfer copy+", Config=config)
    assert s3.get_object(Bucket=bucket, Key="transfer copy+")["Body"].read() == data


def checksums():
    body = b"hello world"
    crc = base64.b64encode(binascii.crc32(body).to_bytes(4, "big")).decode()
    for algorithm in ("CRC32", "SHA1", "SHA256"):
        put = s3.put_object(Bucket=bucket, Key=f"sum/{algorithm}", Body=body, ChecksumAlgorithm=algorithm)
        head = s3.head_object(Bucket=bucket, Key=f"sum/{algorithm}", ChecksumMode="ENABLED")
        assert put[f"Checksum{algorithm}"] == head[f"Checksum{algorithm}"], (put, head)
    assert s3.head_object(Bucket=bucket, Key="sum/CRC32", ChecksumMode="ENABLED")["ChecksumCRC32"] == crc
    fails("BadDigest", 400, s3.put_object, Bucket=bucket, Key="sum/CRC32", Body=b"other bytes", ChecksumCRC32=crc)
    fails("BadDigest", 400, s3.put_object, Bucket=bucket, Key="sum/CRC32", Body=b"other",
          ContentMD5=base64.b64encode(hashlib.md5(body).digest()).decode())
    assert s3.get_object(Bucket=bucket, Key="sum/CRC32", ChecksumMode="ENABLED")["Body"].read() == body
    if version >= (1, 36):  # these send a CRC with every upload unless told otherwise
        put = s3.put_object(Bucket=bucket, Key="sum/default", Body=body)
        assert put.get("ChecksumCRC32") == crc or put.get("ChecksumCRC64NVME") or put.get("ChecksumCRC32C"), put
        stream = s3.put_object(Bucket=bucket, Key="sum/stream", Body=io.BytesIO(body), ChecksumAlgorithm="CRC32")
        assert stream["ChecksumCRC32"] == crc, stream
    upload = s3.create_multipart_upload(Bucket=bucket, Key="sum/multi", ChecksumAlgorithm="SHA256")["UploadId"]
    pieces = [b"a" * (5 * MIB), b"b" * 100]
    done = [s3.upload_part(Bucket=bucket, Key="sum/multi", UploadId=upload, PartNumber=n, Body=p, ChecksumAlgorithm="SHA256")
            for n, p in enumerate(pieces, 1)]
    s3.complete_multipart_upload(Bucket=bucket, Key="sum/multi", UploadId=upload, MultipartUpload={"Parts": [
        {"PartNumber": n, "ETag": d["ETag"], "ChecksumSHA256": d["ChecksumSHA256"]} for n, d in enumerate(done, 1)]})
    whole = hashlib.sha256(b"".join(hashlib.sha256(p).digest() for p in pieces)).digest()
    head = s3.head_object(Bucket=bucket, Key="sum/multi", ChecksumMode="ENABLED")
    assert head["ChecksumSHA256"] == base64.b64encode(whole).decode() + "-2", head


def metadata_and_conditions():
    s3.put_object(Bucket=bucket, Key="meta", Body=b"x", ContentType="text/x", CacheControl="no-store", ContentDisposition="inline",
                  ContentEncoding="gzip", ContentLanguage="de", Metadata={"colour": "blue", "empty": ""})
    head = s3.head_object(Bucket=bucket, Key="meta")
    assert (head["ContentType"], head["CacheControl"], head["ContentDisposition"], head["ContentEncoding"], head["ContentLanguage"]) == (
        "text/x", "no-store", "inline", "gzip", "de"), head
    assert head["Metadata"] == {"colour": "blue", "empty": ""}, head
    s3.copy_object(Bucket=bucket, Key="meta2", CopySource={"Bucket": bucket, "Key": "meta"})
    assert s3.head_object(Bucket=bucket, Key="meta2")["Metadata"]["colour"] == "blue"
    s3.copy_object(Bucket=bucket, Key="meta2", CopySource={"Bucket": bucket, "Key": "meta"}, MetadataDirective="REPLACE",
                   Metadata={"other": "1"})
    assert s3.head_object(Bucket=bucket, Key="meta2")["Metadata"] == {"other": "1"}
    etag = head["ETag"]
    fails("304", 304, s3.get_object, Bucket=bucket, Key="meta", IfNoneMatch=etag)
    fails("PreconditionFailed", 412, s3.get_object, Bucket=bucket, Key="meta", IfMatch='"0"')
    assert s3.get_object(Bucket=bucket, Key="meta", IfMatch=etag)["Body"].read() == b"x"
    assert s3.get_object(Bucket=bucket, Key="meta", ResponseContentType="a/b")["ContentType"] == "a/b"


def newer_features():
    """Conditional deletes, whole-object checksums of multipart uploads, attributes, buckets by prefix."""
    if version < (1, 40):
        return
    body = b"hello world"
    crc = base64.b64encode(binascii.crc32(body).to_bytes(4, "big")).decode()
    upload = s3.create_multipart_upload(Bucket=bucket, Key="full", ChecksumAlgorithm="CRC32", ChecksumType="FULL_OBJECT")["UploadId"]
    part = s3.upload_part(Bucket=bucket, Key="full", UploadId=upload, PartNumber=1, Body=body)
    whole = {"Bucket": bucket, "Key": "full", "UploadId": upload, "ChecksumType": "FULL_OBJECT", "MpuObjectSize": len(body),
             "MultipartUpload": {"Parts": [{"PartNumber": 1, "ETag": part["ETag"], "ChecksumCRC32": part["ChecksumCRC32"]}]}}
    fails("BadDigest", 400, s3.complete_multipart_upload, ChecksumCRC32="AAAAAA==", **whole)
    done = s3.complete_multipart_upload(ChecksumCRC32=crc, IfNoneMatch="*", **whole)
    assert (done["ChecksumCRC32"], done["ChecksumType"]) == (crc, "FULL_OBJECT"), done
    told = s3.get_object_attributes(Bucket=bucket, Key="full", ObjectAttributes=["ETag", "Checksum", "ObjectParts", "ObjectSize"])
    assert (told["ETag"], told["ObjectSize"], told["Checksum"]["ChecksumCRC32"], told["ObjectParts"]["TotalPartsCount"]) == (
        done["ETag"].strip('"'), len(body), crc, 1), told
    assert s3.head_object(Bucket=bucket, Key="full", PartNumber=1)["PartsCount"] == 1
    fails("PreconditionFailed", 412, s3.delete_object, Bucket=bucket, Key="full", IfMatch='"0"')
    fails("PreconditionFailed", 412, s3.put_object, Bucket=bucket, Key="full", Body=b"", IfNoneMatch="*")
    s3.delete_object(Bucket=bucket, Key="full", IfMatch="*")
    fails("NoSuchKey", 404, s3.delete_object, Bucket=bucket, Key="full", IfMatch="*")
    assert [b["Name"] for b in s3.list_buckets(Prefix=bucket)["Buckets"]] == [bucket]
    assert s3.list_buckets(Prefix="no-such-prefix")["Buckets"] == []
    fails("NotImplemented", 501, s3.create_multipart_upload, Bucket=bucket, Key="full", ServerSideEncryption="AES256")


def errors():
    fails("NoSuchKey", 404, s3.get_object, Bucket=bucket, Key="missing")
    fails("404", 404, s3.head_object, Bucket=bucket, Key="missing")
    fails("NoSuchBucket", 404, s3.list_objects_v2, Bucket=bucket + "-missing")
    fails("NoSuchUpload", 404, s3.list_parts, Bucket=bucket, Key="k", UploadId="no-such-upload")
    fails("BucketNotEmpty", 409, s3.delete_bucket, Bucket=bucket)
    fails("InvalidRange", 416, s3.get_object, Bucket=bucket, Key="meta", Range="bytes=5-6")
    stranger = boto3.client("s3", endpoint_url=endpoint, aws_access_key_id="NOBODY", aws_secret_access_key="nothing")
    fails("InvalidAccessKeyId", 403, stranger.list_objects_v2, Bucket=bucket)
    liar = boto3.client("s3", endpoint_url=endpoint, aws_secret_access_key="wrong",
                        aws_access_key_id=s3._request_signer._credentials.access_key)
    fails("SignatureDoesNotMatch", 403, liar.list_objects_v2, Bucket=bucket)


def listings():
    keys = [f"list/{d}/{i:03}" for d in "abc" for i in range(40)]
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=b"")
    seen = [o["Key"] for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="list/", PaginationConfig={"PageSize": 7})
            for o in page["Contents"]]
    assert seen == keys, seen
    seen = [o["Key"] for page in s3.get_paginator("list_objects").paginate(Bucket=bucket, Prefix="list/", PaginationConfig={"PageSize": 7})
            for o in page["Contents"]]
    assert seen == keys, seen
    prefixes = [p["Prefix"] for page in s3.get_paginator("list_objects_v2").paginate(
        Bucket=bucket, Prefix="list/", Delimiter="/", PaginationConfig={"PageSize": 1}) for p in page.get("CommonPrefixes", [])]
    assert prefixes == ["list/a/", "list/b/", "list/c/"], prefixes
    gone = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": k} for k in keys], "Quiet": False})
    assert len(gone["Deleted"]) == len(keys) and not gone.get("Errors"), gone
    assert s3.list_objects_v2(Bucket=bucket, Prefix="list/")["KeyCount"] == 0


def presigned():
    import urllib.request
    # boto3 presigns with the retired version 2 unless told otherwise.
    s3 = boto3.client("s3", endpoint_url=endpoint, config=Config(s3={"addressing_style": "path"}, signature_version="s3v4"))
    url = s3.generate_presigned_url("put_object", Params={"Bucket": bucket, "Key": "pre signed+ü"}, ExpiresIn=60)
    urllib.request.urlopen(urllib.request.Request(url, data=b"presigned", method="PUT", headers={"Content-Type": "text/plain"}), timeout=30).close()
    url = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "pre signed+ü"}, ExpiresIn=60)
    assert urllib.request.urlopen(url, timeout=30).read() == b"presigned"


for step in (sizes_and_etags, transfers, checksums, metadata_and_conditions, newer_features, errors, listings, presigned):
    print("  ", step.__name__, flush=True)
    step()
print("ok")
