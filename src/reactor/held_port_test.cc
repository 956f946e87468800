#include "reactor/held_port.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace cairn {
namespace {

TEST(HeldPort, GivesAFreePortAndHoldsIt) {
  const auto held = HeldPort::take(Address::loopback(0));
  ASSERT_TRUE(held) << held.error().to_string();
  EXPECT_NE(held->address().port(), 0);
  // It isn't listened on, so only binding without SO_REUSEPORT meets it.
  const Fd other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_NE(::bind(other.get(), held->address().raw(), held->address().raw_size()), 0);
}

TEST(HeldPort, FindsAnotherListenerThatWouldShareThePort) {
  const auto held = HeldPort::take(Address::loopback(0));
  ASSERT_TRUE(held);
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes);
  ASSERT_EQ(::bind(listener.get(), held->address().raw(), held->address().raw_size()), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  const auto second = HeldPort::take(held->address());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Errc::busy);
}

TEST(HeldPort, SaysWhatIsWrongWithAnAddress) {
  const auto held = HeldPort::take(*Address::parse("203.0.113.7:0"));
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code(), Errc::invalid_argument) << held.error().to_string();
}

}  // namespace
}  // namespace cairn
