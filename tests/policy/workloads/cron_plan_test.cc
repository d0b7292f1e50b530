// Cases that no vector has: numbers at the edge of 64 bits, and the cost of a pass.
#include "policy/workloads/cron_plan.h"

#include "api/object/job.h"
#include "api/text/time_text.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace spillway::workloads {
namespace {

WallTime at(std::string_view text) {
  return api::parse_time(text).value();
}

api::CronJob cron_job(std::string schedule, std::string_view created) {
  api::CronJob cron;
  cron.metadata.name = "tick";
  cron.metadata.creation_timestamp = at(created);
  cron.schedule = std::move(schedule);
  cron.concurrency_policy = "Allow";
  return cron;
}

std::optional<WallTime> latest(const api::CronJob& cron, WallTime now) {
  return due_start(cron, schedule_of(cron).value(), LateStarts::kForgotten, now).value().latest;
}

TEST(CronPlan, TakesTheLastOfManyMissedStarts) {
  // Half a year without one, and then one every minute: counted by the first interval, a quarter of a million remain.
  const api::CronJob cron = cron_job("* * * 1-6 *", "2025-06-30T23:58:30Z");
  EXPECT_EQ(latest(cron, at("2026-06-01T12:34:56Z")), at("2026-06-01T12:34:00Z"));
  EXPECT_EQ(latest(cron, at("2026-06-30T23:59:00Z")), at("2026-06-30T23:59:00Z"));
  EXPECT_EQ(latest(cron, at("2026-12-24T00:00:00Z")), at("2026-06-30T23:59:00Z"));
}

TEST(CronPlan, TheLastStartIsThatOfASearchOneByOne) {
  const std::vector<std::string> schedules{"*/7 3-5 * * 1-5", "* * 1 * *",  "59 23 31 1,3 *", "30 */5 */9 * *",
                                           "0 0 * 2 *",       "@every 61s", "@hourly"};
  for (const std::string& text : schedules) {
    const api::CronJob cron = cron_job(text, "2025-12-30T00:00:01Z");
    const CronSchedule schedule = schedule_of(cron).value();
    std::optional<WallTime> last;
    std::optional<WallTime> next = schedule.next(*cron.metadata.creation_timestamp);
    for (WallTime now = at("2025-12-30T00:00:02Z"); now < at("2026-04-02T00:00:00Z"); now += hours(17) + seconds(1)) {
      for (; next && *next <= now; next = schedule.next(*next)) last = next;
      const auto found = latest(cron, now);
      // The estimate may find none where the schedule is uneven, as upstream's.
      if (found) EXPECT_EQ(found, last) << text << " at " << api::format_time(now);
      if (text.starts_with('@')) EXPECT_EQ(found, last) << text << " at " << api::format_time(now);
    }
  }
}

TEST(CronPlan, ADeadlineOfSixtyFourBitsIsNone) {
  api::CronJob cron = cron_job("0 * * * *", "2026-01-01T00:30:00Z");
  cron.starting_deadline_seconds = std::numeric_limits<std::int64_t>::max();
  const CronPlan plan = plan_cron({cron, {}, {}}, at("2026-01-01T01:30:00Z"));
  EXPECT_EQ(plan.due, at("2026-01-01T01:00:00Z"));
}

TEST(CronPlan, AStartInTenThousandYearsIsRequeued) {
  api::CronJob cron = cron_job("0 * * * *", "2026-01-01T00:30:00Z");
  cron.status.last_schedule_time = at("9999-12-31T00:00:00Z");
  const CronPlan plan = plan_cron({cron, {}, {}}, at("2026-01-01T01:30:00Z"));
  EXPECT_EQ(plan.due, std::nullopt);
  ASSERT_TRUE(plan.requeue_after);
  EXPECT_GT(*plan.requeue_after, hours(24));
}

TEST(CronSchedule, RefusesWhatItCannotRead) {
  for (const std::string text : {"",
                                 "* * * *",
                                 "* * * * * *",
                                 "60 * * * *",
                                 "* 24 * * *",
                                 "* * 0 * *",
                                 "* * * 13 *",
                                 "* * * * 7",
                                 "5-1 * * * *",
                                 "*/0 * * * *",
                                 "*/-1 * * * *",
                                 "1/2/3 * * * *",
                                 "1-2-3 * * * *",
                                 "x * * * *",
                                 "99999999999 * * * *",
                                 "@every",
                                 "@every x",
                                 "@reboot",
                                 "TZ=",
                                 "TZ=No/Where * * * * *",
                                 "TZ=../../etc/passwd * * * * *"}) {
    EXPECT_FALSE(CronSchedule::parse(text).has_value()) << text;
  }
  EXPECT_TRUE(CronSchedule::parse("*/2147483647 * * * *").has_value());
}

TEST(CronSchedule, EveryIsNeverLessThanASecond) {
  const CronSchedule schedule = CronSchedule::parse("@every 1ns").value();
  EXPECT_EQ(schedule.next(at("2026-01-01T00:00:00Z")), at("2026-01-01T00:00:01Z"));
}

TEST(CronSchedule, NeverDueIsFoundOut) {
  EXPECT_EQ(CronSchedule::parse("0 0 30 2 *").value().next(at("2026-01-01T00:00:00Z")), std::nullopt);
  EXPECT_EQ(CronSchedule::parse(", * * * *").value().next(at("2026-01-01T00:00:00Z")), std::nullopt);
}

}  // namespace
}  // namespace spillway::workloads
