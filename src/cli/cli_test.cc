#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/admin_client.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace cairn::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

TEST(Table, AlignsByWhatIsSeen) {
  Table table({{"NAME"}, {"SIZE", Table::Align::right}, {"NOTE"}});
  table.add({std::string("é"), std::string("10"), std::string("x")});
  table.add({{std::string("long name"), Tone::strong}, std::string("2000"), std::string("")});
  EXPECT_EQ(table.render(Style(false)),
            "NAME       SIZE  NOTE\n"
            "é            10  x\n"
            "long name  2000  \n");
  EXPECT_THAT(table.render(Style(true)), HasSubstr("\033[1mlong name\033[0m  2000"));
}

TEST(Bar, ShowsEvenALittleAndNeverTooMuch) {
  EXPECT_EQ(bar(0, 100, 10), "[..........]   0 %");
  EXPECT_EQ(bar(1, 1000, 10), "[#.........]   0 %");
  EXPECT_EQ(bar(50, 100, 10), "[#####.....]  50 %");
  EXPECT_EQ(bar(200, 100, 10), "[##########] 100 %");
  EXPECT_EQ(bar(5, 0, 10), "[#.........]   0 %");
}

TEST(Answers, StatusesBecomeExitCodes) {
  struct Case {
    long status;
    const char* body;
    Exit exit;
    const char* message;
  };
  const Case cases[] = {
      {404, R"({"error": {"code": "not_found", "message": "no bucket 'x'"}})", Exit::not_found, "no bucket 'x'"},
      {409, R"({"error": {"code": "already_exists", "message": "m"}})", Exit::conflict, "m"},
      {401, R"({"error": {"code": "unauthenticated", "message": "m"}})", Exit::unauthorized, "m"},
      {503, R"({"error": {"code": "busy", "message": "m"}})", Exit::error, "m"},
      {400, R"({"error": {}})", Exit::error, "HTTP status 400"},
      {404, "<html>not here</html>", Exit::error, "is this the admin endpoint?"},
      {200, "<html>hello</html>", Exit::error, "is this the admin endpoint?"},
      {200, "[]", Exit::error, "is this the admin endpoint?"},
      {302, "", Exit::error, "is this the admin endpoint?"},
  };
  for (const auto& c : cases) {
    const auto answer = interpret(c.status, c.body);
    ASSERT_FALSE(answer) << c.status << c.body;
    EXPECT_EQ(answer.error().exit, c.exit) << c.status << c.body;
    EXPECT_THAT(answer.error().message, HasSubstr(c.message));
  }
  EXPECT_TRUE(interpret(201, R"({"a": 1})"));
}

TEST(Paths, AreEncoded) {
  EXPECT_EQ(percent_encode("a-b_c.d~E9"), "a-b_c.d~E9");
  EXPECT_EQ(percent_encode("a/b?c d%é"), "a%2Fb%3Fc%20d%25%C3%A9");
}

class TargetTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/cairn-cli-test-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(directory_ + "/" + name) << content;
  }

  static std::string no_environment(const char*) { return ""; }
  static std::string full_environment(const char* name) { return std::string("env-") + name; }

  std::string directory_;
};

TEST_F(TargetTest, WhatTheUserSaidWins) {
  write("admin_token", "from-file\n");
  write("endpoints.json", R"({"endpoints": {"admin": "127.0.0.1:1234"}})");
  TargetOptions options;
  options.data_directory = directory_;
  auto target = find_target(with_environment(options, &no_environment));
  EXPECT_EQ(target.endpoint, "http://127.0.0.1:1234");
  EXPECT_EQ(target.token, "from-file");

  target = find_target(with_environment(options, &full_environment));
  EXPECT_EQ(target.endpoint, "http://env-CAIRN_ENDPOINT");
  EXPECT_EQ(target.token, "env-CAIRN_TOKEN");

  options.endpoint = "https://node:7070/";
  target = find_target(with_environment(options, &full_environment));
  EXPECT_EQ(target.endpoint, "https://node:7070");
}

TEST_F(TargetTest, WithoutANodeTheDefaultsStand) {
  TargetOptions options;
  options.data_directory = directory_;
  for (const char* broken : {"", "{", "[]", R"({"endpoints": 7})", R"({"endpoints": {"admin": 7}})"}) {
    write("endpoints.json", broken);
    const auto target = find_target(with_environment(options, &no_environment));
    EXPECT_EQ(target.endpoint, "http://127.0.0.1:7070") << broken;
    EXPECT_EQ(target.token, "");
  }
  EXPECT_EQ(with_environment({}, &no_environment).data_directory, "run");
  EXPECT_EQ(with_environment({}, &full_environment).data_directory, "env-CAIRN_DATA");
}

TEST(Render, StatusSaysWhatMatters) {
  const json status = {
      {"version", "1.2.3"},
      {"health", "degraded"},
      {"cluster_id", "c1"},
      {"uptime_seconds", 3723},
      {"problems", {"device /d0, shard 1: device_fenced"}},
      {"pools",
       {{{"name", "default"},
         {"used_bytes", 1 << 30},
         {"total_bytes", 4ull << 30},
         {"available_bytes", 2ull << 30},
         {"replicas", 1}}}},
      {"devices",
       {{{"path", "/d0"}, {"size_bytes", 5ull << 30}, {"shards", {{{"used_bytes", 1 << 30}, {"health", "bad"}}}}}}},
      {"reactors", {{{"id", 0}, {"mode", "automatic"}, {"busy_share", 0.125}}}},
      {"gateways", {{{"service", "s3"}, {"address", "127.0.0.1:9000"}}}}};
  const auto text = render_status(status, Style(false));
  for (const char* part : {"Cairn 1.2.3  degraded", "1h 2m", "problem  device /d0, shard 1: device_fenced", " 25 %",
                           "1.00 GiB used of 4.00 GiB, 2.00 GiB available, 1 replica\n", "/d0", "bad", "12.5 %",
                           "s3       127.0.0.1:9000"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("\033")));
}

TEST(Render, AnswersOfOtherReleasesDontThrow) {
  for (const json& odd : {json::object(), json{{"pools", 7}, {"devices", {1, "x", nullptr}}, {"problems", {1}}},
                          json{{"buckets", {{{"name", 7}, {"created_unix_ns", "x"}}}}, {"keys", {json::array()}}}}) {
    for (const auto render :
         {&render_status, &render_config, &render_orphans, &render_buckets, &render_bucket, &render_keys}) {
      EXPECT_FALSE(render(odd, Style(true)).empty());
    }
  }
}

TEST(Completion, KnowsTheCommands) {
  CLI::App app("", "cairn");
  Action chosen;
  add_bucket_commands(app, chosen);
  const auto script = bash_completion(app);
  EXPECT_THAT(script, HasSubstr("'cairn bucket') words='list create delete info"));
  EXPECT_THAT(script, HasSubstr("'cairn bucket info') words='--help --count'"));
}

}  // namespace
}  // namespace cairn::cli
