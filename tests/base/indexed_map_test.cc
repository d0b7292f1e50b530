// Goal: an IndexedMap is a std::map, whether its index is in use or not.
// Method: the same random steps on both, around the size at which the index comes and goes.
#include "base/indexed_map.h"

#include "base/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

namespace spillway {
namespace {

using Numbers = IndexedMap<std::int64_t>;

std::string key_of(std::uint64_t number) {
  return "a-namespace-with-a-long-name/object-" + std::to_string(number);
}

void expect_same(Numbers& map, const std::map<std::string, std::int64_t>& model, std::uint64_t keys) {
  ASSERT_EQ(map.size(), model.size());
  ASSERT_TRUE(std::ranges::equal(map.ordered(), model));
  for (std::uint64_t number = 0; number < keys; ++number) {
    const auto wanted = model.find(key_of(number));
    const auto found = std::as_const(map).find(key_of(number));
    ASSERT_EQ(found != map.ordered().end(), wanted != model.end());
    if (wanted != model.end()) ASSERT_EQ(found->second, wanted->second);
    ASSERT_EQ(map.find(key_of(number)) != map.end(), wanted != model.end());
  }
}

TEST(IndexedMap, IsAMapAtEverySize) {
  constexpr std::uint64_t kKeys = 3 * Numbers::kIndexedFrom;
  Rng rng(3);
  Numbers map;
  std::map<std::string, std::int64_t> model;
  for (int round = 0; round < 12; ++round) {
    const bool grows = round % 2 == 0;
    for (int step = 0; step < 600; ++step) {
      const std::string key = key_of(rng.below(kKeys));
      if (rng.below(10) < (grows ? 8U : 2U)) {
        const auto value = static_cast<std::int64_t>(rng.below(1'000));
        EXPECT_EQ(map.emplace(key).second, model.emplace(key, 0).second);
        map[key] = model[key] = value;
      } else if (const auto found = map.find(key); found != map.end()) {
        map.erase(found);
        model.erase(key);
      }
    }
    expect_same(map, model, kKeys);
  }
  map.clear();
  expect_same(map, {}, kKeys);
  map[key_of(1)] = 7;
  expect_same(map, {{key_of(1), 7}}, kKeys);
}

}  // namespace
}  // namespace spillway
