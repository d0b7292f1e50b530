// vectors/workloads: job_status, pod_failure_policy.
#include "api/codec/codec.h"
#include "api/object/job.h"
#include "api/text/time_text.h"
#include "policy/workloads/job_failure_policy.h"
#include "policy/workloads/job_indexes.h"
#include "policy/workloads/job_plan.h"
#include "support/vectors.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace spillway::workloads {
namespace {

using api::Json;
using support::Mismatch;

/// Lists and objects of nothing are left out of the rows now and then; a set of uncounted pods is not.
Json without_empty_members(const Json& value) {
  if (const Json::Array* list = value.if_array()) {
    Json::Array out;
    for (const Json& each : *list) out.push_back(without_empty_members(each));
    return out;
  }
  if (value.if_object() == nullptr) return value;
  Json out = Json::object();
  for (const auto& [key, member] : *value.if_object()) {
    const bool empty = member.is_null() || (member.is_array() && member.if_array()->empty());
    if (!empty) out[key] = without_empty_members(member);
  }
  return out;
}

std::optional<Mismatch> compare_rows(const Json& want, const Json& got) {
  return support::compare(without_empty_members(want), without_empty_members(got));
}

Json names_of_pods(const std::set<std::string>& names) {
  Json out = Json::array();
  for (const std::string& name : names) out.if_array()->push_back(name);
  return out;
}

Json status_row(api::JobStatus status) {
  if (status.uncounted) {
    std::ranges::sort(status.uncounted->succeeded);
    std::ranges::sort(status.uncounted->failed);
  }
  api::Job job;
  job.status = std::move(status);
  return *api::encode(job).find("status");
}

Json created_row(const api::Job& job, const JobPod& pod) {
  const Json document = job_pod_document(job, pod);
  Json row = Json::object();
  for (const std::string_view member : {"annotations", "finalizers", "generateName", "labels"}) {
    row[member] = *document.at({"metadata", member});
  }
  if (row.find("annotations")->if_object()->empty()) row["annotations"] = Json();
  if (!pod.index) row["generateName"] = Json("");  // upstream names these when they are sent
  const Json* hostname = document.at({"spec", "hostname"});
  row["hostname"] = hostname != nullptr ? *hostname : Json("");
  const Json* env = document.at({"spec", "containers"})->if_array()->front().find("env");
  row["env"] = env != nullptr ? *env : Json();
  return row;
}

Json created_rows(const api::Job& job, const std::vector<JobPod>& pods) {
  Json::Array rows;
  for (const JobPod& pod : pods) {
    rows.push_back(created_row(job, pod));
    if (!is_indexed(job)) break;  // without indexes, all pods are alike
  }
  std::ranges::sort(rows, {}, [](const Json& row) { return api::to_text(row); });
  return rows;
}

Json event_rows(const JobPlan& plan) {
  Json rows = Json::array();
  for (const auto* list : {&plan.events, &plan.final_events}) {
    for (const JobEvent& event : *list) {
      rows.if_array()->push_back(
          Json::object({{"type", event.type}, {"reason", event.reason}, {"message", event.message}}));
    }
  }
  return rows;
}

Json plan_row(const api::Job& job, const JobPlan& plan) {
  std::set<std::string> deleted;
  std::set<std::string> released;
  for (const PodPtr& pod : plan.removed) deleted.insert(pod->metadata.name);
  for (const PodPtr& pod : plan.dropped) {
    deleted.insert(pod->metadata.name);
    if (is_tracked(*pod)) released.insert(pod->metadata.name);
  }
  for (const PodPtr& pod : plan.released) released.insert(pod->metadata.name);
  Json writes = Json::array();
  for (const auto* status : {&plan.counted, &plan.final_status}) {
    if (*status) writes.if_array()->push_back(status_row(**status));
  }
  Json again = Json::array();
  for (const Duration& each : plan.requeue_after) {
    again.if_array()->push_back(std::int64_t{std::chrono::duration_cast<milliseconds>(each).count()});
  }
  Json row = Json::object({{"delete", names_of_pods(deleted)},
                           {"finalizer_removed", names_of_pods(released)},
                           {"create", created_rows(job, plan.created)},
                           {"status_writes", std::move(writes)},
                           {"events", event_rows(plan)},
                           {"sync_again_ms", std::move(again)}});
  if (!plan.created.empty()) row["create_count"] = static_cast<std::int64_t>(plan.created.size());
  return row;
}

Json sync_row(const Json& in) {
  const api::Job job = api::decode<api::Job>(*in.find("job")).value();
  JobView view{job, {}, {}, {}, JobCache::kCurrent};
  if (const Json* pods = in.find("pods"); pods != nullptr && pods->is_array()) {
    for (const Json& pod : *pods->if_array()) {
      view.pods.push_back(std::make_shared<const api::Pod>(api::decode<api::Pod>(pod).value()));
    }
  }
  JobPlan plan;
  if (!is_finished(job) && !is_managed_elsewhere(job)) {
    plan = plan_job(view, api::parse_time(in.string_at({"now"})).value());
  }
  return plan_row(job, plan);
}

std::optional<Mismatch> check_job(const Json& row) {
  const Json& in = *row.find("in");
  const Json& want = *row.find("want");
  if (row.string_at({"op"}) == "sync") return compare_rows(want, sync_row(in));
  const auto completions = static_cast<std::int32_t>(in.find("completions")->if_int64().value());
  const JobIndexes indexes = JobIndexes::parse(in.string_at({"text"}), completions);
  return compare_rows(want, Json::object({{"canonical", indexes.text()}, {"total", indexes.total()}}));
}

std::optional<Mismatch> check_failure_policy(const Json& row) {
  const Json& in = *row.find("in");
  Json document = Json::object({{"spec", Json::object({{"podFailurePolicy", *in.find("policy")}})}});
  const api::Job job = api::decode<api::Job>(document).value();
  const PodFailureMatch match =
      match_pod_failure(job.pod_failure_policy, api::decode<api::Pod>(*in.find("pod")).value());
  Json got = Json::object({{"counts", match.counts}});
  if (match.action) got["action"] = *match.action;
  if (match.job_fails) got["message"] = *match.job_fails;
  return compare_rows(*row.find("want"), got);
}

const bool kJobRows = support::add_vector_check("workloads/job_status", check_job);
const bool kFailurePolicyRows = support::add_vector_check("workloads/pod_failure_policy", check_failure_policy);

}  // namespace
}  // namespace spillway::workloads
