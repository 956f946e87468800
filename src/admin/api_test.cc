#include "admin/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "kv/test_loop.h"

namespace cairn::admin {
namespace {

using nlohmann::json;
using object::BucketInfo;
using object::CallContext;
using testing::HasSubstr;

// Buckets and keys in maps; fails whole when `outage` is set. Objects exist only as sizes, listed in pages of two.
class FakeObjects final : public object::ObjectStore {
 public:
  Errc outage = Errc::ok;
  std::map<std::string, BucketInfo> buckets;
  std::map<std::string, std::map<std::string, uint64_t>> sizes;
  std::map<std::string, AccessKey> keys;

  Task<Result<BucketInfo>> create_bucket(std::string name, std::string owner, CallContext) override {
    if (outage != Errc::ok) co_return Error(outage);
    if (buckets.contains(name)) co_return Error(Errc::already_exists);
    co_return buckets[name] = BucketInfo{name, owner, 7};
  }
  Task<Result<BucketInfo>> head_bucket(std::string name, CallContext) override {
    if (!buckets.contains(name)) co_return Error(Errc::not_found, "bucket");
    co_return buckets[name];
  }
  Task<Result<void>> remove_bucket(std::string name, CallContext) override {
    if (!buckets.contains(name)) co_return Error(Errc::not_found);
    if (!sizes[name].empty()) co_return Error(Errc::condition_failed);
    buckets.erase(name);
    co_return Result<void>();
  }
  Task<Result<std::vector<BucketInfo>>> list_buckets(CallContext) override {
    if (outage != Errc::ok) co_return Error(outage);
    std::vector<BucketInfo> list;
    for (const auto& [name, info] : buckets) list.push_back(info);
    co_return list;
  }
  Task<Result<object::ListResult>> list(std::string bucket, object::ListQuery query, CallContext) override {
    object::ListResult result;
    for (auto it = sizes[bucket].upper_bound(query.start_after); it != sizes[bucket].end(); ++it) {
      if (result.objects.size() == 2) {
        result.truncated = true;
        break;
      }
      object::ObjectInfo info;
      info.key = it->first;
      info.size = it->second;
      result.next = it->first;
      result.objects.push_back(info);
    }
    co_return result;
  }
  Task<Result<void>> put_access_key(AccessKey key, CallContext) override {
    if (keys.contains(key.access_key)) co_return Error(Errc::already_exists);
    keys[key.access_key] = key;
    co_return Result<void>();
  }
  Task<Result<AccessKey>> get_access_key(std::string, CallContext) override { co_return Errc::unsupported; }
  Task<Result<void>> remove_access_key(std::string key, CallContext) override {
    if (keys.erase(key) == 0) co_return Error(Errc::not_found);
    co_return Result<void>();
  }
  Task<Result<std::vector<AccessKey>>> list_access_keys(CallContext) override {
    std::vector<AccessKey> list;
    for (const auto& [name, key] : keys) list.push_back(key);
    co_return list;
  }

  // Not for the admin API.
  Task<Result<std::unique_ptr<object::Writer>>> put(std::string, std::string, CallContext) override {
    co_return Errc::unsupported;
  }
  Task<Result<object::ObjectInfo>> head(std::string, std::string, CallContext) override { co_return Errc::unsupported; }
  Task<Result<std::unique_ptr<object::Reader>>> open(std::string, std::string, object::RangeChooser*,
                                                     CallContext) override {
    co_return Errc::unsupported;
  }
  Task<Result<void>> remove(std::string, std::string, object::WriteConditions, CallContext) override {
    co_return Errc::unsupported;
  }
  Task<Result<std::string>> create_upload(std::string, std::string, UploadOptions, CallContext) override {
    co_return Errc::unsupported;
  }
  Task<Result<UploadOptions>> head_upload(std::string, std::string, std::string, CallContext) override {
    co_return Errc::unsupported;
  }
  Task<Result<std::unique_ptr<object::Writer>>> put_part(std::string, std::string, std::string, uint32_t,
                                                         CallContext) override {
    co_return Errc::unsupported;
  }
  Task<Result<PartList>> list_parts(std::string, std::string, std::string, uint32_t, size_t, CallContext) override {
    co_return Errc::unsupported;
  }
  Task<Result<object::ObjectInfo>> complete_upload(std::string, std::string, std::string, Completion,
                                                   CallContext) override {
    co_return Errc::unsupported;
  }
  Task<Result<void>> abort_upload(std::string, std::string, std::string, CallContext) override {
    co_return Errc::unsupported;
  }
  Task<Result<UploadList>> list_uploads(std::string, UploadQuery, CallContext) override { co_return Errc::unsupported; }
};

class FakeNode final : public NodeView {
 public:
  Errc state = Errc::ok;
  std::string shard_health = "ok";

