#include "node/data_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "node/device_file.h"
#include "node/files.h"
#include "node/ready_file.h"

namespace cairn::node {
namespace {

using testing::HasSubstr;

class FixedClock final : public WallClock {
 public:
  int64_t unix_ns() const override { return 1'700'000'000'000'000'000; }
};

class DataDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/cairn-node-test-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    base_ = pattern;
    path_ = base_ + "/data";
  }
  void TearDown() override { std::filesystem::remove_all(base_); }

  Result<DataDirectory> open() { return DataDirectory::open(path_, rng_, clock_); }
  static mode_t mode(const std::string& path) {
    struct stat info{};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }
  void overwrite(const std::string& name, std::string_view content) {
    ASSERT_TRUE(write_file_durably(path_ + "/" + name, content, 0600));
  }
  std::string error() {
    const auto opened = open();
    return opened ? "" : opened.error().message();
  }

  std::string base_;
  std::string path_;
  SeededRng rng_{1};
  FixedClock clock_;
};

TEST_F(DataDirectoryTest, FirstStartMakesIdentityAndSecretsOnlyForTheOwner) {
  Identity identity;
  Credentials credentials;
  std::string token;
  {
    const auto directory = open();
    ASSERT_TRUE(directory) << directory.error().to_string();
    identity = directory->identity();
    credentials = directory->credentials();
    token = directory->admin_token();
    EXPECT_FALSE(identity.cluster_id.is_zero());
    EXPECT_NE(identity.cluster_id, identity.node_id);
    EXPECT_EQ(credentials.access_key.size(), 20u);
    EXPECT_EQ(credentials.secret_key.size(), 40u);
    EXPECT_EQ(directory->cluster_keys().size(), 1u);
    EXPECT_GE(token.size(), 32u);
  }
  EXPECT_EQ(mode(path_), 0700u);
  for (const char* name : {"/admin_token", "/credentials.json", "/cluster_key", "/node.json"}) {
    EXPECT_EQ(mode(path_ + name), 0600u) << name;
  }
  const auto again = open();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->identity().cluster_id, identity.cluster_id);
  EXPECT_EQ(again->identity().created_unix_ns, clock_.unix_ns());
  EXPECT_EQ(again->credentials().secret_key, credentials.secret_key);
  EXPECT_EQ(again->admin_token(), token);
}

TEST_F(DataDirectoryTest, AFolderThatOthersMayReadIsClosed) {
  std::filesystem::create_directory(path_);
  ASSERT_EQ(::chmod(path_.c_str(), 0755), 0);
  ASSERT_TRUE(open());
  EXPECT_EQ(mode(path_), 0700u);
}

TEST_F(DataDirectoryTest, OneProcessAtATime) {
  const auto first = open();
  ASSERT_TRUE(first);
  // flock belongs to the open file, so a second open in this process is refused like another process's.
  const auto second = open();
  ASSERT_EQ(second.code(), Errc::busy);
  EXPECT_THAT(second.error().message(), HasSubstr("in use by pid " + std::to_string(::getpid())));
}

TEST_F(DataDirectoryTest, DevicesAreRemembered) {
  const KnownDevice device{Id128::random(rng_), "/dev/somewhere"};
  {
    auto directory = open();
    ASSERT_TRUE(directory);
    EXPECT_TRUE(directory->devices().empty());
    ASSERT_TRUE(directory->remember_device(device));
  }
  const auto again = open();
  ASSERT_TRUE(again);
  ASSERT_EQ(again->devices().size(), 1u);
  EXPECT_EQ(again->devices()[0].id, device.id);
  EXPECT_EQ(again->devices()[0].path, device.path);
}

TEST_F(DataDirectoryTest, NewerFormatIsRefused) {
  ASSERT_TRUE(open());
  overwrite("node.json", R"({"format": 2, "future": true})");
  const auto opened = open();
  ASSERT_EQ(opened.code(), Errc::unsupported);
  EXPECT_THAT(opened.error().message(), HasSubstr("newer release (format 2, this one reads up to 1); upgrade cairnd"));
}

