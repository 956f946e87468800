#include "gateway/s3/error.h"

#include <array>

#include "base/assert.h"

namespace cairn::s3 {
namespace {

// In the order of the enumeration (checked below).
constexpr std::array kCodes = {
    CodeInfo{Code::AccessDenied, "AccessDenied", 403, "Access Denied"},
    CodeInfo{Code::AuthorizationHeaderMalformed, "AuthorizationHeaderMalformed", 400,
             "The authorization header that you provided is not valid."},
    CodeInfo{Code::AuthorizationQueryParametersError, "AuthorizationQueryParametersError", 400,
             "The authorization query parameters that you provided are not valid."},
    CodeInfo{Code::BadDigest, "BadDigest", 400, "The checksum that you specified does not match what was received."},
    CodeInfo{Code::BucketAlreadyExists, "BucketAlreadyExists", 409,
             "The bucket name is taken by another owner. Choose a different name."},
    CodeInfo{Code::BucketAlreadyOwnedByYou, "BucketAlreadyOwnedByYou", 409, "You already own this bucket."},
    CodeInfo{Code::BucketNotEmpty, "BucketNotEmpty", 409, "The bucket that you tried to delete is not empty."},
    CodeInfo{Code::ConditionalRequestConflict, "ConditionalRequestConflict", 409,
             "Another change of the same key was under way. Try again."},
    CodeInfo{Code::EntityTooLarge, "EntityTooLarge", 400, "The upload exceeds the largest allowed object size."},
    CodeInfo{Code::EntityTooSmall, "EntityTooSmall", 400,
             "A part other than the last one is smaller than the smallest allowed size."},
    CodeInfo{Code::IncompleteBody, "IncompleteBody", 400,
             "The body does not have the number of bytes that the headers announced."},
    CodeInfo{Code::InsufficientStorage, "InsufficientStorage", 507,
             "The storage is full. Delete objects or add devices."},
    CodeInfo{Code::InternalError, "InternalError", 500, "The server met an internal error. Please try again."},
    CodeInfo{Code::InvalidAccessKeyId, "InvalidAccessKeyId", 403, "The access key does not exist."},
    CodeInfo{Code::InvalidArgument, "InvalidArgument", 400, "Invalid Argument"},
    CodeInfo{Code::InvalidBucketName, "InvalidBucketName", 400, "The bucket name is not valid."},
    CodeInfo{Code::InvalidDigest, "InvalidDigest", 400, "The Content-MD5 or checksum value is not valid."},
    CodeInfo{Code::InvalidPart, "InvalidPart", 400,
             "A part was not found, or its ETag does not match the one that was uploaded."},
    CodeInfo{Code::InvalidPartOrder, "InvalidPartOrder", 400, "The parts are not listed in ascending order."},
    CodeInfo{Code::InvalidRange, "InvalidRange", 416, "The requested range can't be satisfied."},
    CodeInfo{Code::InvalidRequest, "InvalidRequest", 400, "Invalid Request"},
    CodeInfo{Code::InvalidStorageClass, "InvalidStorageClass", 400,
             "This server has the storage class STANDARD and takes REDUCED_REDUNDANCY for it."},
    CodeInfo{Code::InvalidURI, "InvalidURI", 400, "The URI could not be parsed."},
    CodeInfo{Code::KeyTooLongError, "KeyTooLongError", 400, "The key is longer than 1,024 bytes."},
    CodeInfo{Code::MalformedTrailerError, "MalformedTrailerError", 400,
             "The trailer is not well-formed or does not match the announced one."},
    CodeInfo{Code::MalformedXML, "MalformedXML", 400,
             "The XML is not well-formed or does not match the published schema."},
    CodeInfo{Code::MaxMessageLengthExceeded, "MaxMessageLengthExceeded", 400, "The request body is too large."},
    CodeInfo{Code::MetadataTooLarge, "MetadataTooLarge", 400, "The user metadata exceeds 2 KiB."},
    CodeInfo{Code::MethodNotAllowed, "MethodNotAllowed", 405, "The method is not allowed on this resource."},
    CodeInfo{Code::MissingContentLength, "MissingContentLength", 411, "The Content-Length header is required."},
    CodeInfo{Code::MissingContentMD5, "MissingContentMD5", 400,
             "This request needs a Content-MD5 or x-amz-checksum header."},
    CodeInfo{Code::MissingRequestBodyError, "MissingRequestBodyError", 400, "The request body is empty."},
    CodeInfo{Code::MissingSecurityHeader, "MissingSecurityHeader", 400, "A required header is missing."},
    CodeInfo{Code::NoSuchBucket, "NoSuchBucket", 404, "The bucket does not exist."},
    CodeInfo{Code::NoSuchBucketPolicy, "NoSuchBucketPolicy", 404, "The bucket has no policy."},
    CodeInfo{Code::NoSuchCORSConfiguration, "NoSuchCORSConfiguration", 404, "The bucket has no CORS configuration."},
    CodeInfo{Code::NoSuchKey, "NoSuchKey", 404, "The key does not exist."},
    CodeInfo{Code::NoSuchLifecycleConfiguration, "NoSuchLifecycleConfiguration", 404,
             "The bucket has no lifecycle configuration."},
    CodeInfo{Code::NoSuchPublicAccessBlockConfiguration, "NoSuchPublicAccessBlockConfiguration", 404,
             "The bucket has no public access block configuration."},
    CodeInfo{Code::NoSuchTagSet, "NoSuchTagSet", 404, "There is no tag set."},
    CodeInfo{Code::NoSuchUpload, "NoSuchUpload", 404,
             "The upload does not exist. It may have been completed or aborted."},
    CodeInfo{Code::NoSuchWebsiteConfiguration, "NoSuchWebsiteConfiguration", 404,
             "The bucket has no website configuration."},
    CodeInfo{Code::NotImplemented, "NotImplemented", 501, "This server does not have what the request asks for."},
    CodeInfo{Code::ObjectLockConfigurationNotFoundError, "ObjectLockConfigurationNotFoundError", 404,
             "The bucket has no object lock configuration."},
    CodeInfo{Code::OperationAborted, "OperationAborted", 409,
             "A conflicting operation on this resource is under way. Try again."},
    CodeInfo{Code::OwnershipControlsNotFoundError, "OwnershipControlsNotFoundError", 404,
             "The bucket has no ownership controls."},
    CodeInfo{Code::PreconditionFailed, "PreconditionFailed", 412, "A precondition of the request does not hold."},
    CodeInfo{Code::ReplicationConfigurationNotFoundError, "ReplicationConfigurationNotFoundError", 404,
             "The bucket has no replication configuration."},
    CodeInfo{Code::RequestHeaderSectionTooLarge, "RequestHeaderSectionTooLarge", 400,
             "The request's headers are too large."},
    CodeInfo{Code::RequestTimeTooSkewed, "RequestTimeTooSkewed", 403,
             "The request's time differs from the server's by more than 15 minutes. Check the clock."},
    CodeInfo{Code::RequestTimeout, "RequestTimeout", 400, "The body was not received in time."},
    CodeInfo{Code::ServerSideEncryptionConfigurationNotFoundError, "ServerSideEncryptionConfigurationNotFoundError",
             404, "The bucket has no encryption configuration."},
    CodeInfo{Code::ServiceUnavailable, "ServiceUnavailable", 503, "The service is not available now. Try again."},
    CodeInfo{Code::SignatureDoesNotMatch, "SignatureDoesNotMatch", 403,
             "The calculated signature does not match the one provided. Check the secret key and the signing method."},
    CodeInfo{Code::SlowDown, "SlowDown", 503, "Please reduce your request rate."},
    CodeInfo{Code::UnexpectedContent, "UnexpectedContent", 400, "This request does not take a body."},
    CodeInfo{Code::XAmzContentChecksumMismatch, "XAmzContentChecksumMismatch", 400,
             "The checksum that you specified does not match what was received."},
    CodeInfo{Code::XAmzContentSHA256Mismatch, "XAmzContentSHA256Mismatch", 400,
             "The x-amz-content-sha256 header does not match what was received."},
};

constexpr bool in_order() {
  for (size_t i = 0; i < kCodes.size(); ++i) {
    if (static_cast<size_t>(kCodes[i].code) != i) return false;
  }
  return kCodes.size() == static_cast<size_t>(Code::XAmzContentSHA256Mismatch) + 1;
}
static_assert(in_order());

}  // namespace

const CodeInfo& code_info(Code code) {
  const auto index = static_cast<size_t>(code);
  ASSERT(index < kCodes.size());
  return kCodes[index];
}

}  // namespace cairn::s3
