#include "host/logs/log_query.h"

#include <gtest/gtest.h>

namespace spillway::host {
namespace {

const WallTime kNow{std::chrono::seconds(1'767'323'045)};

Result<LogQuery> parse(std::string_view query) {
  return parse_log_query(*api::parse_target(fmt::format("/containerLogs/ns/pod/c?{}", query)), kNow);
}

TEST(ParseLogQuery, TakesAllParameters) {
  const Result<LogQuery> query =
      parse("follow=true&previous=1&timestamps=True&tailLines=10&limitBytes=100&sinceSeconds=60&other=x");
  ASSERT_TRUE(query) << query.error().text();
  EXPECT_EQ(*query, (LogQuery{true, true, true, 10, 100, kNow - std::chrono::seconds(60)}));
  EXPECT_EQ(*parse(""), LogQuery{});
  EXPECT_EQ(*parse("follow=false&previous=0&timestamps=FALSE&tailLines="), LogQuery{});
  EXPECT_EQ(parse("sinceTime=2026-01-02T03:04:05Z")->since, kNow);
  EXPECT_EQ(parse("tailLines=0")->tail_lines, 0);
}

TEST(ParseLogQuery, RefusesNonsense) {
  for (const std::string_view text : {"tailLines=-1", "tailLines=x", "limitBytes=0", "sinceSeconds=0", "sinceTime=noon",
                                      "sinceSeconds=1&sinceTime=2026-01-02T03:04:05Z", "tailLines=1.5"})
    EXPECT_EQ(parse(text).error().code, ErrorCode::kBadRequest) << text;
}

TEST(TailOf, CountsLinesFromTheEnd) {
  EXPECT_EQ(tail_of("a\nb\nc\n", 0), "");
  EXPECT_EQ(tail_of("a\nb\nc\n", 1), "c\n");
  EXPECT_EQ(tail_of("a\nb\nc\n", 2), "b\nc\n");
  EXPECT_EQ(tail_of("a\nb\nc\n", 3), "a\nb\nc\n");
  EXPECT_EQ(tail_of("a\nb\nc\n", 9), "a\nb\nc\n");
  EXPECT_EQ(tail_of("a\nb", 1), "b");
  EXPECT_EQ(tail_of("\n\n", 1), "\n");
  EXPECT_EQ(tail_of("", 5), "");
}

std::string printed(const LogQuery& query, std::initializer_list<std::string_view> pieces) {
  LogPrinter printer(query);
  std::string out;
  for (const std::string_view piece : pieces) printer.add(piece, out);
  return out;
}

constexpr std::string_view kLog =
    "2026-01-02T03:04:04.000000000Z stdout F first\n"
    "2026-01-02T03:04:05.000000000Z stderr P half \n"
    "2026-01-02T03:04:05.500000000Z stderr F line\n"
    "torn line\n"
    "2026-01-02T03:04:06.000000000Z stdout F last\n";

TEST(LogPrinter, PrintsTheTextOfRecords) {
  EXPECT_EQ(printed({}, {kLog}), "first\nhalf line\nlast\n");
  EXPECT_EQ(printed({}, {kLog.substr(0, 20), kLog.substr(20, 70), kLog.substr(90)}), "first\nhalf line\nlast\n");
}

TEST(LogPrinter, TimeStampsBeginLines) {
  EXPECT_EQ(printed({.timestamps = true}, {kLog}),
            "2026-01-02T03:04:04.000000000Z first\n2026-01-02T03:04:05.000000000Z half line\n"
            "2026-01-02T03:04:06.000000000Z last\n");
}

TEST(LogPrinter, OmitsWhatIsOlder) {
  EXPECT_EQ(printed({.since = kNow}, {kLog}), "half line\nlast\n");
}

TEST(LogPrinter, StopsAtTheLimit) {
  EXPECT_EQ(printed({.limit_bytes = 8}, {kLog}), "first\nha");
  LogPrinter printer({.limit_bytes = 6});
  std::string out;
  printer.add(kLog, out);
  EXPECT_TRUE(printer.is_full());
}

}  // namespace
}  // namespace spillway::host
