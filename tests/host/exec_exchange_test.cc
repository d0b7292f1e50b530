// Plug-ins that are programs: their answers, and the end of those that do not answer.
#include "host/process/exec_exchange.h"

#include "support/patience.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::host {
namespace {

constexpr ExecLimits kPatient{.time_max = support::kPatience};

TEST(ExecExchange, TakesWhatTheCommandAnswers) {
  EXPECT_EQ(exec_exchange("tr a-z A-Z", "hello", kPatient).value(), "HELLO");
  EXPECT_EQ(exec_exchange("echo \"$0\"; cat >/dev/null", "", kPatient).value(), "sh\n");
}

TEST(ExecExchange, MoreThanAnyBufferGoesBothWays) {
  const std::string input(3'000'000, 'x');
  EXPECT_EQ(exec_exchange("cat", input, kPatient).value(), input);
}

TEST(ExecExchange, ACommandNeedNotListen) {
  EXPECT_EQ(exec_exchange("echo done", std::string(1'000'000, 'x'), kPatient).value(), "done\n");
}

TEST(ExecExchange, AFailureIsNamed) {
  const auto code = exec_exchange("echo half; exit 3", "", kPatient);
  ASSERT_FALSE(code);
  EXPECT_NE(code.error().text().find("ended with code 3"), std::string::npos) << code.error().text();
  const auto missing = exec_exchange("/no/such/plug-in 2>/dev/null", "", kPatient);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().text().find("code 127"), std::string::npos) << missing.error().text();
  EXPECT_FALSE(exec_exchange("kill -9 $$", "", kPatient));
}

TEST(ExecExchange, TimeAndSizeAreBounded) {
  const auto slow = exec_exchange("exec sleep 60", "", {.time_max = milliseconds(50)});
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().code, ErrorCode::kTimeout);
  const auto silent = exec_exchange("exec >&-; exec sleep 60", "", {.time_max = milliseconds(50)});
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().code, ErrorCode::kTimeout);
  const auto loud = exec_exchange("yes", "", {.time_max = support::kPatience, .output_bytes_max = 1000});
  ASSERT_FALSE(loud);
  EXPECT_EQ(loud.error().code, ErrorCode::kRequestEntityTooLarge);
}

}  // namespace
}  // namespace spillway::host
