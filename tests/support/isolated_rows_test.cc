#include "support/isolated_rows.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

namespace spillway::support {
namespace {

std::optional<Mismatch> check(const api::Json& row) {
  const std::string_view what = row.string_at({"does"});
  if (what == "throw") throw std::runtime_error("no such thing");
  if (what == "crash") raise(SIGKILL);
  if (what == "end") _exit(7);
  if (what == "differ") return Mismatch{"a", "b"};
  return std::nullopt;
}

VectorRow row(std::string_view does) {
  return {"f", 1, api::Json::object({{"does", does}})};
}

TEST(CheckRows, ARowThatEndsTheProcessIsAFailedRow) {
  const std::vector<VectorRow> rows{row("pass"), row("crash"), row("differ"), row("throw"), row("end"), row("pass")};
  const std::vector<std::optional<Mismatch>> outcomes = check_rows(check, rows);
  ASSERT_EQ(outcomes.size(), rows.size());
  EXPECT_FALSE(outcomes[0]);
  ASSERT_TRUE(outcomes[1]);
  EXPECT_EQ(outcomes[1]->got, "the check was ended by signal 9 (Killed)");
  ASSERT_TRUE(outcomes[2]);
  EXPECT_EQ(outcomes[2]->want, "a");
  EXPECT_EQ(outcomes[2]->got, "b");
  ASSERT_TRUE(outcomes[3]);
  EXPECT_EQ(outcomes[3]->got, "an exception: no such thing");
  ASSERT_TRUE(outcomes[4]);
  EXPECT_EQ(outcomes[4]->got, "the check ended the process with code 7");
  EXPECT_FALSE(outcomes[5]);
}

TEST(CheckRows, NoRowsNoOutcomes) {
  EXPECT_TRUE(check_rows(check, {}).empty());
}

}  // namespace
}  // namespace spillway::support
