// A current SDK at its defaults: flexible checksums with trailers on every upload. Arguments: endpoint, bucket.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import {
  CompleteMultipartUploadCommand, CopyObjectCommand, CreateMultipartUploadCommand, DeleteObjectsCommand, GetObjectCommand,
  HeadObjectCommand, ListObjectsV2Command, PutObjectCommand, S3Client, UploadPartCommand, paginateListObjectsV2,
} from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";

const [endpoint, bucket] = process.argv.slice(2);
const s3 = new S3Client({ endpoint, region: "us-east-1", forcePathStyle: true, maxAttempts: 1 });
const MIB = 1 << 20;
const bytes = (size) => Buffer.from(Uint8Array.from({ length: size }, (_, i) => (i * 31 + (i >> 12)) & 255));
const sha = (data) => createHash("sha256").update(data).digest("hex");
const fetchObject = async (Key, more = {}) => {
  const reply = await s3.send(new GetObjectCommand({ Bucket: bucket, Key, ChecksumMode: "ENABLED", ...more }));
  return { reply, body: Buffer.from(await reply.Body.transformToByteArray()) };
};

async function buffersAndDefaultChecksum() {
  for (const size of [0, 1, 5, 4096, 5 * MIB]) {
    const data = bytes(size);
    const put = await s3.send(new PutObjectCommand({ Bucket: bucket, Key: `js/${size}`, Body: data }));
    assert.ok(put.ChecksumCRC32, "the server returns the checksum that the client sent");
    const { reply, body } = await fetchObject(`js/${size}`);
    assert.equal(sha(body), sha(data), size);
    assert.equal(reply.ChecksumCRC32, put.ChecksumCRC32);
    const head = await s3.send(new HeadObjectCommand({ Bucket: bucket, Key: `js/${size}`, ChecksumMode: "ENABLED" }));
    assert.equal(head.ChecksumCRC32, put.ChecksumCRC32);
  }
}

// A stream goes out as aws-chunked with the checksum in the trailer.
async function streamWithTrailer() {
  for (const size of [0, 11, 65536, 3 * MIB + 1]) {
    const data = bytes(size);
    const pieces = [];
    for (let at = 0; at < size; at += 10000) pieces.push(data.subarray(at, at + 10000));
    await s3.send(new PutObjectCommand({ Bucket: bucket, Key: "js/stream", Body: Readable.from(pieces), ContentLength: size }));
    const { body } = await fetchObject("js/stream");
    assert.equal(sha(body), sha(data), size);
  }
}

async function everyAlgorithm() {
  for (const ChecksumAlgorithm of ["CRC32", "CRC32C", "SHA1", "SHA256"]) {
    const put = await s3.send(new PutObjectCommand({ Bucket: bucket, Key: "js/sum", Body: "hello world", ChecksumAlgorithm }));
    const { reply } = await fetchObject("js/sum");
    assert.ok(put[`Checksum${ChecksumAlgorithm}`]);
    assert.equal(reply[`Checksum${ChecksumAlgorithm}`], put[`Checksum${ChecksumAlgorithm}`]);
  }
  await assert.rejects(
    s3.send(new PutObjectCommand({ Bucket: bucket, Key: "js/sum", Body: "hello world", ChecksumCRC32: "AAAAAA==" })),
    (error) => error.name === "BadDigest" && error.$metadata.httpStatusCode === 400);
}

async function parallelUpload() {
  const data = bytes(17 * MIB + 3);
  const upload = new Upload({
    client: s3, queueSize: 3, partSize: 5 * MIB,
    params: { Bucket: bucket, Key: "js/upload", Body: Readable.from([data.subarray(0, 9 * MIB), data.subarray(9 * MIB)]) },
  });
  const done = await upload.done();
  assert.match(done.ETag, /-4"$/);
  const { body } = await fetchObject("js/upload");
  assert.equal(sha(body), sha(data));
  const { body: middle } = await fetchObject("js/upload", { Range: `bytes=${5 * MIB - 7}-${5 * MIB + 6}` });
  assert.deepEqual(middle, data.subarray(5 * MIB - 7, 5 * MIB + 7));
}

async function fullObjectChecksumOfMultipart() {
  const { UploadId } = await s3.send(new CreateMultipartUploadCommand({
    Bucket: bucket, Key: "js/full", ChecksumAlgorithm: "CRC32", ChecksumType: "FULL_OBJECT" }));
  const parts = [bytes(5 * MIB), bytes(77)];
  const Parts = [];
  for (const [index, Body] of parts.entries()) {
    const part = await s3.send(new UploadPartCommand({ Bucket: bucket, Key: "js/full", UploadId, PartNumber: index + 1, Body }));
    Parts.push({ PartNumber: index + 1, ETag: part.ETag });
  }
  const whole = await s3.send(new PutObjectCommand({ Bucket: bucket, Key: "js/full-reference", Body: Buffer.concat(parts) }));
  const done = await s3.send(new CompleteMultipartUploadCommand({ Bucket: bucket, Key: "js/full", UploadId, MultipartUpload: { Parts } }));
  assert.equal(done.ChecksumCRC32, whole.ChecksumCRC32);
}

async function keysAndListings() {
  const names = ["a+b", "a b", "100%", "te st%20x", "a//b", "/lead", "./a", "../a", "a/..", "é", "e\u0301", "日本", "<&>'\"", "x".repeat(1024)];
  for (const Key of names) {
    await s3.send(new PutObjectCommand({ Bucket: bucket, Key, Body: Key }));
    const { body } = await fetchObject(Key);
    assert.equal(body.toString(), Key);
  }
  const seen = [];
  for await (const page of paginateListObjectsV2({ client: s3, pageSize: 3 }, { Bucket: bucket }))
    seen.push(...page.Contents.map((o) => o.Key));
  for (const name of names) assert.ok(seen.includes(name), name);
  assert.deepEqual(seen, [...seen].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))), "exact byte order");
  const copied = await s3.send(new CopyObjectCommand({ Bucket: bucket, Key: "copied", CopySource: `${bucket}/${encodeURIComponent("te st%20x")}` }));
  assert.ok(copied.CopyObjectResult.ETag);
  assert.equal((await fetchObject("copied")).body.toString(), "te st%20x");
  const gone = await s3.send(new DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects: names.map((Key) => ({ Key })) } }));
  assert.equal(gone.Deleted.length, names.length);
  assert.equal((await s3.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: "x" }))).KeyCount, 0);
}

async function conditional() {
  const put = () => s3.send(new PutObjectCommand({ Bucket: bucket, Key: "js/once", Body: "1", IfNoneMatch: "*" }));
  await put();
  await assert.rejects(put(), (error) => error.$metadata.httpStatusCode === 412);
}

async function presigned() {
  const put = await getSignedUrl(s3, new PutObjectCommand({ Bucket: bucket, Key: "js/presigned + ü" }), { expiresIn: 60 });
  assert.equal((await fetch(put, { method: "PUT", body: "presigned" })).status, 200);
  const get = await getSignedUrl(s3, new GetObjectCommand({ Bucket: bucket, Key: "js/presigned + ü" }), { expiresIn: 60 });
  assert.equal(await (await fetch(get)).text(), "presigned");
}

for (const step of [buffersAndDefaultChecksum, streamWithTrailer, everyAlgorithm, parallelUpload, fullObjectChecksumOfMultipart,
  keysAndListings, conditional, presigned]) {
  console.log("  ", step.name);
  await step();
}
console.log("ok");
