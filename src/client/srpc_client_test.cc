#include "client/srpc_client.h"

#include <gtest/gtest.h>

#include <set>

#include "client/testing/node_rig.h"
#include "replica/small_or_data.h"

namespace cairn::client {
namespace {

using Kind = kv::Condition::Kind;

engine::ChunkId chunk(uint32_t number) {
  return {
      {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, static_cast<uint8_t>(number >> 8), static_cast<uint8_t>(number)}};
}

struct SrpcClientTest : ::testing::Test {
  SrpcClientTest() { rig.start(); }

  template <typename Function, typename... Arguments>
  auto run(Function function, Arguments... arguments) {
    return rig.loop.run(function, static_cast<Client*>(rig.client.get()), std::move(arguments)..., CallContext{});
  }
  mem::BufChain payload(size_t size, char fill) {
    mem::BufChain chain;
    for (size_t left = size; left > 0;) {
      mem::Buf buf = *rig.pool->try_alloc(std::min<size_t>(left, 1 << 20));
      std::memset(buf.writable(), fill, buf.size());
      left -= buf.size();
      chain.append(std::move(buf));
    }
    return chain;
  }
  Result<void> set(uint32_t group, std::string key, std::string value) {
    return run(&Client::kv_batch, engine::GroupId(group),
               kv::Batch{.conditions = {}, .mutations = {{std::move(key), std::move(value)}}}, mem::Purpose::client);
  }

