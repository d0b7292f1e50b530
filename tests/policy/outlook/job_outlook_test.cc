// The outlook of a Job: the first thing that holds it back, and its further course.
#include "policy/outlook/job_outlook.h"

#include "policy/outlook/outlook_facts.h"
#include "policy/workloads/job_pods.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway::outlook {
namespace {

using policy::Verdict;
using workloads::PodPtr;

const WallTime kNow = at("2026-11-26T12:00:00Z");

class JobOutlooks : public ::testing::Test {
 protected:
  JobOutlooks() {
    job.metadata.ns = "shop";
    job.metadata.name = "import";
    job.metadata.uid = "job-uid";
    job.completions = 5;
    job.parallelism = 2;
    job.backoff_limit = 6;
    job.completion_mode = "NonIndexed";
    job.selector = api::parse_label_selector("job-name=import").value();
    job.status.start_time = kNow - minutes(10);
  }

  std::shared_ptr<api::Pod> add_pod(std::string_view phase) {
    auto pod = std::make_shared<api::Pod>();
    pod->metadata.ns = "shop";
    pod->metadata.name = "import-" + std::to_string(pods.size());
    pod->metadata.uid = pod->metadata.name + "-uid";
    pod->metadata.labels = {{"job-name", "import"}};
    pod->metadata.finalizers = {std::string(workloads::kJobTracking)};
    pod->metadata.creation_timestamp = kNow - minutes(5);
    pod->status.phase = phase;
    pods.push_back(pod);
    return pod;
  }

  /// Adds a pod that ended so long ago with this code.
  void add_failed(Duration ago, std::int32_t exit_code = 3) {
    const auto pod = add_pod("Failed");
    api::ContainerStatus container;
    container.name = "main";
    container.state.terminated.emplace();
    container.state.terminated->exit_code = exit_code;
    container.state.terminated->reason = "Error";
    container.state.terminated->finished_at = std::chrono::time_point_cast<WallTime::duration>(kNow - ago);
    pod->status.container_statuses = {container};
  }

  void finish(std::string_view type, std::string reason, std::string message) {
    job.status.conditions.push_back(
        {std::string(type), "True", kNow - seconds(60), kNow - seconds(60), std::move(reason), std::move(message)});
  }

  Outlook explain() const { return explain_job({job, std::vector<PodPtr>(pods.begin(), pods.end()), refused}, kNow); }

