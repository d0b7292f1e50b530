// Goal: the limits of classes of pods follow from what the higher classes request, in upstream's arithmetic.
#include "policy/cgroups/qos_reserve.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace spillway::cgroups {
namespace {

struct ReserveRow {
  std::string name;
  std::int64_t allocatable;
  std::int64_t guaranteed;
  std::int64_t burstable;
  std::int64_t percent;
  std::optional<ClassMemory> limits;
};

std::optional<ClassMemory> limits_of(std::int64_t burstable, std::int64_t best_effort) {
  return ClassMemory{.burstable = Bytes{burstable}, .best_effort = Bytes{best_effort}};
}

TEST(QosReserve, LimitsFollowFromTheRequestsOfHigherClasses) {
  const ReserveRow rows[] = {
      {"no pods", 1000, 0, 0, 100, limits_of(1000, 1000)},
      {"all of both", 1000, 300, 200, 100, limits_of(700, 500)},
      {"half of both", 1000, 300, 200, 50, limits_of(850, 750)},
      {"none", 1000, 300, 200, 0, limits_of(1000, 1000)},
      {"Guaranteed pods alone", 1000, 300, 0, 100, limits_of(700, 700)},
      {"Burstable pods alone", 1000, 0, 200, 100, limits_of(1000, 800)},
      {"fractions of a byte are dropped", 1000, 33, 33, 50, limits_of(984, 968)},
      {"sizes of real machines", 64LL << 30, 10LL << 30, 20LL << 30, 75, limits_of(60'666'413'056, 44'560'285'696)},
      {"more requests than memory, as static pods make them", 1000, 700, 700, 100, limits_of(300, 0)},
      {"no memory is known", 0, 300, 200, 100, std::nullopt},
  };
  for (const ReserveRow& row : rows) {
    EXPECT_EQ(class_memory(Bytes{row.allocatable}, {Bytes{row.guaranteed}, Bytes{row.burstable}}, row.percent),
              row.limits)
        << row.name;
  }
}

}  // namespace
}  // namespace spillway::cgroups
