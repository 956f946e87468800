#include "reactor/address.h"

#include <gtest/gtest.h>

#include "reactor/reactor.h"
#include "reactor/resolve.h"

namespace cairn {
namespace {

TEST(Address, ParsesWhatItPrints) {
  for (const char* text :
       {"127.0.0.1:9000", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:80", "[::]:1", "[2001:db8::1:2]:7400"}) {
    auto address = Address::parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->to_string(), text);
    EXPECT_EQ(*Address::parse(address->to_string()), *address);
  }
  EXPECT_EQ(Address::parse("::1", 5)->to_string(), "[::1]:5");
  EXPECT_EQ(Address::parse("[::1]", 5)->to_string(), "[::1]:5");
}

TEST(Address, RefusesTheRest) {
  for (const char* text : {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:1x",
                           "127.0.0.1: 1", "127.0.0:1", "1.2.3.4.5:1", "::1:80", "[::1]", "[::1:80", "::1]:80",
                           "[127.0.0.1:80", "localhost:80", "[]:80", "127.0.0.1:+1"}) {
    EXPECT_EQ(Address::parse(text).code(), Errc::invalid_argument) << text;
  }
  EXPECT_EQ(Address::parse(std::string_view("127.0.0.1\0x:80", 14)).code(), Errc::invalid_argument);
}

TEST(Address, KnowsLoopback) {
  EXPECT_TRUE(Address::loopback(1).is_loopback());
  EXPECT_TRUE(Address::parse("127.8.9.1:1")->is_loopback());
  EXPECT_TRUE(Address::parse("[::1]:1")->is_loopback());
  EXPECT_TRUE(Address::parse("[::ffff:127.0.0.1]:1")->is_loopback());
  EXPECT_FALSE(Address::parse("128.0.0.1:1")->is_loopback());
  EXPECT_FALSE(Address::parse("[::2]:1")->is_loopback());
  EXPECT_FALSE(Address().is_loopback());
  EXPECT_FALSE(Address().valid());
}

TEST(Address, ComparesByFamilyAddressAndPort) {
  EXPECT_EQ(*Address::parse("1.2.3.4:5"), *Address::parse("1.2.3.4:5"));
  EXPECT_NE(*Address::parse("1.2.3.4:5"), *Address::parse("1.2.3.4:6"));
  EXPECT_NE(*Address::parse("1.2.3.4:5"), *Address::parse("1.2.3.5:5"));
  EXPECT_NE(*Address::parse("[::1]:5"), *Address::parse("127.0.0.1:5"));
  EXPECT_EQ(Address(), Address());
}

TEST(Resolve, FindsLocalhostAndRefusesNonsense) {
  SeededRng rng(1);
  Registry registry;
  auto reactor = *Reactor::create({.mode = Mode::economy, .rng = rng, .registry = registry});
  OffloadPool helpers("test-resolve", 1);
  const auto ask = [&](std::string name) {
    return reactor->run_task(
        [](OffloadPool* pool, Reactor* r, std::string n) { return resolve(*pool, *r, std::move(n)); }, &helpers,
        reactor.get(), std::move(name));
  };
  auto local = ask("localhost:9000");
  ASSERT_TRUE(local) << local.error().to_string();
  EXPECT_TRUE(local->front().is_loopback());
  EXPECT_EQ(local->front().port(), 9000);
  EXPECT_EQ(ask("10.0.0.1:1")->front().to_string(), "10.0.0.1:1");
  for (const char* text : {"localhost", "localhost:", ":80", "localhost:99999", "a:b:1", "[x]:1"}) {
    EXPECT_EQ(ask(text).code(), Errc::invalid_argument) << text;
  }
}

// RFC 6761: also where there is no /etc/hosts and no DNS.
TEST(Resolve, LocalhostNeedsNoResolver) {
  SeededRng rng(1);
  Registry registry;
  auto reactor = *Reactor::create({.mode = Mode::economy, .rng = rng, .registry = registry});
  OffloadPool helpers("test-resolve", 1);
  const auto ask = [&](std::string name, Lookup lookup) {
    return reactor->run_task(
        [](OffloadPool* pool, Reactor* r, std::string n, Lookup l) { return resolve(*pool, *r, std::move(n), l); },
        &helpers, reactor.get(), std::move(name), lookup);
  };
  const Lookup none = [](const std::string&) {
    return Result<std::vector<Address>>(Error(Errc::not_found, "no name"));
  };
  const Lookup down = [](const std::string&) { return Result<std::vector<Address>>(Error(Errc::unavailable, "down")); };
  for (const Lookup lookup : {none, down}) {
    const auto local = ask("localhost:9000", lookup);
    ASSERT_TRUE(local) << local.error().to_string();
    EXPECT_EQ(*local, std::vector{Address::loopback(9000)});
  }
  EXPECT_EQ(ask("example.org:9000", none).code(), Errc::not_found);
  EXPECT_EQ(ask("example.org:9000", down).code(), Errc::unavailable);
  // A resolver that knows it has the last word.
  const Lookup v6 = [](const std::string&) { return Result<std::vector<Address>>({*Address::parse("[::1]:0")}); };
  EXPECT_EQ(ask("localhost:9000", v6)->front().to_string(), "[::1]:9000");
}

}  // namespace
}  // namespace cairn
