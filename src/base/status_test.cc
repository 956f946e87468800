#include "base/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <set>

namespace cairn {
namespace {

Result<std::unique_ptr<int>> make(int value) {
  if (value < 0) return Error(Errc::invalid_argument, "negative");
  return std::make_unique<int>(value);
}
Result<void> check(bool ok) {
  if (!ok) return Errc::busy;
  return {};
}
Result<int> sum(int a, int b, bool ok) {
  TRY(auto first, make(a));
  TRY(check(ok));
  TRY(const auto second, make(b));
  return *first + *second;
}

TEST(Result, TryReturnsTheFirstError) {
  EXPECT_EQ(*sum(1, 2, true), 3);
  EXPECT_EQ(sum(1, 2, true).code(), Errc::ok);
  EXPECT_EQ(sum(-1, 2, true).error().to_string(), "invalid_argument: negative");
  EXPECT_EQ(sum(1, -2, true).code(), Errc::invalid_argument);
  EXPECT_EQ(sum(1, -2, false).code(), Errc::busy);
  EXPECT_EQ(check(false).error().to_string(), "busy");
}

TEST(Error, ContextComesBeforeTheMessage) {
  EXPECT_EQ(Error(Errc::corrupt, "bad sum").with_context("chunk 7").to_string(), "corrupt: chunk 7: bad sum");
  EXPECT_EQ(Error(Errc::corrupt).with_context("chunk 7").to_string(), "corrupt: chunk 7");
}

TEST(Errc, NamesAreUniqueAndStable) {
  std::set<std::string_view> names;
  for (uint16_t i = 0; i <= static_cast<uint16_t>(Errc::unknown); ++i) {
    EXPECT_EQ(errc_from_wire(i), static_cast<Errc>(i));
    EXPECT_TRUE(names.insert(errc_name(static_cast<Errc>(i))).second);
  }
  // On the wire: these numbers never change.
  EXPECT_EQ(errc_name(static_cast<Errc>(5)), "no_space");
  EXPECT_EQ(errc_name(static_cast<Errc>(14)), "stale_epoch");
  EXPECT_EQ(errc_name(static_cast<Errc>(20)), "unknown");
  EXPECT_EQ(errc_from_wire(21), Errc::unknown);
  EXPECT_EQ(errc_from_wire(65535), Errc::unknown);
  EXPECT_EQ(errc_name(static_cast<Errc>(999)), "unknown");
}

TEST(Error, ErrnoBecomesTheKindThatCallersTreatAlike) {
  EXPECT_EQ(error_from_errno(ENOENT, "open /x").to_string(), "not_found: open /x: No such file or directory");
  EXPECT_EQ(error_from_errno(ENOSPC, "w").code(), Errc::no_space);
  EXPECT_EQ(error_from_errno(EIO, "w").code(), Errc::io_error);
  EXPECT_EQ(error_from_errno(EMFILE, "accept").code(), Errc::busy);
  EXPECT_EQ(error_from_errno(ECONNREFUSED, "connect").code(), Errc::unavailable);
  EXPECT_EQ(error_from_errno(ECONNRESET, "recv").code(), Errc::closed);
  EXPECT_EQ(error_from_errno(99999, "w").message(), "w: unknown error 99999");
}

}  // namespace
}  // namespace cairn