  api::Job job;
  std::vector<std::shared_ptr<api::Pod>> pods;
  std::optional<RefusedPods> refused;
};

TEST_F(JobOutlooks, CountsWhatIsDone) {
  job.status.succeeded = 2;
  job.status.failed = 1;
  add_pod("Running");
  add_pod("Pending");
  const Outlook said = explain();
  EXPECT_EQ(first_code(said), Code::kJobRuns);
  EXPECT_EQ(said.verdict, Verdict::kActs);
  EXPECT_EQ(fact_of(said, Code::kJobProgress, "succeeded"), "2");
  EXPECT_EQ(fact_of(said, Code::kJobProgress, "completions"), "5");
  EXPECT_EQ(fact_of(said, Code::kJobProgress, "running"), "1");
  EXPECT_EQ(fact_of(said, Code::kJobProgress, "pending"), "1");
  EXPECT_EQ(fact_of(said, Code::kJobProgress, "failed"), "1");
}

struct HoldCase {
  std::string_view name;
  std::function<void(api::Job&)> change;
  Code first;
  Verdict verdict;
};

TEST_F(JobOutlooks, NamesWhatHoldsItBack) {
  const std::vector<HoldCase> cases{
      {"suspended", [](api::Job& job) { job.suspend = true; }, Code::kJobSuspended, Verdict::kWaits},
      {"unseen", [](api::Job& job) { job.status.start_time.reset(); }, Code::kJobUnseen, Verdict::kWaits},
      {"no parallelism", [](api::Job& job) { job.parallelism = 0; }, Code::kJobNoParallelism, Verdict::kWaits},
      {"another controller", [](api::Job& job) { job.managed_by = "example.com/queue"; }, Code::kJobManagedElsewhere,
       Verdict::kRests},
      {"deleted", [](api::Job& job) { job.metadata.deletion_timestamp = kNow; }, Code::kBeingDeleted, Verdict::kWaits},
      {"too many failures", [](api::Job& job) { job.status.failed = 7; }, Code::kJobEnding, Verdict::kActs},
      {"too long", [](api::Job& job) { job.active_deadline_seconds = 60; }, Code::kJobEnding, Verdict::kActs},
      {"nothing yet", [](api::Job&) {}, Code::kJobMakesPods, Verdict::kActs},
  };
  const api::Job plain = job;
  for (const HoldCase& each : cases) {
    job = plain;
    each.change(job);
    const Outlook said = explain();
    EXPECT_EQ(to_string(first_code(said)), to_string(each.first)) << each.name;
    EXPECT_EQ(said.verdict, each.verdict) << each.name;
  }
}

TEST_F(JobOutlooks, BacksOffUntilAnInstantAfterSoManyFailures) {
  job.status.failed = 1;
  add_failed(seconds(100));
  pods.back()->metadata.finalizers.clear();  // counted before
  add_failed(seconds(5));
  const Outlook said = explain();
  EXPECT_EQ(first_code(said), Code::kJobBackOff);
  EXPECT_EQ(fact_of(said, Code::kJobBackOff, "failures_in_a_row"), "2");
  EXPECT_EQ(fact_of(said, Code::kJobBackOff, "due_seconds"), "15");  // 20 s after the second
  EXPECT_EQ(fact_of(said, Code::kJobBackOff, "due_at"), "2026-11-26T12:00:15Z");
  EXPECT_EQ(fact_of(said, Code::kJobProgress, "failed"), "2");  // the second is not in the status yet
  EXPECT_EQ(fact_of(said, Code::kJobProgress, "backoff_limit"), "6");
  EXPECT_EQ(cell_of(said, "pods", 0, "why"), "main exited with 3 (Error)");
}

TEST_F(JobOutlooks, FailuresThatWaitToBeCountedAreCountedOnce) {
  add_failed(seconds(5));
  job.status.uncounted.emplace();
  job.status.uncounted->failed = {pods.back()->metadata.uid};
  const Outlook said = explain();
  EXPECT_EQ(fact_of(said, Code::kJobBackOff, "failures_in_a_row"), "1");
  EXPECT_EQ(fact_of(said, Code::kJobBackOff, "due_seconds"), "5");
}

TEST_F(JobOutlooks, PodsThatWaitHaveTheWordsOfTheirScheduler) {
  const auto pod = add_pod("Pending");
  pod->status.conditions = {{.type = "PodScheduled",
                             .status = "False",
                             .reason = "Unschedulable",
                             .message = "0/1 nodes are available: 1 Insufficient cpu."}};
  add_pod("Pending");
  const Outlook said = explain();
  EXPECT_EQ(first_code(said), Code::kJobPodsPending);
  EXPECT_EQ(said.verdict, Verdict::kWaits);
  EXPECT_EQ(fact_of(said, Code::kJobPodsPending, "pods"), "2");
  EXPECT_EQ(fact_of(said, Code::kJobPodsPending, "why"), "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.");
}

TEST_F(JobOutlooks, ARefusalCountsUntilAPodIsMade) {
  refused = RefusedPods{"Error creating: pods \"import-x\" is forbidden: exceeded quota: team", kNow - seconds(20)};
  EXPECT_EQ(first_code(explain()), Code::kJobPodsRefused);
  EXPECT_EQ(fact_of(explain(), Code::kJobPodsRefused, "message"), refused->message);
  const auto later = add_pod("Running");
  later->metadata.creation_timestamp = kNow - seconds(10);
  EXPECT_FALSE(says(explain(), Code::kJobPodsRefused));
  later->metadata.creation_timestamp = kNow - seconds(30);
  EXPECT_TRUE(says(explain(), Code::kJobPodsRefused));
  EXPECT_TRUE(says(explain(), Code::kJobRuns));
}

TEST_F(JobOutlooks, SaysWhichFailuresARuleHasMatched) {
  job.pod_failure_policy.emplace();
  job.pod_failure_policy->rules = {{"Ignore", api::ExitCodesPattern{std::nullopt, "In", {42}}, {}},
                                   {"FailJob", api::ExitCodesPattern{std::nullopt, "In", {1}}, {}}};
  add_failed(seconds(200), 42);
  add_failed(seconds(100), 42);
  const Outlook ignored = explain();
  EXPECT_EQ(fact_of(ignored, Code::kJobFailureRule, "action"), "Ignore");
  EXPECT_EQ(fact_of(ignored, Code::kJobFailureRule, "pods"), "2");
  EXPECT_EQ(cell_of(ignored, "pods", 0, "rule"), "Ignore");
  add_failed(seconds(1), 1);
  const Outlook over = explain();
  EXPECT_EQ(first_code(over), Code::kJobEnding);
  EXPECT_EQ(fact_of(over, Code::kJobEnding, "reason"), "PodFailurePolicy");
}

TEST_F(JobOutlooks, SaysWhenItsTimeIsOver) {
  job.active_deadline_seconds = 15 * 60;
  add_pod("Running");
  EXPECT_EQ(fact_of(explain(), Code::kJobDeadline, "due_seconds"), "300");
  EXPECT_EQ(fact_of(explain(), Code::kJobDeadline, "due_at"), "2026-11-26T12:05:00Z");
  job.suspend = true;
  EXPECT_FALSE(says(explain(), Code::kJobDeadline));
}

TEST_F(JobOutlooks, AnEndSaysWhenItGoes) {
  finish("Complete", "CompletionsReached", "");
  job.status.succeeded = 5;
  job.status.completion_time = *job.status.start_time + seconds(90);
  Outlook said = explain();
  EXPECT_EQ(first_code(said), Code::kJobComplete);
  EXPECT_EQ(fact_of(said, Code::kJobComplete, "took_seconds"), "90");
  EXPECT_TRUE(says(said, Code::kJobStays));
  job.ttl_seconds_after_finished = 100;
  said = explain();
  EXPECT_EQ(fact_of(said, Code::kJobLeavesAt, "due_seconds"), "40");
  EXPECT_FALSE(says(said, Code::kJobStays));
  job.ttl_seconds_after_finished.reset();
  job.metadata.owner_references = {{.api_version = "batch/v1",
                                    .kind = "CronJob",
                                    .name = "nightly",
                                    .uid = "c",
                                    .controller = true,
                                    .block_owner_deletion = true}};
  EXPECT_EQ(fact_of(explain(), Code::kJobKeptByHistory, "cron_job"), "nightly");
}

TEST_F(JobOutlooks, AFailureSaysWhy) {
  finish("Failed", "DeadlineExceeded", "Job was active longer than specified deadline");
  const Outlook said = explain();
  EXPECT_EQ(first_code(said), Code::kJobFailed);
  EXPECT_EQ(said.verdict, Verdict::kRefuses);
  EXPECT_EQ(fact_of(said, Code::kJobFailed, "reason"), "DeadlineExceeded");
}

TEST_F(JobOutlooks, WithoutPodsItsStatusSpeaks) {
  job.status.active = 2;
  const Outlook said = explain_job({job, std::nullopt, {}}, kNow);
  EXPECT_EQ(first_code(said), Code::kJobRuns);
  EXPECT_EQ(fact_of(said, Code::kNotRead, "what"), "pods");
  EXPECT_EQ(find_part(said, "pods"), nullptr);
}

TEST_F(JobOutlooks, NamesAFewOfManyTroublesFirst) {
  job.parallelism = 5000;
  job.completions = 5000;
  for (int i = 0; i < 4990; ++i) add_pod("Running");
  for (int i = 0; i < 3; ++i) add_pod("Pending");
  add_failed(seconds(1));
  const Outlook said = explain();
  const Part* part = find_part(said, "pods");
  ASSERT_NE(part, nullptr);
  EXPECT_EQ(part->total, 4994);
  ASSERT_EQ(part->rows.size(), kRowsMax);
  EXPECT_EQ(part->rows[0].state, "pending");
  EXPECT_EQ(part->rows[3].state, "failed");
  EXPECT_EQ(part->rows[4].state, "running");
}

}  // namespace
}  // namespace spillway::outlook
