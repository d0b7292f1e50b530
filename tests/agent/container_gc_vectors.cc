// vectors/node-agent: container_gc.
#include "agent/garbage/container_gc.h"
#include "support/vectors.h"

#include <algorithm>
#include <map>
#include <set>

namespace spillway::agent {
namespace {

using api::Json;
using support::Mismatch;

constexpr Instant kNow = Instant(hours(1'000'000));

std::int64_t integer_at(const Json& in, std::string_view key) {
  return in.find(key)->if_int64().value();
}

bool flag_at(const Json& in, std::string_view key) {
  return in.find(key)->if_bool().value();
}

RuntimeState state_of(std::string_view text) {
  if (text == "CONTAINER_CREATED") return RuntimeState::kCreated;
  if (text == "CONTAINER_RUNNING") return RuntimeState::kRunning;
  return text == "CONTAINER_EXITED" ? RuntimeState::kExited : RuntimeState::kUnknown;
}

Json sorted(std::vector<std::string> names) {
  std::ranges::sort(names);
  Json out = Json::array();
  for (std::string& each : names) out.if_array()->push_back(Json(std::move(each)));
  return out;
}

/// A fake runtime that carries out the plan, or refuses where the row says so.
class Pass {
 public:
  explicit Pass(const Json& in) {
    for (const Json& each : *in.find("containers")->if_array()) {
      const std::string id(each.string_at({"id"}));
      containers_.push_back({.id = id,
                             .pod_uid = std::string(each.string_at({"podUID"})),
                             .name = std::string(each.string_at({"name"})),
                             .sandbox = std::string(each.string_at({"sandbox"})),
                             .state = state_of(each.string_at({"state"})),
                             .created = kNow - seconds(integer_at(each, "createdAgeSeconds"))});
      if (flag_at(each, "removeFails")) kept_.insert(id);
      if (flag_at(each, "stopFails")) stubborn_.insert(id);
    }
    for (const Json& each : *in.find("sandboxes")->if_array()) {
      const std::string id(each.string_at({"id"}));
      sandboxes_.push_back({.id = id,
                            .pod_uid = std::string(each.string_at({"podUID"})),
                            .ready = flag_at(each, "ready"),
                            .created = kNow - seconds(integer_at(each, "createdAgeSeconds"))});
      if (flag_at(each, "stopFails")) stubborn_.insert(id);
    }
    for (const Json& each : *in.find("pods")->if_array()) {
      remains_[std::string(each.string_at({"uid"}))] = flag_at(each, "contentShouldBeRemoved")   ? PodRemains::kContent
                                                       : flag_at(each, "runtimeShouldBeRemoved") ? PodRemains::kRuntime
                                                                                                 : PodRemains::kKept;
    }
    for (const Json& each : *in.find("logDirs")->if_array()) logs_.push_back(*each.if_string());
    const Json& policy = *in.find("policy");
    policy_ = {.min_age = seconds(integer_at(policy, "minAgeSeconds")),
               .max_per_pod_container = integer_at(policy, "maxPerPodContainer"),
               .max_containers = integer_at(policy, "maxContainers")};
    scope_ = {.remains = [this](std::string_view uid) { return remains_.at(std::string(uid)); },
              .sources_ready = flag_at(in, "allSourcesReady"),
              .ended_pods = flag_at(in, "evictNonDeletedPods")};
  }

  Json run() {
    std::vector<std::string> removed;
    std::vector<std::string> stopped;
    Json order = Json::object();
    for (const ContainerRemoval& each : plan_container_gc(policy_, scope_, containers_, kNow)) {
      if (each.stop_first) stopped.push_back(each.id + " 2");
      if (each.stop_first && stubborn_.contains(each.id)) continue;
      removed.push_back(each.id);
      const auto at = std::ranges::find(containers_, each.id, &ContainerOnNode::id);
      Json& unit = order[at->pod_uid + "/" + at->name];
      if (unit.if_array() == nullptr) unit = Json::array();
      unit.if_array()->push_back(Json(each.id));
      if (!kept_.contains(each.id)) containers_.erase(at);
    }
    std::vector<std::string> sandboxes;
    for (const std::string& id : plan_sandbox_gc(scope_, sandboxes_, containers_)) {
      if (!stubborn_.contains(id)) sandboxes.push_back(id);
    }
    return Json::object({{"removeContainerCalls", sorted(removed)},
                         {"removeOrderPerUnit", std::move(order)},
                         {"stopContainerCalls", sorted(stopped)},
                         {"removedSandboxes", sorted(sandboxes)},
                         {"removedLogDirs", sorted(plan_log_gc(scope_, logs_))},
                         {"error", Json()}});
  }

 private:
  ContainerGcPolicy policy_;
  ContainerGcScope scope_;
  std::vector<ContainerOnNode> containers_;
  std::vector<SandboxOnNode> sandboxes_;
  std::map<std::string, PodRemains> remains_;
  std::vector<std::string> logs_;
  std::set<std::string> kept_;
  std::set<std::string> stubborn_;
};

std::optional<Mismatch> container_gc(const Json& row) {
  Json want = row;
  for (const std::string_view key : {"id", "input"}) want.if_object()->erase(key);
  return support::compare(want, Pass(*row.find("input")).run());
}

const bool kContainerGc = support::add_vector_check("node-agent/container_gc", container_gc);

}  // namespace
}  // namespace spillway::agent
