// Access keys of S3 clients. A secret leaves the node once, in the answer to its creation.
#include <fmt/format.h>

#include "admin/api_routes.h"
#include "admin/secrets.h"

namespace cairn::admin {
namespace {

using nlohmann::json;

constexpr size_t kMaxNoteBytes = 256;

json to_json(const object::ObjectStore::AccessKey& key) {
  return {{"access_key", key.access_key}, {"created_unix_ns", key.created_unix_ns}, {"note", key.note}};
}

bool only_of(std::string_view text, std::string_view also) {
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && also.find(c) == std::string_view::npos) return false;
  }
  return true;
}

// S3 clients put the access key between slashes in the Authorization header, so it holds none of its separators.
Result<void> check_access_key(std::string_view key) {
  if (key.size() < 3 || key.size() > 128 || !only_of(key, "-_.")) {
    return Error(Errc::invalid_argument, "an access key has 3 to 128 letters, digits, '-', '_' and '.'");
  }
  return {};
}

Result<void> check_secret_key(std::string_view secret) {
  if (secret.size() < 8 || secret.size() > 128) {
    return Error(Errc::invalid_argument, "a secret key has 8 to 128 characters");
  }
  for (const char c : secret) {
    if (c < 0x21 || c > 0x7e) return Error(Errc::invalid_argument, "a secret key has only visible ASCII characters");
  }
  return {};
}

}  // namespace

Task<Response> Api::list_keys(const Call&) {
  const auto keys = co_await context_.objects.list_access_keys(call_context());
  if (!keys) co_return error_response(keys.error());
  json list = json::array();
  for (const auto& key : *keys) list.push_back(to_json(key));
  co_return json_response({{"keys", std::move(list)}});
}

Task<Response> Api::create_key(const Call& call) {
  const auto body = parse_body(call.request, {"access_key", "secret_key", "note"});
  if (!body) co_return error_response(body.error());
  const auto access_key = text_member(*body, "access_key", 128);
  if (!access_key) co_return error_response(access_key.error());
  const auto secret_key = text_member(*body, "secret_key", 128);
  if (!secret_key) co_return error_response(secret_key.error());
  const auto note = text_member(*body, "note", kMaxNoteBytes);
  if (!note) co_return error_response(note.error());

  object::ObjectStore::AccessKey key{.access_key = access_key->empty() ? random_access_key(context_.rng) : *access_key,
                                     .secret_key = secret_key->empty() ? random_secret_key(context_.rng) : *secret_key,
                                     .created_unix_ns = context_.wall_clock.unix_ns(),
                                     .note = *note};
  if (const auto valid = check_access_key(key.access_key); !valid) co_return error_response(valid.error());
  if (const auto valid = check_secret_key(key.secret_key); !valid) co_return error_response(valid.error());

  const auto put = co_await context_.objects.put_access_key(key, call_context());
  if (put.code() == Errc::already_exists) {
    co_return error_response(
        Error(Errc::already_exists, fmt::format("access key '{}' exists already", key.access_key)));
  }
  if (!put) co_return error_response(put.error());
  json answer = to_json(key);
  answer["secret_key"] = key.secret_key;
  co_return json_response(answer, 201);
}

Task<Response> Api::delete_key(const Call& call) {
  const std::string name(call.argument);
  const auto removed = co_await context_.objects.remove_access_key(name, call_context());
  if (removed.code() == Errc::not_found) {
    co_return error_response(Error(Errc::not_found, fmt::format("no access key '{}'", name)));
  }
  if (!removed) co_return error_response(removed.error());
  co_return json_response({{"deleted", name}});
}

}  // namespace cairn::admin
