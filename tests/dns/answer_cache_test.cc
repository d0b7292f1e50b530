// The cache of other servers' answers: times, bounds, which answers are kept.
#include "dns/answer_cache.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace spillway::dns {
namespace {

constexpr Instant kStart{std::chrono::hours(1)};

ForeignAnswer message(std::size_t bytes, std::optional<std::uint32_t> ttl_seconds) {
  return {.message = std::make_shared<const std::string>(bytes, 'x'), .ttl_seconds = ttl_seconds};
}

CacheKey key(const std::string& name) {
  return {.name = name};
}

TEST(AnswerCache, RepeatsAnAnswerUntilItsTimeIsOver) {
  AnswerCache cache({.ttl_max_seconds = 30});
  cache.put(key("a"), message(10, 5), kStart);
  const auto hit = cache.find(key("a"), kStart + milliseconds(4999));
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->age_seconds, 4U);
  EXPECT_FALSE(cache.find(key("a"), kStart + seconds(5)));
  EXPECT_EQ(cache.size(), 0U);
  EXPECT_EQ(cache.bytes(), 0U);
}

TEST(AnswerCache, CutsLongTimes) {
  AnswerCache cache({.ttl_max_seconds = 30});
  cache.put(key("a"), message(10, 86400), kStart);
  EXPECT_TRUE(cache.find(key("a"), kStart + seconds(29)));
  EXPECT_FALSE(cache.find(key("a"), kStart + seconds(30)));
}

TEST(AnswerCache, KeepsQuestionsOfOtherTypesAndFlagsApart) {
  AnswerCache cache({});
  cache.put({.name = "a", .type = RecordType::kA}, message(10, 5), kStart);
  EXPECT_FALSE(cache.find({.name = "a", .type = RecordType::kAaaa}, kStart));
  EXPECT_FALSE(cache.find({.name = "a", .type = RecordType::kA, .dnssec_ok = true}, kStart));
  EXPECT_FALSE(cache.find({.name = "a", .type = RecordType::kA, .checking_disabled = true}, kStart));
  EXPECT_TRUE(cache.find({.name = "a", .type = RecordType::kA}, kStart));
}

TEST(AnswerCache, KeepsNoAnswerWithoutTime) {
  AnswerCache cache({});
  cache.put(key("a"), message(10, std::nullopt), kStart);
  cache.put(key("b"), message(10, 0), kStart);
  ForeignAnswer cut = message(10, 5);
  cut.truncated = true;
  cache.put(key("c"), cut, kStart);
  EXPECT_EQ(cache.size(), 0U);
}

TEST(AnswerCache, ANewAnswerReplacesTheOldOne) {
  AnswerCache cache({});
  cache.put(key("a"), message(10, 5), kStart);
  cache.put(key("a"), message(20, 5), kStart + seconds(4));
  EXPECT_EQ(cache.size(), 1U);
  EXPECT_EQ(cache.bytes(), 20U);
  EXPECT_TRUE(cache.find(key("a"), kStart + seconds(8)));
}

TEST(AnswerCache, DropsTheAnswerThatWasNotUsedForLongest) {
  AnswerCache cache({.entries_max = 3});
  for (const char* name : {"a", "b", "c"}) cache.put(key(name), message(10, 20), kStart);
  EXPECT_TRUE(cache.find(key("a"), kStart));
  cache.put(key("d"), message(10, 20), kStart);
  EXPECT_TRUE(cache.find(key("a"), kStart));
  EXPECT_FALSE(cache.find(key("b"), kStart));
}

TEST(AnswerCache, IsBoundedInBytes) {
  AnswerCache cache({.entries_max = 1000, .bytes_max = 10'000});
  for (int i = 0; i < 500; ++i) cache.put(key(fmt::format("n{}", i)), message(90, 20), kStart);
  EXPECT_LE(cache.bytes(), 10'000U);
  EXPECT_EQ(cache.size(), 111U);
  cache.put(key("large"), message(101, 20), kStart);
  EXPECT_FALSE(cache.find(key("large"), kStart));
}

}  // namespace
}  // namespace spillway::dns
