// vectors/node-agent: pod_status_merge.
#include "agent/pod_state/pod_status_merge.h"
#include "api/codec/codec.h"
#include "api/text/time_text.h"
#include "support/vectors.h"

namespace spillway::agent {
namespace {

using api::Json;
using support::Mismatch;

constexpr std::string_view kNow = "2031-01-01T00:00:00Z";

api::PodStatus status_of(const Json& document) {
  return api::decode<api::Pod>(Json::object({{"apiVersion", "v1"}, {"kind", "Pod"}, {"status", document}}))
      .value()
      .status;
}

Json document_of(const api::PodStatus& status) {
  Json document = api::encode(status);
  Json* conditions = document.find("conditions");
  if (conditions == nullptr) return document;
  for (Json& each : *conditions->if_array()) {
    if (each.find("lastProbeTime") == nullptr) each["lastProbeTime"] = nullptr;
    if (each.string_at({"lastTransitionTime"}) == kNow) each["lastTransitionTime"] = "NOW";
  }
  return document;
}

std::optional<Mismatch> pod_status_merge(const Json& row) {
  const RunningContainers running = row.find("couldHaveRunningContainers")->if_bool().value()
                                        ? RunningContainers::kPossible
                                        : RunningContainers::kNone;
  const api::PodStatus merged = merge_status(status_of(*row.find("apiStatus")), status_of(*row.find("agentStatus")),
                                             running, api::parse_time(kNow).value());
  return support::compare(*row.find("merged"), document_of(merged));
}

const bool kMerge = support::add_vector_check("node-agent/pod_status_merge", pod_status_merge);

}  // namespace
}  // namespace spillway::agent
