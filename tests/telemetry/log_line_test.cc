#include "telemetry/log_line.h"

#include "telemetry/stderr_log.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace spillway::telemetry {
namespace {

std::string logfmt(std::initializer_list<Field> fields) {
  return render_logfmt(Level::kInfo, "evicting pod", std::span(fields.begin(), fields.size()));
}

std::string json(std::initializer_list<Field> fields) {
  return render_json_members(Level::kWarning, "evicting pod", std::span(fields.begin(), fields.size()));
}

TEST(LogLine, LogfmtIsWhatOperatorsRead) {
  EXPECT_EQ(logfmt({{"node", "n3"}, {"pod", "shop/cart-7"}, {"above_request_bytes", 734003200}}),
            R"(level=info msg="evicting pod" node=n3 pod=shop/cart-7 above_request_bytes=734003200)");
}

TEST(LogLine, LogfmtQuotesWhatWouldBeMisread) {
  EXPECT_EQ(logfmt({{"a", ""}}), R"(level=info msg="evicting pod" a="")");
  EXPECT_EQ(logfmt({{"a", "x y"}}), R"(level=info msg="evicting pod" a="x y")");
  EXPECT_EQ(logfmt({{"a", "x=y"}}), R"(level=info msg="evicting pod" a="x=y")");
  EXPECT_EQ(logfmt({{"a", R"(say "hi")"}}), R"(level=info msg="evicting pod" a="say \"hi\"")");
  EXPECT_EQ(logfmt({{"a", "größe"}}), "level=info msg=\"evicting pod\" a=größe");
}

std::string sentence(std::initializer_list<Field> fields) {
  return render_sentence(Level::kWarning, "nothing is recorded", std::span(fields.begin(), fields.size()));
}

TEST(LogLine, ASentenceIsForPeople) {
  EXPECT_EQ(sentence({}), "spillway: warning: nothing is recorded");
  EXPECT_EQ(sentence({{"directory", "/d"}, {"delete_with", "rm -r /d"}}),
            "spillway: warning: nothing is recorded (directory /d, delete with rm -r /d)");
  EXPECT_EQ(sentence({{"error", "disk full"}, {"node", "vm"}}),
            "spillway: warning: nothing is recorded (node vm): disk full");
  EXPECT_EQ(sentence({{"node", "a\nspillway: forged\x1b[2J"}}),
            "spillway: warning: nothing is recorded (node a spillway: forged?[2J)");
}

TEST(LogLine, IsOneLineWhateverTheFieldsHold) {
  const std::string forged = "ok\nlevel=error msg=forged\r\x1b[2J";
  EXPECT_EQ(logfmt({{"a", forged}}), R"(level=info msg="evicting pod" a="ok\nlevel=error msg=forged\r\u001b[2J")");
  EXPECT_EQ(json({{"a", forged}}),
            R"("level":"warning","msg":"evicting pod","a":"ok\nlevel=error msg=forged\r\u001b[2J")");
}

TEST(LogLine, JsonKeepsNumbersAndTruthValues) {
  EXPECT_EQ(json({{"count", 3}, {"share", 0.5}, {"held", true}, {"below", -2}}),
            R"("level":"warning","msg":"evicting pod","count":3,"share":0.5,"held":true,"below":-2)");
}

TEST(LogLine, JsonQuotesWhatIsNoNumber) {
  EXPECT_EQ(json({{"count", "3"}, {"share", std::numeric_limits<double>::infinity()}, {"letter", 'x'}}),
            R"("level":"warning","msg":"evicting pod","count":"3","share":"inf","letter":"x")");
}

TEST(Log, WritesFromItsThresholdOn) {
  std::string lines;
  const auto sink = [&](Level level, std::string_view event, std::span<const Field> fields) {
    lines += render_logfmt(level, event, fields) + "\n";
  };
  const Log log(sink, Level::kWarning);
  log.debug("one");
  log.info("two");
  log.warning("three", {{"n", 3}});
  log.error("four");
  EXPECT_EQ(lines, "level=warning msg=\"three\" n=3\nlevel=error msg=\"four\"\n");
  EXPECT_FALSE(log.enabled(Level::kInfo));
}

TEST(Log, DropsEverythingWithoutASink) {
  const Log log;
  EXPECT_FALSE(log.enabled(Level::kError));
  log.error("nobody hears this");
}

TEST(Log, WritesToStandardError) {
  ::testing::internal::CaptureStderr();
  make_stderr_log(Level::kInfo, LogFormat::kLogfmt).info("serving", {{"port", 6443}});
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(text.starts_with("time=20")) << text;
  EXPECT_TRUE(text.ends_with("Z level=info msg=\"serving\" port=6443\n")) << text;

  ::testing::internal::CaptureStderr();
  make_stderr_log(Level::kDebug, LogFormat::kJson).debug("serving {} %v", {{"port", 6443}});
  const std::string object = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(object.starts_with("{\"time\":\"20")) << object;
  EXPECT_TRUE(object.ends_with("Z\",\"level\":\"debug\",\"msg\":\"serving {} %v\",\"port\":6443}\n")) << object;
}

TEST(Log, WritesOnlyProblemsOfAProcessThatHasFailed) {
  bool failed = false;
  const Log log = make_stderr_log(Level::kDebug, LogFormat::kLogfmt, [&failed] { return failed; });
  ::testing::internal::CaptureStderr();
  log.info("before");
  failed = true;
  log.debug("usual");
  log.info("usual");
  log.warning("cgroup was not removed");
  log.error("not written");
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("before"), std::string::npos) << text;
  EXPECT_EQ(text.find("usual"), std::string::npos) << text;
  EXPECT_NE(text.find("cgroup was not removed"), std::string::npos) << text;
  EXPECT_NE(text.find("not written"), std::string::npos) << text;
}

TEST(LogLine, HoldsNoCharacterThatMovesATerminal) {
  for (const auto& [text, escaped] : {std::pair<std::string, std::string>{"a\x1b[2J", R"(a\u001b[2J)"},
                                      {"\x7f", R"(\u007f)"},
                                      {"\xc2\x9b[2J", R"(\u009b[2J)"},
                                      {"\xc2\x80", R"(\u0080)"},
                                      {"\xe2\x80\xae", R"(\u202e)"},
                                      {"\xe2\x80\xa8", R"(\u2028)"},
                                      {"\xe2\x81\xa6", R"(\u2066)"},
                                      {"a\xff", R"(a\ufffd)"},
                                      {"\xc3\xa4 b", "\xc3\xa4 b"}}) {
    EXPECT_EQ(logfmt({{"a", text}}), "level=info msg=\"evicting pod\" a=\"" + escaped + "\"");
    EXPECT_EQ(json({{"a", text}}), R"("level":"warning","msg":"evicting pod","a":")" + escaped + "\"");
  }
}

}  // namespace
}  // namespace spillway::telemetry
