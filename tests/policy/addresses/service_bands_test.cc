#include "policy/addresses/service_bands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace spillway::addresses {
namespace {

/// Small ranges, from every start: each number is tried once, and the static band last.
TEST(ServiceBands, EachNumberIsTriedOnceAndTheStaticBandLast) {
  for (std::uint64_t count = 1; count <= 40; ++count) {
    for (std::uint64_t offset = 0; offset < count; ++offset) {
      const Bands bands{.count = count, .offset = offset};
      for (std::uint64_t start = 0; start < count + 3; ++start) {
        std::vector<std::uint64_t> order;
        for (std::uint64_t step = 0; step < count; ++step) order.push_back(number_at(bands, start, step));
        const auto first_static = std::ranges::find_if(order, [&](std::uint64_t each) { return each < offset; });
        ASSERT_EQ(static_cast<std::uint64_t>(first_static - order.begin()), count - offset);
        std::ranges::sort(order);
        for (std::uint64_t number = 0; number < count; ++number) ASSERT_EQ(order[number], number);
      }
    }
  }
}

TEST(ServiceBands, AllAddressesCount) {
  const AddressBands all = address_bands(*api::parse_ip_range("0.0.0.0/0"));
  EXPECT_EQ(all.range_size, std::uint64_t{1} << 32U);
  EXPECT_EQ(all.bands, (Bands{.count = (std::uint64_t{1} << 32U) - 2, .offset = 256}));
  EXPECT_EQ(address_bands(*api::parse_ip_range("10.0.0.1/32")).bands.count, 0U);
  EXPECT_EQ(address_bands(*api::parse_ip_range("::/0")).range_size, (std::uint64_t{1} << 63U) - 1);
  EXPECT_EQ(address_bands(*api::parse_ip_range("::/0")).bands.count, 65535U);
}

}  // namespace
}  // namespace spillway::addresses