TEST_F(DataDirectoryTest, DamageIsNamed) {
  ASSERT_TRUE(open());
  const std::string good = *read_small_file(path_ + "/node.json");
  for (const char* bad : {"", "{", "[]", "7", "{}", R"({"format": -1})", R"({"format": 1})", R"({"format": "1"})",
                          R"({"format": 1, "cluster_id": 5, "node_id": null, "devices": []})"}) {
    overwrite("node.json", bad);
    EXPECT_EQ(open().code(), Errc::corrupt) << bad;
    EXPECT_THAT(error(), HasSubstr("node.json")) << bad;
  }
  auto document = nlohmann::json::parse(good);
  document["devices"] = {{{"path", "x"}}};
  overwrite("node.json", document.dump());
  EXPECT_THAT(error(), HasSubstr("device without an id"));
  overwrite("node.json", good);
  overwrite("credentials.json", R"({"access_key": ["x"]})");
  EXPECT_THAT(error(), HasSubstr("credentials.json holds no access key"));
  remove_file(path_ + "/credentials.json");
  overwrite("cluster_key", "0123456789abcdef0123");
  EXPECT_THAT(error(), HasSubstr("cluster_key has no key in line 1"));
  overwrite("cluster_key", "# while they are changed\n" + std::string(64, 'a') + "\n" + std::string(64, 'b') + "\n");
  overwrite("admin_token", "0123456789abcdef0123");
  overwrite("credentials.json", R"({"access_key": "a", "secret_key": "s"})");
  {
    const auto changing = open();
    ASSERT_TRUE(changing) << changing.error().to_string();
    EXPECT_EQ(changing->cluster_keys().size(), 2u);
  }
  overwrite("admin_token", "\n");
  EXPECT_THAT(error(), HasSubstr("admin_token holds no secret"));
}

TEST_F(DataDirectoryTest, ALostIdentityIsNotAFreshStart) {
  std::filesystem::create_directories(path_ + "/store");
  EXPECT_THAT(error(), HasSubstr("node.json is missing although"));
}

TEST_F(DataDirectoryTest, NoParentNoGuess) {
  path_ = base_ + "/a/b";
  EXPECT_EQ(open().code(), Errc::not_found);
}

TEST_F(DataDirectoryTest, ReadyFileHoldsWhatScriptsNeed) {
  const auto directory = open();
  ASSERT_TRUE(directory);
  const std::string path = base_ + "/ready.json";
  ASSERT_TRUE(write_ready_file(path, {{"s3", "127.0.0.1:1"}, {"admin", "[::1]:2"}}, *directory, true));
  EXPECT_EQ(mode(path), 0600u);
  const auto document = nlohmann::json::parse(*read_small_file(path));
  EXPECT_EQ(document["endpoints"]["s3"], "127.0.0.1:1");
  EXPECT_EQ(document["endpoints"]["admin"], "[::1]:2");
  EXPECT_EQ(document["access_key"], directory->credentials().access_key);
  EXPECT_EQ(document["secret_key"], directory->credentials().secret_key);
  EXPECT_EQ(document["admin_token"], directory->admin_token());
  EXPECT_EQ(document["cluster_id"], directory->identity().cluster_id.to_string());
  EXPECT_EQ(document["pid"], ::getpid());
  ASSERT_TRUE(write_ready_file(path, {}, *directory, false));
  EXPECT_FALSE(nlohmann::json::parse(*read_small_file(path)).contains("secret_key"));
}

TEST_F(DataDirectoryTest, DeviceFileIsMadeOnceAndAllocated) {
  ASSERT_TRUE(open());
  Settings settings;
  ASSERT_TRUE(settings.set("device.size", "5MiB", "test"));
  const std::string path = path_ + "/device0";
  {
    const auto made = find_or_create_device(path, settings.values());
    ASSERT_TRUE(made) << made.error().to_string();
    EXPECT_EQ(made->size_bytes(), 5u << 20);
    EXPECT_FALSE(made->supports_discard());
    EXPECT_EQ(find_or_create_device(path, settings.values()).code(), Errc::busy);
  }
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_GE(static_cast<uint64_t>(info.st_blocks) * 512, 5u << 20);
  ASSERT_TRUE(settings.set("device.size", "50MiB", "test"));
  const auto found = find_or_create_device(path, settings.values());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size_bytes(), 5u << 20) << "an existing device keeps its size";
}

TEST_F(DataDirectoryTest, DevicesThatCantBeSayWhy) {
  Settings settings;
  const auto error = [&](const std::string& path) {
    const auto device = find_or_create_device(path, settings.values());
    return device ? "" : device.error().message();
  };
  EXPECT_THAT(error("/dev/cairn-no-such-device"), HasSubstr("there is no such device"));
  EXPECT_THAT(error("/dev/null"), HasSubstr("neither a file nor a block device"));
  EXPECT_THAT(error(base_ + "/missing/device0"), HasSubstr("No such file"));
  ASSERT_TRUE(settings.set("device.size", "1024TiB", "test"));
  EXPECT_THAT(error(base_ + "/device0"), HasSubstr("doesn't fit"));
  EXPECT_FALSE(exists(base_ + "/device0"));
  EXPECT_FALSE(exists(base_ + "/device0.new"));
}

}  // namespace
}  // namespace cairn::node
