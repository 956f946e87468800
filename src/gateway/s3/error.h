// S3's errors: one table of codes, HTTP statuses and default texts.
// Reference: the error list of the Amazon S3 API ("Error responses").
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"  // TRY, CO_TRY

namespace cairn::s3 {

enum class Code : uint8_t {
  AccessDenied,
  AuthorizationHeaderMalformed,
  AuthorizationQueryParametersError,
  BadDigest,
  BucketAlreadyExists,
  BucketAlreadyOwnedByYou,
  BucketNotEmpty,
  ConditionalRequestConflict,
  EntityTooLarge,
  EntityTooSmall,
  IncompleteBody,
  InsufficientStorage,
  InternalError,
  InvalidAccessKeyId,
  InvalidArgument,
  InvalidBucketName,
  InvalidDigest,
  InvalidPart,
  InvalidPartOrder,
  InvalidRange,
  InvalidRequest,
  InvalidStorageClass,
  InvalidURI,
  KeyTooLongError,
  MalformedTrailerError,
  MalformedXML,
  MaxMessageLengthExceeded,
  MetadataTooLarge,
  MethodNotAllowed,
  MissingContentLength,
  MissingContentMD5,
  MissingRequestBodyError,
  MissingSecurityHeader,
  NoSuchBucket,
  NoSuchBucketPolicy,
  NoSuchCORSConfiguration,
  NoSuchKey,
  NoSuchLifecycleConfiguration,
  NoSuchPublicAccessBlockConfiguration,
  NoSuchTagSet,
  NoSuchUpload,
  NoSuchWebsiteConfiguration,
  NotImplemented,
  ObjectLockConfigurationNotFoundError,
  OperationAborted,
  OwnershipControlsNotFoundError,
  PreconditionFailed,
  ReplicationConfigurationNotFoundError,
  RequestHeaderSectionTooLarge,
  RequestTimeTooSkewed,
  RequestTimeout,
  ServerSideEncryptionConfigurationNotFoundError,
  ServiceUnavailable,
  SignatureDoesNotMatch,
  SlowDown,
  UnexpectedContent,
  XAmzContentChecksumMismatch,
  XAmzContentSHA256Mismatch,
};

struct CodeInfo {
  Code code;
  std::string_view name;     // as it stands in <Code>
  int status;                // HTTP
  std::string_view message;  // the default <Message>
};
const CodeInfo& code_info(Code code);

// An answer to the client: a code and, where the default text doesn't say enough, a better one.
class [[nodiscard]] S3Error {
 public:
  explicit S3Error(Code code) : code_(code) {}
  S3Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  Code code() const { return code_; }
  int status() const { return code_info(code_).status; }
  std::string_view name() const { return code_info(code_).name; }
  std::string_view message() const { return message_.empty() ? code_info(code_).message : message_; }

 private:
  Code code_;
  std::string message_;
};

// Like cairn::Result, for functions whose errors are answers to an S3 client. TRY and CO_TRY work with it.
template <typename T>
class [[nodiscard]] S3Result : public std::expected<T, S3Error> {
 public:
  using std::expected<T, S3Error>::expected;
  // NOLINTNEXTLINE(google-explicit-constructor): `return S3Error(...)` must read like that
  S3Result(S3Error error) : std::expected<T, S3Error>(std::unexpected(std::move(error))) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  S3Result(Code code) : S3Result(S3Error(code)) {}
};

}  // namespace cairn::s3
