// The outlook of a CronJob: when it runs next, or why it does not.
#include "policy/outlook/cron_outlook.h"

#include "policy/outlook/outlook_facts.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace spillway::outlook {
namespace {

using policy::Verdict;
using workloads::JobPtr;

const WallTime kNow = at("2026-11-26T12:20:00Z");

class CronOutlooks : public ::testing::Test {
 protected:
  CronOutlooks() {
    cron.metadata.ns = "shop";
    cron.metadata.name = "nightly";
    cron.metadata.uid = "cron-uid";
    cron.metadata.creation_timestamp = kNow - hours(1);
    cron.schedule = "30 * * * *";
    cron.concurrency_policy = "Allow";
    cron.successful_jobs_history_limit = 3;
    cron.failed_jobs_history_limit = 1;
    cron.status.last_schedule_time = at("2026-11-26T11:30:00Z");
  }

  std::shared_ptr<api::Job> add_job(WallTime due, std::string_view condition = {}) {
    auto job = std::make_shared<api::Job>();
    job->metadata.name = workloads::cron_job_name(cron, due);
    job->metadata.uid = job->metadata.name + "-uid";
    job->status.start_time = due;
    if (!condition.empty()) {
      job->status.conditions = {{std::string(condition), "True", due, due, "BackoffLimitExceeded", ""}};
      job->status.completion_time = due + seconds(40);
    }
    jobs.push_back(job);
    return job;
  }

  void run_now(const api::Job& job) {
    cron.status.active.push_back({.name = job.metadata.name, .uid = job.metadata.uid});
  }

  Outlook explain() const { return explain_cron_job({cron, std::vector<JobPtr>(jobs.begin(), jobs.end())}, kNow); }

