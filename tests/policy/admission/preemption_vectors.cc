// vectors/admission/preemption: choice of victims, distance, and what a critical pod's shortages lead to.
#include "api/codec/codec.h"
#include "policy/admission/preemption.h"
#include "policy/admission/reading.h"
#include "support/vectors.h"

#include <cmath>

namespace spillway::admission {
namespace {

using api::Json;
using support::compare;
using support::Mismatch;

std::vector<Requirement> requirements_at(const Json& in) {
  std::vector<Requirement> requirements;
  for (const Json& each : *in.find("requirements")->if_array()) {
    requirements.push_back({std::string(each.string_at({"resource"})), number_at(each, "quantity")});
  }
  return requirements;
}

std::optional<Mismatch> check_choose(const Json& row) {
  const Json& in = *row.find("in");
  const std::vector<api::Pod> pods = pods_at(in);
  const Choice choice = choose_victims(pod_at(in, "preemptor"), pointers_to(pods), requirements_at(in));
  if (!choice.uncovered.empty()) {
    return compare(*row.find("want"), Json::object({{"error", uncovered_text(choice.uncovered)}}));
  }
  Json victims = Json::array();
  for (const std::size_t each : choice.victims) victims.if_array()->emplace_back(pods[each].metadata.name);
  return compare(*row.find("want"), Json::object({{"victims", victims}}));
}

std::optional<Mismatch> check_distance(const Json& row) {
  const Json& in = *row.find("in");
  const api::Pod pod = pod_at(in);
  std::vector<std::int64_t> needed;
  std::vector<std::int64_t> freed;
  for (const Requirement& each : requirements_at(in)) {
    needed.push_back(each.quantity);
    freed.push_back(freed_by(pod, each.resource));
  }
  const double got = distance_to(needed, freed);
  const double want = row.at({"want", "distance"})->if_double().value();
  if (std::abs(got - want) <= 1e-12) return std::nullopt;
  return Mismatch{std::to_string(want), std::to_string(got)};
}

std::vector<Failure> failures_at(const Json& in) {
  std::vector<Failure> failures;
  for (const Json& each : *in.find("reasons")->if_array()) {
    if (each.string_at({"type"}) == "insufficient") {
      failures.emplace_back(policy::Shortage{std::string(each.string_at({"resource"})), number_at(each, "requested"),
                                             number_at(each, "used"), number_at(each, "capacity")});
    } else {
      failures.emplace_back(
          FailedPredicate{std::string(each.string_at({"name"})), std::string(each.string_at({"desc"})), {}});
    }
  }
  return failures;
}

/// A failed kill changes nothing: the pod is admitted nevertheless.
std::optional<Mismatch> check_handle(const Json& row) {
  const Json& in = *row.find("in");
  const std::vector<api::Pod> pods = pods_at(in);
  const Recovery recovery = recover(pod_at(in), failures_at(in), pointers_to(pods));
  Json killed = Json::array();
  Json events = Json::array();
  api::PodStatus status;
  mark_ended(status, preempted());
  for (const Victim& victim : recovery.victims) {
    killed.if_array()->push_back(Json::object({{"pod", victim.pod.name},
                                               {"evicted_flag", true},
                                               {"grace_override", nullptr},
                                               {"status", api::encode(status)}}));
    events.if_array()->push_back(preempting_event("pod", victim.pod.name));
  }
  Json got =
      Json::object({{"killed", killed}, {"events", events}, {"remaining_reasons", failures_json(recovery.remaining)}});
  if (!recovery.error.empty()) got["error"] = recovery.error;
  return compare(*row.find("want"), got);
}

std::optional<Mismatch> check_preemption(const Json& row) {
  const std::string_view op = row.string_at({"op"});
  if (op == "choose") return check_choose(row);
  return op == "distance" ? check_distance(row) : check_handle(row);
}

const bool kPreemption = support::add_vector_check("admission/preemption", check_preemption);

}  // namespace
}  // namespace spillway::admission