  Task<Result<NodeStatus>> status() override {
    NodeStatus s;
    s.uptime_seconds = 5;
    s.replicas = 1;
    ShardStatus first;
    first.total_bytes = 40;
    first.used_bytes = 10;
    first.reserve_bytes = 5;
    first.health = "ok";
    ShardStatus second;
    second.id = 1;
    second.total_bytes = 40;
    second.freeing_bytes = 7;
    second.reserve_bytes = 5;
    second.health = shard_health;
    DeviceStatus device;
    device.path = "/d0";
    device.shards = {first, second};
    s.devices = {device};
    s.gateways = {{"s3", "127.0.0.1:9000"}};
    co_return s;
  }
  std::vector<ConfigRow> config() const override { return {{"reactors", "1", "auto", "--set", "number", "threads"}}; }
  std::string metrics() override { return "up 1\n"; }
  Result<void> ready() const override {
    if (state != Errc::ok) return Error(state, "starting");
    return {};
  }
  Task<Result<void>> checkpoint() override {
    if (state != Errc::ok) co_return Error(state, "device d0 is fenced");
    co_return Result<void>();
  }
  Task<Result<object::OrphanReport>> check_orphans() override {
    object::OrphanReport report;
    report.chunks = 10;
    report.orphans = 1;
    report.examples = {"abc"};
    co_return report;
  }
};

class ApiTest : public testing::Test {
 protected:
  class FixedClock final : public WallClock {
   public:
    int64_t unix_ns() const override { return 42; }
  };

  Response call(std::string method, std::string path, std::string body = "", std::string authorization = "Bearer token",
                bool from_loopback = false) {
    std::string query;
    if (const auto at = path.find('?'); at != std::string::npos) {
      query = path.substr(at + 1);
      path.resize(at);
    }
    return loop_.run(&Api::handle, &api_,
                     Request{std::move(method), std::move(path), std::move(query), std::move(authorization),
                             std::move(body), from_loopback});
  }
  // The status and the error's code, "200 " without one.
  std::string outcome(const Response& response) {
    const json body = json::parse(response.body, nullptr, false);
    return std::to_string(response.status) + " " +
           (body.is_object() && body.contains("error") ? body["error"]["code"].get<std::string>() : "");
  }

