#include "node/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/version.h"
#include "node/command_line.h"
#include "node/config_file.h"
#include "node/ports.h"
#include "node/resources.h"

namespace cairn::node {
namespace {

using testing::HasSubstr;

std::string error_of(const Result<void>& result) { return result ? "" : result.error().message(); }

TEST(Settings, TheTableIsSound) {
  std::set<std::string_view> names;
  for (const auto& setting : setting_table()) {
    EXPECT_TRUE(names.insert(setting.name).second) << setting.name << " stands twice";
    EXPECT_FALSE(setting.help.empty()) << setting.name;
    EXPECT_FALSE(setting.help.ends_with('.')) << setting.name;
    EXPECT_LE(setting.min, setting.max) << setting.name;
  }
  // The constructor asserts that each default parses and is in range. Each must come back as written, too.
  const Settings settings;
  for (const auto& row : settings.rows()) {
    EXPECT_EQ(row.origin, "default");
    Settings again;
    EXPECT_EQ(error_of(again.set(row.setting->name, row.value, "test")), "");
  }
}

TEST(Settings, ValuesAndTheirOrigins) {
  Settings settings;
  ASSERT_TRUE(settings.set("reactors", "3", "file:1"));
  ASSERT_TRUE(settings.set_assignment("memory.arena=512MiB", "--set"));
  ASSERT_TRUE(settings.set_assignment("s3.domains=a.example, b.example", "--set"));
  ASSERT_TRUE(settings.set_assignment("stop.timeout=1.5s", "--set"));
  ASSERT_TRUE(settings.set_assignment("mode=economy", "--set"));
  EXPECT_EQ(settings.values().reactors, 3u);
  EXPECT_EQ(settings.values().memory_arena, 512u << 20);
  EXPECT_EQ(settings.values().s3_domains, (std::vector<std::string>{"a.example", "b.example"}));
  EXPECT_EQ(settings.values().stop_timeout.ms(), 1500);
  EXPECT_EQ(settings.values().mode, "economy");
  ASSERT_TRUE(settings.set("reactors", "auto", "again"));
  EXPECT_EQ(settings.values().reactors, std::nullopt);
  for (const auto& row : settings.rows()) {
    if (row.setting->name == "reactors") EXPECT_EQ(row.origin, "again");
    if (row.setting->name == "memory.arena") EXPECT_EQ(row.value, "512MiB");
  }
}

TEST(Settings, MistakesNameTheCureAndChangeNothing) {
  struct Case {
    const char* assignment;
    const char* message;
  };
  const Case cases[] = {
      {"memory.arean=1GiB", "did you mean memory.arena?"},
      {"arena=1GiB", "did you mean memory.arena?"},
      {"zzzzzzzzzzzz=1", "--print-config lists all"},
      {"reactors", "key=value"},
      {"=3", "key=value"},
      {"reactors=0", "reactors: 0 is out of range: it must be 1 to 64"},
      {"reactors=two", "'two' is not a whole number"},
      {"reactors=", "'' is not a whole number"},
      {"memory.arena=1MiB", "it must be 32MiB to 1TiB"},
      {"stop.timeout=10", "'10' is not a duration; write for example"},
      {"mode=fast", "'fast' is not one of performance, economy, automatic"},
      {"ports.s3=65536", "it must be 0 to 65535"},
  };
  for (const auto& c : cases) {
    Settings settings;
    EXPECT_THAT(error_of(settings.set_assignment(c.assignment, "--set")), HasSubstr(c.message)) << c.assignment;
    for (const auto& row : settings.rows()) EXPECT_EQ(row.origin, "default") << c.assignment;
  }
}

TEST(ConfigFile, TablesKeysAndLists) {
  Settings settings;
  const std::string text = R"(
reactors = 2
[memory]
arena = "256MiB"
[s3]
domains = ["s3.example.com", "s3.example.org"]
[stop]
timeout = "5s"
)";
  ASSERT_EQ(error_of(apply_config_text(text, "c.toml", settings)), "");
  EXPECT_EQ(settings.values().reactors, 2u);
  EXPECT_EQ(settings.values().memory_arena, 256u << 20);
  EXPECT_EQ(settings.values().s3_domains.size(), 2u);
  for (const auto& row : settings.rows()) {
    if (row.setting->name == "memory.arena") EXPECT_EQ(row.origin, "c.toml:4");
  }
}

TEST(ConfigFile, ErrorsHaveFileAndLine) {
  const auto error = [](std::string_view text) {
    Settings settings;
    return error_of(apply_config_text(text, "c.toml", settings));
  };
  EXPECT_THAT(error("reactors = 2\n[memory]\narean = 3\n"),
              HasSubstr("c.toml:3: unknown setting 'memory.arean'; did you"));
  EXPECT_THAT(error("reactors = \n"), HasSubstr("c.toml:1: "));
  EXPECT_THAT(error("\nreactors = 2000\n"), HasSubstr("c.toml:2: reactors: 2000 is out of range"));
  EXPECT_THAT(error("reactors = 2020-01-01\n"), HasSubstr("no setting has values of this type"));
  EXPECT_THAT(error("[s3]\ndomains = [[1]]\n"), HasSubstr("no setting has values of this type"));
  Settings settings;
  EXPECT_EQ(apply_config_file("/nonexistent/c.toml", settings).code(), Errc::not_found);
}

TEST(ConfigFile, ReadsWhatPrintConfigPrints) {
  Settings settings;
  ASSERT_TRUE(settings.set("memory.arena", "1GiB", "--set"));
  ASSERT_TRUE(settings.set("device.path", "/tmp/with \"quotes\"", "--set"));
  Settings again;
  ASSERT_EQ(error_of(apply_config_text(print_config(settings), "c.toml", again)), "");
  const auto before = settings.rows();
  const auto after = again.rows();
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i].value, after[i].value) << before[i].setting->name;
}

