#include "api/text/time_text.h"

#include "api/object/meta.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cstdlib>

namespace spillway::api {
namespace {

constexpr std::int64_t kSecond = 1'767'323'045;  // 2026-01-02T03:04:05Z

TEST(TimeText, Formats) {
  EXPECT_EQ(format_time(WallTime(seconds(kSecond))), "2026-01-02T03:04:05Z");
  EXPECT_EQ(format_time(WallTime(seconds(kSecond) + microseconds(999'999))), "2026-01-02T03:04:05Z");
  EXPECT_EQ(format_micro_time(WallTime(seconds(kSecond) + microseconds(7))), "2026-01-02T03:04:05.000007Z");
  EXPECT_EQ(format_time(WallTime()), "1970-01-01T00:00:00Z");
  EXPECT_EQ(format_micro_time(WallTime(microseconds(-1))), "1969-12-31T23:59:59.999999Z");
}

TEST(TimeText, ParsesWhatItPrints) {
  for (std::int64_t at = -62'135'596'800; at < 253'402'300'799; at += 86'399'977) {  // years 1 to 9999
    const WallTime time{seconds(at) + microseconds(at < 0 ? 1 : 999'999)};
    EXPECT_EQ(parse_time(format_micro_time(time)).value(), time);
  }
}

TEST(TimeText, TakesFractionsAndOffsets) {
  const WallTime time{seconds(kSecond)};
  EXPECT_EQ(parse_time("2026-01-02T03:04:05.5Z").value(), time + milliseconds(500));
  EXPECT_EQ(parse_time("2026-01-02T03:04:05.123456789Z").value(), time + microseconds(123'456));
  EXPECT_EQ(parse_time("2026-01-02T05:34:05+02:30").value(), time);
  EXPECT_EQ(parse_time("2026-01-01T22:04:05-05:00").value(), time);
  EXPECT_EQ(parse_time("2024-02-29T00:00:00Z").value(), WallTime(seconds(1'709'164'800)));
}

TEST(TimeText, RefusesEverythingElse) {
  for (const std::string_view text :
       {"", "2026-01-02", "2026-01-02T03:04:05", "2026-01-02 03:04:05Z", "2026-13-02T03:04:05Z", "2026-02-29T03:04:05Z",
        "2026-01-02T24:04:05Z", "2026-01-02T03:60:05Z", "2026-01-02T03:04:60Z", "2026-01-02T03:04:05.Z",
        "2026-01-02T03:04:05ZZ", "2026-01-02T03:04:05+2:00", "2026-01-02T03:04:05+24:00", "26-01-02T03:04:05Z",
        "2026-1-02T03:04:05Z", "+026-01-02T03:04:05Z", "2026-01-02T03:04:05z"}) {
    const auto time = parse_time(text);
    ASSERT_FALSE(time) << text;
    EXPECT_EQ(time.error().code, ErrorCode::kInvalid);
  }
}

TEST(TimeText, IgnoresZoneAndLocale) {
  ASSERT_EQ(setenv("TZ", "Pacific/Chatham", 1), 0);
  std::setlocale(LC_ALL, "");
  EXPECT_EQ(format_time(WallTime(seconds(kSecond))), "2026-01-02T03:04:05Z");
  EXPECT_EQ(parse_time("2026-01-02T03:04:05Z").value(), WallTime(seconds(kSecond)));
  unsetenv("TZ");
  std::setlocale(LC_ALL, "C");
}

TEST(Meta, TheControllerIsTheOwnerThatSaysSo) {
  ObjectMeta meta;
  EXPECT_EQ(controller_of(meta), nullptr);
  meta.owner_references = {{.name = "a", .controller = false}, {.name = "b"}, {.name = "c", .controller = true}};
  ASSERT_NE(controller_of(meta), nullptr);
  EXPECT_EQ(controller_of(meta)->name, "c");
}

}  // namespace
}  // namespace spillway::api