  NodeRig rig;
};

TEST_F(SrpcClientTest, ChunksGoToTheirGroups) {
  std::set<uint32_t> used;
  for (uint32_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(run(&Client::chunk_write, chunk(i), 0u, payload(5000 + i, static_cast<char>('a' + i))));
    used.insert(rig.client->group_of_chunk(chunk(i)).value);
  }
  EXPECT_EQ(used.size(), 4u);
  size_t listed = 0;
  for (const engine::GroupId group : rig.client->all_groups()) {
    const auto ids = run(&Client::chunk_list, group, engine::ChunkId(), size_t{100});
    ASSERT_TRUE(ids);
    for (const engine::ChunkId& id : *ids) EXPECT_EQ(rig.client->group_of_chunk(id), group);
    listed += ids->size();
  }
  EXPECT_EQ(listed, 20u);
  for (uint32_t i = 0; i < 20; ++i) {
    const auto read = run(&Client::chunk_read, chunk(i), 4096u, 100'000u);
    ASSERT_TRUE(read);
    EXPECT_EQ(replica::metadata_bytes(*read), std::string(5000 + i - 4096, static_cast<char>('a' + i)));
    ASSERT_TRUE(run(&Client::chunk_delete, chunk(i)));
    ASSERT_TRUE(run(&Client::chunk_delete, chunk(i))) << "deleting what isn't there is ok";
    EXPECT_EQ(run(&Client::chunk_read, chunk(i), 0u, 1u).code(), Errc::not_found);
  }
}

TEST_F(SrpcClientTest, PayloadIsNotCopied) {
  const uint64_t before = rig.pool->copied().value();
  ASSERT_TRUE(run(&Client::chunk_write, chunk(1), 0u, payload(1 << 20, 'x')));
  const auto read = run(&Client::chunk_read, chunk(1), 0u, 1u << 20);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->size(), size_t{1} << 20);
  EXPECT_EQ(rig.pool->copied().value(), before);
}

TEST_F(SrpcClientTest, SmallAndLargeValues) {
  const size_t sizes[] = {0, 1, 3'499, 3'500, 3'501, 100'000, 1'000'000};
  for (const size_t size : sizes) {
    const std::string value(size, 'v');
    ASSERT_TRUE(set(1, "key", value)) << size;
    const auto read = run(&Client::kv_get, engine::GroupId(1), std::string("key"));
    ASSERT_TRUE(read && *read);
    EXPECT_TRUE(**read == value) << size;
  }
  EXPECT_EQ(set(1, "key", std::string(kv::kMaxBatchBytes, 'v')).code(), Errc::too_large);
  EXPECT_EQ(set(1, std::string(Client::kMaxKeyBytes + 1, 'k'), "").code(), Errc::too_large);
  EXPECT_TRUE(set(1, std::string(Client::kMaxKeyBytes, 'k'), ""));
}

TEST_F(SrpcClientTest, ConditionsReachTheGroup) {
  const auto batch = [](Kind kind, std::string value) {
    return kv::Batch{.conditions = {{"a", Kind::present}, {"b", kind, std::move(value)}}, .mutations = {{"b", "new"}}};
  };
  ASSERT_TRUE(set(2, "a", "1"));
  ASSERT_TRUE(set(2, "b", "old"));
  const auto failed = run(&Client::kv_batch, engine::GroupId(2), batch(Kind::equals, "other"), mem::Purpose::client);
  EXPECT_EQ(failed.code(), Errc::condition_failed);
  EXPECT_EQ(failed.error().message(), "1");
  EXPECT_TRUE(run(&Client::kv_batch, engine::GroupId(2), batch(Kind::equals, "old"), mem::Purpose::client));
  EXPECT_EQ(
      run(&Client::kv_batch, engine::GroupId(2), batch(Kind::absent, ""), mem::Purpose::internal).error().message(),
      "1");
  EXPECT_EQ(**run(&Client::kv_get, engine::GroupId(2), std::string("b")), "new");
}

TEST_F(SrpcClientTest, ScansInPages) {
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(set(3, "k" + std::to_string(100 + i), std::string(i * 10, 'x')));
  std::vector<std::string> keys;
  std::string begin = "k";
  for (;;) {
    const auto page =
        run(&Client::kv_scan, engine::GroupId(3), kv::ScanOptions{.begin = begin, .end = "k140", .max_items = 7});
    ASSERT_TRUE(page);
    for (const auto& item : page->items) keys.push_back(item.key);
    if (!page->more) break;
    begin = page->items.back().key + '\0';
  }
  ASSERT_EQ(keys.size(), 40u);
  EXPECT_EQ(keys.front(), "k100");
  EXPECT_EQ(keys.back(), "k139");
  const auto names = run(&Client::kv_scan, engine::GroupId(3), kv::ScanOptions{.keys_only = true});
  ASSERT_TRUE(names);
  EXPECT_EQ(names->items.size(), 50u);
  EXPECT_EQ(names->items[49].value, "");
}

TEST_F(SrpcClientTest, Leases) {
  const Id128 mine{{1}};
  ASSERT_TRUE(run(&Client::lease_renew, engine::GroupId(1), mine, seconds(10)));
  rig.loop.run_for(seconds(5));
  std::vector<Id128> ids(600);
  ids[599] = mine;
  const auto check = run(&Client::lease_check, engine::GroupId(1), ids);
  ASSERT_TRUE(check);
  EXPECT_EQ(std::ranges::count(check->held, true), 1);
  EXPECT_TRUE(check->held[599]);
  EXPECT_GE(check->memory, seconds(5));
  EXPECT_LT(check->memory, seconds(6));
  EXPECT_FALSE(run(&Client::lease_check, engine::GroupId(2), std::vector{mine})->held[0]);
}

TEST_F(SrpcClientTest, SaysHowAGroupIs) {
  ASSERT_TRUE(set(1, "key", "value"));
  const auto report = rig.loop.run(&SrpcClient::group_status, rig.client.get(), engine::GroupId(1), CallContext{});
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->leads);
  EXPECT_TRUE(report->health);
  EXPECT_EQ(report->last_index, 1u);
  EXPECT_EQ(report->applied_index, 1u);
}

TEST_F(SrpcClientTest, AnOldMapIsReplacedByTheServersNewer) {
  auto old = rig.make_client();
  control::ClusterMap newer = rig.map;
  newer.epoch = 2;
  for (auto& group : newer.groups) group.epoch = 2;
  rig.host->set_map(newer);
  const auto written =
      rig.loop.run(&Client::kv_batch, static_cast<Client*>(old.get()), engine::GroupId(1),
                   kv::Batch{.conditions = {}, .mutations = {{"key", "value"}}}, mem::Purpose::client, CallContext{});
  EXPECT_TRUE(written);
  EXPECT_EQ(old->map(), newer);
  rig.loop.run(&SrpcClient::close, old.get());
}

TEST_F(SrpcClientTest, WaitsForAGroupThatIsStarting) {
  control::ClusterMap older = rig.map;
  rig.map.epoch = 2;
  rig.client->set_map(rig.map);  // the server doesn't know it yet: unavailable
  struct Later {
    static Task<void> run(NodeRig* rig) {
      (void)co_await rig->loop.sleep(milliseconds(500));
      rig->host->set_map(rig->map);
    }
  };
  Scope scope(rig.loop);
  scope.spawn(&Later::run, &rig);
  EXPECT_TRUE(set(1, "key", "value"));
  EXPECT_GE(rig.loop.now().ns, milliseconds(500).ns);
}

TEST_F(SrpcClientTest, GivesUpAtTheDeadlineWithTheServersReason) {
  control::ClusterMap future = rig.map;
  future.epoch = 2;
  rig.client->set_map(future);
  const Time start = rig.loop.now();
  const auto result = rig.loop.run(&Client::kv_get, static_cast<Client*>(rig.client.get()), engine::GroupId(1),
                                   std::string("key"), CallContext{.deadline = start + seconds(2)});
  EXPECT_EQ(result.code(), Errc::unavailable) << result.error().to_string();
  EXPECT_LE(rig.loop.now(), start + seconds(2));
}

TEST_F(SrpcClientTest, CallsEndWhenItIsClosed) {
  Errc code = Errc::ok;
  struct Caller {
    static Task<void> run(NodeRig* rig, Errc* code) {
      kv::Batch batch{.conditions = {}, .mutations = {{"key", "value"}}};
      *code = (co_await rig->client->kv_batch(engine::GroupId(1), std::move(batch), mem::Purpose::client, {})).code();
    }
  };
  ASSERT_TRUE(set(1, "other", "value"));  // connected
  Scope scope(rig.loop);
  scope.spawn(&Caller::run, &rig, &code);
  rig.loop.run(&SrpcClient::close, rig.client.get());
  ASSERT_TRUE(rig.loop.run_until([&] { return scope.running() == 0; }));
  EXPECT_EQ(code, Errc::closed);
  EXPECT_EQ(set(1, "key", "value").code(), Errc::closed);
}

TEST_F(SrpcClientTest, WhatWasAcknowledgedSurvivesAPowerCut) {
  for (int round = 0; round < 5; ++round) {
    const std::string value = std::to_string(round);
    ASSERT_TRUE(set(1, "key", value));
    ASSERT_TRUE(run(&Client::chunk_write, chunk(1), 0u, payload(200'000, static_cast<char>('a' + round))));
    rig.power_off();
    rig.stop();
    rig.start();
    EXPECT_EQ(**run(&Client::kv_get, engine::GroupId(1), std::string("key")), value);
    EXPECT_EQ(replica::metadata_bytes(*run(&Client::chunk_read, chunk(1), 0u, 1u << 20)),
              std::string(200'000, static_cast<char>('a' + round)));
  }
}

}  // namespace
}  // namespace cairn::client