  kv::TestLoop loop_;
  FakeObjects objects_;
  FakeNode node_;
  FixedClock wall_clock_;
  SeededRng rng_{1};
  Api api_{{node_, objects_, loop_, wall_clock_, rng_}, "token"};
};

TEST_F(ApiTest, EverythingUnderV1AsksForTheToken) {
  for (const char* path : {"/v1/status", "/v1/config", "/v1/buckets", "/v1/keys", "/v1/nonsense"}) {
    for (const char* authorization :
         {"", "token", "Bearer ", "Bearer toke", "Bearer tokenn", "Basic token", "bearer token"}) {
      EXPECT_EQ(outcome(call("GET", path, "", authorization, true)), "401 unauthenticated") << path << authorization;
    }
  }
  EXPECT_EQ(outcome(call("PATCH", "/v1/keys", "", "", true)), "401 unauthenticated");
  EXPECT_EQ(call("GET", "/healthz", "", "").status, 200);
  EXPECT_EQ(call("GET", "/readyz", "", "").status, 200);
}

TEST_F(ApiTest, MetricsAreOpenOnLoopbackOnly) {
  EXPECT_EQ(call("GET", "/metrics", "", "", true).body, "up 1\n");
  EXPECT_EQ(outcome(call("GET", "/metrics", "", "", false)), "401 unauthenticated");
  EXPECT_EQ(call("GET", "/metrics", "", "Bearer token", false).status, 200);
}

TEST_F(ApiTest, PathsAndMethods) {
  const auto wrong = call("PUT", "/v1/keys");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.allow, "GET, POST");
  for (const char* path : {"/", "", "/v1", "/v1/", "/v2/status", "/v1/status/", "/v1/buckets/", "/v1/buckets/a/b"}) {
    EXPECT_EQ(outcome(call("GET", path)), "404 not_found") << path;
  }
  EXPECT_EQ(call("HEAD", "/v1/status").status, 200);
}

TEST_F(ApiTest, StatusAddsUp) {
  auto body = json::parse(call("GET", "/v1/status").body);
  EXPECT_EQ(body["health"], "ok");
  EXPECT_EQ(body["pools"][0]["total_bytes"], 80);
  EXPECT_EQ(body["pools"][0]["used_bytes"], 17);
  EXPECT_EQ(body["pools"][0]["available_bytes"], 80 - 17 - 10);
  EXPECT_EQ(body["gateways"][0]["address"], "127.0.0.1:9000");
  node_.shard_health = "device_fenced: a write failed";
  body = json::parse(call("GET", "/v1/status").body);
  EXPECT_EQ(body["health"], "degraded");
  EXPECT_EQ(body["problems"][0], "device /d0, shard 1: device_fenced: a write failed");
}

TEST_F(ApiTest, ReadinessAndMaintenance) {
  EXPECT_EQ(json::parse(call("POST", "/v1/check/orphans").body)["orphans"], 1);
  EXPECT_EQ(call("POST", "/v1/checkpoint").status, 200);
  EXPECT_EQ(json::parse(call("GET", "/v1/config").body)["settings"][0]["origin"], "--set");
  node_.state = Errc::device_fenced;
  EXPECT_EQ(call("GET", "/readyz").status, 503);
  EXPECT_EQ(outcome(call("POST", "/v1/checkpoint")), "500 device_fenced");
}

TEST_F(ApiTest, BucketsLiveAndDie) {
  EXPECT_EQ(call("POST", "/v1/buckets", R"({"name": "photos"})").status, 201);
  EXPECT_EQ(outcome(call("POST", "/v1/buckets", R"({"name": "photos"})")), "409 already_exists");
  EXPECT_EQ(json::parse(call("GET", "/v1/buckets").body)["buckets"].size(), 1u);
  for (int i = 0; i < 5; ++i) objects_.sizes["photos"]["key" + std::to_string(i)] = 10;
  const auto info = json::parse(call("GET", "/v1/buckets/photos?count=true").body);
  EXPECT_EQ(info["objects"], 5);
  EXPECT_EQ(info["bytes"], 50);
  EXPECT_FALSE(json::parse(call("GET", "/v1/buckets/photos").body).contains("objects"));
  EXPECT_EQ(outcome(call("GET", "/v1/buckets/photos?size=1")), "400 invalid_argument");
  EXPECT_EQ(outcome(call("DELETE", "/v1/buckets/photos")), "409 condition_failed");
  objects_.sizes.clear();
  EXPECT_EQ(call("DELETE", "/v1/buckets/photos").status, 200);
  EXPECT_EQ(outcome(call("DELETE", "/v1/buckets/photos")), "404 not_found");
  EXPECT_EQ(outcome(call("GET", "/v1/buckets/photos")), "404 not_found");
  objects_.outage = Errc::unavailable;
  EXPECT_EQ(outcome(call("GET", "/v1/buckets")), "503 unavailable");
  objects_.outage = Errc::no_space;
  EXPECT_EQ(outcome(call("POST", "/v1/buckets", R"({"name": "photos"})")), "507 no_space");
}

TEST_F(ApiTest, BucketNamesFollowTheRules) {
  const std::string long_name(64, 'a');
  for (const std::string name : {"", "ab", "Photos", "-abc", "abc-", ".abc", "a..b", "192.168.1.1", "a_b", "a b", "ä-b",
                                 "a/b", long_name.c_str()}) {
    EXPECT_EQ(outcome(call("POST", "/v1/buckets", json{{"name", name}}.dump())), "400 invalid_argument") << name;
  }
  for (const std::string name : {"abc", "a.b", "a-b-c", "1.2.3", "192.168.1.1a"}) {
    EXPECT_EQ(call("POST", "/v1/buckets", json{{"name", name}}.dump()).status, 201) << name;
  }
}

TEST_F(ApiTest, BadBodiesAreRefused) {
  const std::string big = R"({"name": ")" + std::string(Api::kMaxBodyBytes, 'a') + "\"}";
  EXPECT_EQ(outcome(call("POST", "/v1/buckets", big)), "413 too_large");
  for (const char* body : {"{", "[]", "null", "7", R"({"name": 7})", R"({"name": "abc", "extra": 1})", "\xff\xfe",
                           R"({"name": "abc"} x)"}) {
    EXPECT_EQ(outcome(call("POST", "/v1/buckets", body)), "400 invalid_argument") << body;
  }
  // Nested a thousand deep: the parser must not run out of stack.
  EXPECT_EQ(outcome(call("POST", "/v1/buckets", std::string(30'000, '['))), "400 invalid_argument");
  EXPECT_TRUE(objects_.buckets.empty());
}

TEST_F(ApiTest, SecretsAreShownOnce) {
  const auto created = json::parse(call("POST", "/v1/keys", R"({"note": "for backups"})").body);
  EXPECT_EQ(created["access_key"].get<std::string>().size(), 20u);
  EXPECT_EQ(created["secret_key"].get<std::string>().size(), 40u);
  EXPECT_EQ(created["created_unix_ns"], 42);
  const auto listed = call("GET", "/v1/keys").body;
  EXPECT_THAT(listed, HasSubstr("for backups"));
  EXPECT_THAT(listed, Not(HasSubstr(created["secret_key"].get<std::string>())));
  const std::string path = "/v1/keys/" + created["access_key"].get<std::string>();
  EXPECT_EQ(call("DELETE", path).status, 200);
  EXPECT_EQ(outcome(call("DELETE", path)), "404 not_found");
}

TEST_F(ApiTest, GivenKeysAreChecked) {
  EXPECT_EQ(call("POST", "/v1/keys", R"({"access_key": "alice", "secret_key": "correct horse"})").status, 400);
  EXPECT_EQ(call("POST", "/v1/keys", R"({"access_key": "alice", "secret_key": "correct-horse"})").status, 201);
  EXPECT_EQ(outcome(call("POST", "/v1/keys", R"({"access_key": "alice"})")), "409 already_exists");
  for (const char* body : {R"({"access_key": "a/b"})", R"({"access_key": "ab"})", R"({"access_key": "a b c"})",
                           R"({"access_key": "alice2", "secret_key": "short"})", R"({"access_key": ["x"]})"}) {
    EXPECT_EQ(outcome(call("POST", "/v1/keys", body)), "400 invalid_argument") << body;
  }
  EXPECT_EQ(objects_.keys.size(), 1u);
  EXPECT_EQ(objects_.keys["alice"].secret_key, "correct-horse");
}

}  // namespace
}  // namespace cairn::admin