TEST(Ports, WellKnownByBaseAndSingly) {
  const auto at = [](std::initializer_list<const char*> assignments, Service service) {
    Settings settings;
    for (const char* a : assignments) EXPECT_EQ(error_of(settings.set_assignment(a, "--set")), "");
    const auto listen = listen_at(settings.values(), service);
    return listen ? listen->to_string() : "error: " + listen.error().message();
  };
  EXPECT_EQ(at({}, Service::s3), "127.0.0.1:9000");
  EXPECT_EQ(at({}, Service::admin), "127.0.0.1:7070");
  EXPECT_EQ(at({}, Service::srpc), "127.0.0.1:7400");
  EXPECT_EQ(at({}, Service::smb), "127.0.0.1:445");
  const Service order[] = {Service::s3,    Service::admin, Service::srpc, Service::nvmf,
                           Service::iscsi, Service::nfs,   Service::smb};
  for (size_t i = 0; i < kServices; ++i) {
    EXPECT_EQ(at({"ports.base=9100"}, order[i]), "127.0.0.1:" + std::to_string(9100 + i));
  }
  EXPECT_EQ(at({"ports.base=9100", "ports.admin=8080"}, Service::admin), "127.0.0.1:8080");
  EXPECT_EQ(at({"ports.base=0"}, Service::srpc), "127.0.0.1:0");
  EXPECT_EQ(at({"ports.base=9100", "ports.s3=0"}, Service::s3), "127.0.0.1:0");
  EXPECT_EQ(at({"listen.default=0.0.0.0", "listen.admin=::1"}, Service::admin), "[::1]:7070");
  EXPECT_EQ(at({"listen.default=0.0.0.0"}, Service::s3), "0.0.0.0:9000");
  EXPECT_THAT(at({"listen.s3=localhost"}, Service::s3), HasSubstr("'localhost' is not an IP address"));
}