  api::CronJob cron;
  std::vector<std::shared_ptr<api::Job>> jobs;
};

TEST_F(CronOutlooks, SaysWhenItRunsNext) {
  const Outlook said = explain();
  EXPECT_EQ(first_code(said), Code::kCronNext);
  EXPECT_EQ(fact_of(said, Code::kCronNext, "next_at"), "2026-11-26T12:30:00Z");
  EXPECT_EQ(fact_of(said, Code::kCronNext, "next_seconds"), "600");
  EXPECT_EQ(fact_of(said, Code::kCronLast, "state"), "gone");
}

TEST_F(CronOutlooks, ReckonsInItsZone) {
  cron.schedule = "0 2 * * *";
  cron.time_zone = "Asia/Tokyo";
  cron.status.last_schedule_time = at("2026-11-25T17:00:00Z");
  const Outlook said = explain();
  EXPECT_EQ(fact_of(said, Code::kCronNext, "next_at"), "2026-11-26T17:00:00Z");
  EXPECT_EQ(fact_of(said, Code::kCronPolicy, "time_zone"), "Asia/Tokyo");
}

struct WhyNotCase {
  std::string_view name;
  std::function<void(api::CronJob&)> change;
  Code first;
  Verdict verdict;
};

TEST_F(CronOutlooks, NamesWhyItDoesNotRun) {
  const std::vector<WhyNotCase> cases{
      {"suspended", [](api::CronJob& cron) { cron.suspend = true; }, Code::kCronSuspended, Verdict::kWaits},
      {"zone", [](api::CronJob& cron) { cron.time_zone = "Nowhere/Land"; }, Code::kCronUnknownZone, Verdict::kRefuses},
      {"schedule", [](api::CronJob& cron) { cron.schedule = "every day"; }, Code::kCronUnreadable, Verdict::kRefuses},
      {"never", [](api::CronJob& cron) { cron.schedule = "0 0 30 2 *"; }, Code::kCronNever, Verdict::kRests},
      {"deleted", [](api::CronJob& cron) { cron.metadata.deletion_timestamp = kNow; }, Code::kBeingDeleted,
       Verdict::kRests},
      {"due", [](api::CronJob& cron) { cron.schedule = "15 * * * *"; }, Code::kCronDue, Verdict::kActs},
      {"missed",
       [](api::CronJob& cron) {
         cron.schedule = "15 * * * *";
         cron.starting_deadline_seconds = 60;
       },
       Code::kCronMissed, Verdict::kWaits},
  };
  const api::CronJob plain = cron;
  for (const WhyNotCase& each : cases) {
    cron = plain;
    each.change(cron);
    const Outlook said = explain();
    EXPECT_EQ(to_string(first_code(said)), to_string(each.first)) << each.name;
    EXPECT_EQ(said.verdict, each.verdict) << each.name;
  }
}

TEST_F(CronOutlooks, AMissedStartHasATimeAndTheNextOneFollows) {
  cron.schedule = "15 * * * *";
  cron.starting_deadline_seconds = 60;
  const Outlook said = explain();
  EXPECT_EQ(fact_of(said, Code::kCronMissed, "due_at"), "2026-11-26T12:15:00Z");
  EXPECT_EQ(fact_of(said, Code::kCronMissed, "deadline_seconds"), "60");
  EXPECT_EQ(fact_of(said, Code::kCronNext, "next_at"), "2026-11-26T13:15:00Z");
}

TEST_F(CronOutlooks, OneThatRunsForbidsTheNext) {
  run_now(*add_job(*cron.status.last_schedule_time));
  cron.schedule = "15 * * * *";
  cron.concurrency_policy = "Forbid";
  const Outlook said = explain();
  EXPECT_EQ(first_code(said), Code::kCronForbidden);
  EXPECT_EQ(fact_of(said, Code::kCronForbidden, "job"), jobs.front()->metadata.name);
  EXPECT_EQ(fact_of(said, Code::kCronForbidden, "due_at"), "2026-11-26T12:15:00Z");
  cron.concurrency_policy = "Allow";
  EXPECT_EQ(first_code(explain()), Code::kCronDue);
}

TEST_F(CronOutlooks, ManyMissedStartsAreReported) {
  cron.schedule = "* * * * *";
  cron.status.last_schedule_time = kNow - hours(3);
  const Outlook said = explain();
  EXPECT_EQ(first_code(said), Code::kCronDue);
  EXPECT_EQ(fact_of(said, Code::kCronManyMissed, "since_at"), "2026-11-26T09:20:00Z");
}

TEST_F(CronOutlooks, SaysHowRunsEnded) {
  add_job(at("2026-11-26T09:30:00Z"), "Complete");
  add_job(at("2026-11-26T10:30:00Z"), "Failed");
  add_job(at("2026-11-26T11:30:00Z"), "Complete");
  const Outlook said = explain();
  EXPECT_EQ(fact_of(said, Code::kCronLast, "state"), "complete");
  EXPECT_EQ(fact_of(said, Code::kCronLastSuccess, "success_at"), "2026-11-26T11:30:40Z");
  EXPECT_EQ(fact_of(said, Code::kCronHistory, "complete"), "2");
  EXPECT_EQ(fact_of(said, Code::kCronHistory, "complete_max"), "3");
  EXPECT_EQ(fact_of(said, Code::kCronHistory, "failed"), "1");
  EXPECT_EQ(fact_of(said, Code::kCronHistory, "leaving"), "-");
  ASSERT_EQ(rows_of(said, "jobs").size(), 3U);
  EXPECT_EQ(rows_of(said, "jobs")[0], jobs[2]->metadata.name + ": complete");
  EXPECT_EQ(cell_of(said, "jobs", 1, "why"), "BackoffLimitExceeded");
  cron.successful_jobs_history_limit = 1;
  EXPECT_EQ(fact_of(explain(), Code::kCronHistory, "leaving"), "1");
}

TEST_F(CronOutlooks, HasNotRunYet) {
  cron.status.last_schedule_time.reset();
  cron.metadata.creation_timestamp = kNow;
  EXPECT_TRUE(says(explain(), Code::kCronNeverRan));
}

TEST_F(CronOutlooks, WithoutItsJobsWhatRunsIsTakenFromItsStatus) {
  cron.schedule = "15 * * * *";
  cron.concurrency_policy = "Forbid";
  cron.status.active = {{.name = "nightly-1", .uid = "u"}};
  const Outlook said = explain_cron_job({cron, std::nullopt}, kNow);
  EXPECT_EQ(first_code(said), Code::kCronForbidden);
  EXPECT_EQ(fact_of(said, Code::kNotRead, "what"), "jobs");
}

TEST_F(CronOutlooks, NamesTheLatestOfManyJobs) {
  for (int i = 0; i < 300; ++i) add_job(kNow - hours(400 - i), "Complete");
  const Outlook said = explain();
  EXPECT_EQ(find_part(said, "jobs")->total, 300);
  ASSERT_EQ(rows_of(said, "jobs").size(), kRowsMax);
  EXPECT_EQ(rows_of(said, "jobs")[0], jobs.back()->metadata.name + ": complete");
}

}  // namespace
}  // namespace spillway::outlook
