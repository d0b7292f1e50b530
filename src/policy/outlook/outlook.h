// The present and next step of an object, and what it waits for: the value that `spillway explain` prints for Jobs,
// CronJobs, HorizontalPodAutoscalers, Services, other workloads, claims and pods in trouble. As in policy/reason.h a
// remark is an enumerator and the facts behind it, never prose; words for them are in cli/text/outlook_text.cc. Thread:
// any (plain values). Bounds: kRowsMax rows in a part, however many objects there are.
#pragma once

#include "api/json/json.h"
#include "base/time.h"
#include "policy/reason.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::outlook {

/// Rows of a part; the total number is stated besides.
inline constexpr std::size_t kRowsMax = 10;

enum class Code {
  // any kind of object
  kBeingDeleted,
  kControllerSays,
  kNotRead,
  // jobs
  kJobComplete,
  kJobFailed,
  kJobEnding,
  kJobManagedElsewhere,
  kJobSuspended,
  kJobUnseen,
  kJobNoParallelism,
  kJobPodsRefused,
  kJobBackOff,
  kJobPodsPending,
  kJobRuns,
  kJobPodsLeave,
  kJobMakesPods,
  kJobRests,
  kJobProgress,
  kJobIndexes,
  kJobFailureRule,
  kJobDeadline,
  kJobLeavesAt,
  kJobLeavesAfter,
  kJobKeptByHistory,
  kJobStays,
  // cron jobs
  kCronUnknownZone,
  kCronUnreadable,
  kCronSuspended,
  kCronForbidden,
  kCronMissed,
  kCronDue,
  kCronNext,
  kCronNever,
  kCronManyMissed,
  kCronUnsupportedZone,
  kCronLast,
  kCronNeverRan,
  kCronLastSuccess,
  kCronPolicy,
  kCronHistory,
  // autoscalers
  kScaleUnread,
  kScaleZero,
  kScaleSelector,
  kScaleBlind,
  kScaleOutOfRange,
  kScaleChanges,
  kScaleStabilized,
  kScaleLimited,
  kScaleSteady,
  kScaleUnknown,
  kScaleStanding,
  kScaleTolerance,
  kScaleLast,
  kScaleWindow,
  // services
  kServiceExternalName,
  kServiceNoSelector,
  kServiceNoMatch,
  kServiceNoneReady,
  kServiceDraining,
  kServiceReady,
  kServiceNotCarried,
  kServiceHeadless,
  kServiceNotReadyPublished,
  kServiceLeftOut,
  kServicePortMissing,
  kServiceBehind,
  kServiceSlices,
  kServiceNoPorts,
  // pods
  kPodNoImage,
  kPodNoStart,
  kPodOutOfMemory,
  kPodCrashes,
  kPodContainerFailed,
  kPodPortTaken,
  kPodEvicted,
  kPodFailed,
  kPodUnschedulable,
  kPodClaim,
  kPodUnready,
  // ReplicaSets, StatefulSets, DaemonSets
  kWorkloadReady,
  kWorkloadZero,
  kWorkloadNoNode,
  kWorkloadWants,
  kWorkloadWaits,
  kWorkloadOneByOne,
  // claims
  kClaimBound,
  kClaimBinding,
  kClaimLost,
  kClaimWaits,
  kClaimFirstConsumer,
  kClaimNoClass,
  kClaimClassUnknown,
  kClaimNoProvisioner,
  kClaimProvisioning,
  kClaimWarning,
  kClaimSize,
  kClaimUnused,
  // nodes and the cluster, in an overview
  kNodeNoStatus,
  kNodeSilent,
  kNodeNotReady,
  kNodeUnderPressure,
  kNodeNear,
  kClusterHeld,
};

inline constexpr Code kLastCode = Code::kClusterHeld;

/// "job-back-off": stable, for JSON.
std::string_view to_string(Code code);

struct Remark {
  Code code{};
  std::vector<policy::Fact> facts;

  friend bool operator==(const Remark&, const Remark&) = default;
};

/// A row of a table: one pod, one metric.
struct Row {
  std::string name;
  std::string state;  // "pending", "not ready"
  std::vector<policy::Fact> facts;

  friend bool operator==(const Row&, const Row&) = default;
};

/// Objects of one sort, the most informative first. All rows of a part use the same names of facts, though a row may
/// lack some.
struct Part {
  std::string name;  // "pods", "jobs", "metrics", "conditions", "slices", "ports"
  std::vector<Row> rows;
  std::int64_t total = 0;  // the number of all objects

  friend bool operator==(const Part&, const Part&) = default;
};

struct Outlook {
  WallTime at;
  policy::Subject subject;
  policy::Verdict verdict = policy::Verdict::kRests;
  std::vector<Remark> remarks;  // the first is the answer
  std::vector<Part> parts;

  friend bool operator==(const Outlook&, const Outlook&) = default;
};

/// nullptr: the outlook has no such remark.
const Remark* find_remark(const Outlook& outlook, Code code);

/// Shared by the makers of outlooks: the first remark with a verdict determines the verdict of the whole.
class OutlookMaker {
 protected:
  void add(Code code, std::vector<policy::Fact> facts) { out_.remarks.push_back({code, std::move(facts)}); }

  void add(policy::Verdict verdict, Code code, std::vector<policy::Fact> facts) {
    if (out_.remarks.empty()) out_.verdict = verdict;
    add(code, std::move(facts));
  }

  Outlook out_;
};

/// Facts of an instant: "due_at" as people and programs read it, and "due_seconds" from `now`, not below zero.
void add_instant(std::vector<policy::Fact>& facts, std::string_view name, WallTime at, WallTime now);
/// "2026-11-26T22:30:00Z".
policy::Fact time_fact(std::string name, WallTime at);

api::Json to_json(const Outlook& outlook);

}  // namespace spillway::outlook
