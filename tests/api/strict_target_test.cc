// Goal: a path that decides about rights has one spelling, besides a trailing slash.
#include "api/exchange/strict_target.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spillway::api {
namespace {

TEST(StrictTarget, KeepsPlainPathsAndNeededEscapes) {
  const auto target = parse_strict_target("/containerLogs/a/b%3Ac/%40d/?tailLines=%31&x=%2e%2e");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->segments, (std::vector<std::string>{"containerLogs", "a", "b:c", "@d"}));
  EXPECT_EQ(*target->find("tailLines"), "1") << "a query may escape every byte";
  EXPECT_EQ(*target->find("x"), "..");
  EXPECT_TRUE(parse_strict_target("/").value().segments.empty());
  EXPECT_EQ(parse_strict_target("/%2565xec").value().segments, (std::vector<std::string>{"%65xec"}));
}

TEST(StrictTarget, RefusesEscapesThatAPathDoesNotNeed) {
  const std::string_view refused[] = {"/%65xec",     "/%65xec/",   "/a/%2Fb",     "/a/%2fb", "/a%2E",
                                      "/%2e%2e/a",   "/a/%00",     "/a/%0d%0aX:", "/a%7Eb",  "/a/b%5F",
                                      "/a%2Db",      "/%c0%ae",    "/a/%ff",      "/a/%7f",  "/%3A%61",
                                      "/%65xec?a=b", "/%65xec#?a", "/a%",         "/a%2",    "/a%zz"};
  for (const std::string_view text : refused) {
    const auto target = parse_strict_target(text);
    ASSERT_FALSE(target) << text;
    EXPECT_EQ(target.error().code, ErrorCode::kBadRequest) << text;
  }
  EXPECT_EQ(parse_strict_target("/p/%65xec").error().message, "the escape \"%65\" at byte 3 is not allowed in a path");
}

TEST(StrictTarget, DoesNotFindPathsThatAreNotNormal) {
  for (const std::string_view text :
       {"//", "//a", "/a//b", "/a//", "/./a", "/a/.", "/../a", "/a/../b", "/a/..", "/a/../"}) {
    const auto target = parse_strict_target(text);
    ASSERT_FALSE(target) << text;
    EXPECT_EQ(target.error().code, ErrorCode::kNotFound) << text;
  }
}

TEST(StrictTarget, PathIsWhatThePartsSay) {
  EXPECT_EQ(path_of(parse_strict_target("/").value()), "/");
  EXPECT_EQ(path_of(parse_strict_target("/healthz/ping/?verbose").value()), "/healthz/ping");
  EXPECT_EQ(path_of(parse_strict_target("/a%20b").value()), "/a b");
}

}  // namespace
}  // namespace spillway::api