TEST(Resources, FitTheMachine) {
  const auto resolve = [](std::initializer_list<const char*> assignments, Machine machine, uint32_t shards = 0) {
    Settings settings;
    for (const char* a : assignments) EXPECT_EQ(error_of(settings.set_assignment(a, "--set")), "");
    return resolve_resources(settings.values(), machine, shards);
  };
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  EXPECT_EQ(resolve({}, {1, 8 * kGiB})->reactors, 1u);
  EXPECT_EQ(resolve({}, {2, 8 * kGiB})->reactors, 1u);
  EXPECT_EQ(resolve({}, {4, 8 * kGiB})->reactors, 3u);
  EXPECT_EQ(resolve({}, {128, 512 * kGiB})->reactors, 16u);
  EXPECT_EQ(resolve({}, {128, 512 * kGiB}, 4)->reactors, 4u) << "one shard each";
  EXPECT_EQ(resolve_shards(Settings().values(), {2, kGiB}, kGiB / 2), 1u);
  EXPECT_EQ(resolve_shards(Settings().values(), {3, kGiB}, kGiB / 2), 2u);
  EXPECT_EQ(resolve_shards(Settings().values(), {4, kGiB}, 10 * kGiB), 5u);
  EXPECT_EQ(resolve_shards(Settings().values(), {4, kGiB}, 100 * kGiB), 8u);
  EXPECT_EQ(resolve_shards(Settings().values(), {64, kGiB}, 100 * kGiB), 16u);
  EXPECT_EQ(resolve({"reactors=5"}, {8, 8 * kGiB})->reactors, 5u);
  EXPECT_THAT(resolve({"reactors=5"}, {8, 8 * kGiB}, 4).error().message(), HasSubstr("set reactors=4 or less"));
  EXPECT_EQ(resolve({"reactors=5", "device.shards=4"}, {8, 8 * kGiB}).code(), Errc::invalid_argument);
  EXPECT_EQ(resolve({}, {4, 64 * kGiB})->arena_bytes, 768 * kMiB);
  EXPECT_EQ(resolve({}, {4, 1 * kGiB})->arena_bytes, 256 * kMiB);
  EXPECT_EQ(resolve({}, {4, 64 * kMiB})->arena_bytes, 96 * kMiB);
  EXPECT_EQ(resolve({"reactors=2", "memory.arena=32MiB"}, {8, 8 * kGiB}).code(), Errc::invalid_argument);
  EXPECT_EQ(resolve({"memory.arena=9GiB"}, {8, 8 * kGiB}).code(), Errc::invalid_argument);
  EXPECT_EQ(resolve({"engine.cache=1GiB"}, {2, 8 * kGiB}).code(), Errc::invalid_argument);
}

TEST(Resources, DeviceSizes) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  Settings settings;
  EXPECT_EQ(*resolve_device_size(settings.values(), 100 * kGiB), 25 * kGiB);
  EXPECT_EQ(*resolve_device_size(settings.values(), 2 * kGiB), kGiB);
  EXPECT_EQ(*resolve_device_size(settings.values(), 8192 * kGiB), 1024 * kGiB);
  const auto small = resolve_device_size(settings.values(), kGiB - 1);
  EXPECT_EQ(small.code(), Errc::no_space);
  EXPECT_THAT(small.error().message(), HasSubstr("device.size"));
  ASSERT_TRUE(settings.set("device.size", "3GiB", "--set"));
  EXPECT_EQ(*resolve_device_size(settings.values(), 4 * kGiB), 3 * kGiB);
  EXPECT_THAT(resolve_device_size(settings.values(), 2 * kGiB).error().message(), HasSubstr("has 2.00 GiB free"));
}

TEST(CommandLine, ActionsAndUsage) {
  const auto parse = [](std::vector<const char*> args) {
    args.insert(args.begin(), "cairnd");
    return parse_command_line(static_cast<int>(args.size()), args.data());
  };
  using Action = CommandLine::Action;
  const auto run = parse({"--data", "d", "--ready-file", "r", "--set", "reactors=1", "--set", "mode=economy"});
  EXPECT_EQ(run.action, Action::run);
  EXPECT_EQ(run.data_directory, "d");
  EXPECT_EQ(run.ready_file, "r");
  EXPECT_EQ(run.settings.values().reactors, 1u);
  EXPECT_EQ(run.settings.values().mode, "economy");
  EXPECT_EQ(parse({"--print-config"}).action, Action::print_config);
  EXPECT_EQ(parse({"--check-config", "--set", "reactors=2"}).action, Action::check_config);
  EXPECT_EQ(parse({"--help"}).exit_code, 0);
  EXPECT_EQ(parse({"--version"}).action, Action::done);
  for (const auto& bad : std::vector<std::vector<const char*>>{{},
                                                               {"--nonsense"},
                                                               {"--data"},
                                                               {"--data", "d", "--set", "nonsense=1"},
                                                               {"--data", "d", "--set"},
                                                               {"--data", "d", "--config", "/nonexistent"},
                                                               {"--check-config", "--set", "memory.arena=1TiB"}}) {
    const auto line = parse(bad);
    EXPECT_EQ(line.action, Action::done);
    EXPECT_EQ(line.exit_code, kExitUsage);
  }
}

TEST(Version, IsTheProjects) { EXPECT_EQ(kVersion, CAIRN_PROJECT_VERSION); }

}  // namespace
}  // namespace cairn::node
