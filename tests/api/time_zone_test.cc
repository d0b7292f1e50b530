#include "api/text/time_zone.h"

#include "api/text/time_text.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::api {
namespace {

TEST(TimeZone, KnowsWhatLocalTimeWas) {
  const TimeZone berlin = TimeZone::find("Europe/Berlin").value();
  const WallTime winter = parse_time("2026-03-29T00:59:59Z").value();
  EXPECT_EQ(berlin.offset_at(winter), hours(1));
  EXPECT_EQ(berlin.offset_at(winter + seconds(1)), hours(2));
  EXPECT_EQ(format_time_in(winter + seconds(1), berlin), "2026-03-29T03:00:00+02:00");
  EXPECT_EQ(format_time_in(winter, TimeZone::find("America/St_Johns").value()), "2026-03-28T22:29:59-02:30");
  EXPECT_EQ(format_time_in(winter, TimeZone()), "2026-03-29T00:59:59Z");
  EXPECT_EQ(format_time_in(winter, TimeZone::find("UTC").value()), "2026-03-29T00:59:59Z");
}

TEST(TimeZone, IsNoPath) {
  for (const std::string name : {"", "/etc/localtime", "../zoneinfo/Europe/Berlin", "Europe/../Europe/Berlin",
                                 "Europe//Berlin", "Europe/./Berlin", "./Europe/Berlin", "Europe/Berlin/", "Europe",
                                 "Europe/Atlantis", "Fixed/UTC+05:00:00", "Europe/Berlin\n", "zone.tab"}) {
    EXPECT_FALSE(TimeZone::find(name).has_value()) << name;
  }
  EXPECT_FALSE(TimeZone::find(std::string("Europe/Berlin\0", 14)).has_value());
  EXPECT_FALSE(TimeZone::find(std::string(100'000, 'x')).has_value());
}

}  // namespace
}  // namespace spillway::api
