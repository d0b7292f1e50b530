// The message of a container that ended, from the end of its log: lines are whole again, and what has no line feed gets
// none.
#include "policy/containers/container_statuses.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::containers {
namespace {

std::string message_from(std::string log) {
  return termination_message({.file = {}, .from_logs = true, .exit_code = 1, .log = std::move(log)});
}

std::string record(const std::string& tags, const std::string& text) {
  return "2026-01-01T00:00:00.000000001Z stdout " + tags + " " + text + "\n";
}

TEST(TerminationMessage, EndsAsTheOutputEnds) {
  EXPECT_EQ(message_from(record("F", "DONE")), "DONE\n");
  EXPECT_EQ(message_from(record("P", "DONE")), "DONE");
  EXPECT_EQ(message_from(record("F", "one") + record("P", "two")), "one\ntwo");
  EXPECT_EQ(message_from(record("F", "")), "\n");
  EXPECT_EQ(message_from(""), "");
}

TEST(TerminationMessage, ALineInPartsIsOneLine) {
  const std::string part(1000, 'x');
  EXPECT_EQ(message_from(record("P", part) + record("F", "end") + record("F", "next")), part + "end\nnext\n");
  EXPECT_EQ(message_from(record("P:more", "a") + record("F:more", "b")), "ab\n");
}

TEST(TerminationMessage, HasTheLast2048BytesOfTheLast80Records) {
  std::string log;
  for (int i = 0; i < 100; ++i) log += record("F", std::to_string(i));
  EXPECT_TRUE(message_from(log).starts_with("20\n21\n"));
  EXPECT_EQ(message_from(record("F", std::string(5000, 'x'))), std::string(2047, 'x') + "\n");
}

}  // namespace
}  // namespace spillway::containers
