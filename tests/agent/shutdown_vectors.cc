// vectors/node-agent: shutdown_groups.
#include "agent/node/shutdown_plan.h"
#include "support/vectors.h"

namespace spillway::agent {
namespace {

using api::Json;
using support::Mismatch;

std::int64_t integer_at(const Json& in, std::string_view key) {
  const Json* value = in.find(key);
  return value == nullptr ? 0 : value->if_int64().value_or(0);
}

std::optional<Mismatch> shutdown_groups_row(const Json& row) {
  const Json& in = *row.find("input");
  ShutdownSettings settings{.grace_seconds = integer_at(in, "shutdownGracePeriodSeconds"),
                            .critical_grace_seconds = integer_at(in, "shutdownGracePeriodCriticalPodsSeconds"),
                            .by_priority = {}};
  for (const Json& each : *in.find("shutdownGracePeriodByPodPriority")->if_array()) {
    settings.by_priority.push_back(
        {static_cast<std::int32_t>(integer_at(each, "priority")), integer_at(each, "shutdownGracePeriodSeconds")});
  }
  std::vector<ShutdownPod> pods;
  for (const Json& each : *in.find("pods")->if_array()) {
    pods.push_back({.name = std::string(each.string_at({"name"})),
                    .priority = static_cast<std::int32_t>(integer_at(each, "priority")),
                    .spec_grace_seconds = each.find("terminationGracePeriodSeconds")->if_int64()});
  }
  const std::vector<PriorityGrace> groups = shutdown_groups(settings);
  Json steps = Json::array();
  for (const ShutdownStep& step : plan_shutdown(groups, pods)) {
    Json list = Json::array();
    for (const ShutdownPodGrace& pod : step.pods) {
      list.if_array()->push_back(Json::object({{"name", pod.name}, {"gracePeriodOverride", pod.grace_seconds}}));
    }
    steps.if_array()->push_back(Json::object({{"priority", std::int64_t{step.group.priority}},
                                              {"shutdownGracePeriodSeconds", step.group.grace_seconds},
                                              {"skipped", step.pods.empty()},
                                              {"pods", std::move(list)}}));
  }
  Json want = row;
  want.if_object()->erase("id");
  want.if_object()->erase("input");
  return support::compare(want, Json::object({{"enabled", !groups.empty()},
                                              {"inhibitDelayRequestedSeconds", shutdown_delay_seconds(groups)},
                                              {"groups", std::move(steps)}}));
}

const bool kShutdown = support::add_vector_check("node-agent/shutdown_groups", shutdown_groups_row);

}  // namespace
}  // namespace spillway::agent
