#include "controllers/pod_gc.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace spillway::controllers {

namespace {

constexpr std::string_view kOutOfService = "node.kubernetes.io/out-of-service";

std::string pod_path(const api::Pod& pod, std::string_view subresource = {}) {
  return client::object_path("v1", "pods", pod.metadata.ns, pod.metadata.name, subresource);
}

bool is_out_of_service(const api::Node& node) {
  const api::NodeCondition* ready = api::find_condition(node.status.conditions, "Ready");
  if (ready != nullptr && ready->status == "True") return false;
  return std::any_of(node.spec.taints.begin(), node.spec.taints.end(),
                     [](const api::Taint& taint) { return taint.key == kOutOfService; });
}

}  // namespace

void PodGc::pass(Now now) {
  collect_terminated();
  collect_orphans(now);
  collect_unscheduled();
  collect_out_of_service();
  shared_.client.at(now.mono + options_.period, [this](Now then) { pass(then); });
}

void PodGc::collect_orphans(Now now) {
  std::set<std::string> missing;
  for (const auto& [key, pod] : shared_.pods.cache().all()) {
    const std::string& node = pod->spec.node_name;
    if (!node.empty() && !shared_.nodes.cache().find(node)) missing.insert(node);
  }
  std::erase_if(quarantined_, [&missing](const auto& entry) { return !missing.contains(entry.first); });
  for (const std::string& node : missing) {
    const Instant since = quarantined_.emplace(node, now.mono).first->second;
    if (now.mono - since >= options_.quarantine) confirm_gone(node);
  }
}

void PodGc::confirm_gone(const std::string& node) {
  shared_.client.get(client::object_path("v1", "nodes", {}, node), [this, node](const Result<api::Json>& outcome, Now) {
    if (outcome || outcome.error().code != ErrorCode::kNotFound) return;
    std::vector<PodPtr> orphans;
    for (const auto& [key, pod] : shared_.pods.cache().all()) {
      if (pod->spec.node_name == node) orphans.push_back(pod);
    }
    for (const PodPtr& pod : orphans) finish(pod, "PodGC: node no longer exists");
  });
}

void PodGc::collect_out_of_service() {
  for (const auto& [key, pod] : shared_.pods.cache().all()) {
    if (!pod->metadata.deletion_timestamp || pod->spec.node_name.empty()) continue;
    const auto node = shared_.nodes.cache().find(pod->spec.node_name);
    if (node && is_out_of_service(*node)) finish(pod, "PodGC: node is out of service");
  }
}

void PodGc::collect_unscheduled() {
  for (const auto& [key, pod] : shared_.pods.cache().all()) {
    if (pod->metadata.deletion_timestamp && pod->spec.node_name.empty()) force_delete(*pod);
  }
}

void PodGc::collect_terminated() {
  if (options_.terminated_threshold <= 0) return;
  std::vector<std::tuple<bool, WallTime, api::PodKey, PodPtr>> finished;  // evicted first, then oldest
  for (const auto& [key, pod] : shared_.pods.cache().all()) {
    if (!api::is_terminal(*pod)) continue;
    finished.emplace_back(pod->status.reason != "Evicted", pod->metadata.creation_timestamp.value_or(WallTime()),
                          pod->key(), pod);
  }
  const auto surplus = static_cast<std::int64_t>(finished.size()) - options_.terminated_threshold;
  if (surplus <= 0) return;
  std::sort(finished.begin(), finished.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a), std::get<2>(a)) <
           std::tie(std::get<0>(b), std::get<1>(b), std::get<2>(b));
  });
  for (std::int64_t i = 0; i < surplus; ++i) force_delete(*std::get<3>(finished[static_cast<std::size_t>(i)]));
}

void PodGc::finish(const PodPtr& pod, std::string_view message) {
  if (in_progress_.contains(pod->metadata.uid)) return;
  if (api::is_terminal(*pod)) {
    force_delete(*pod);
    return;
  }
  in_progress_.insert(pod->metadata.uid);
  const api::Json patch = api::Json::object(
      {{"metadata", api::Json::object({{"uid", pod->metadata.uid}})},
       {"status", api::Json::object({{"phase", "Failed"},
                                     {"conditions", api::Json::array({api::Json::object({{"type", "DisruptionTarget"},
                                                                                         {"status", "True"},
                                                                                         {"reason", "DeletionByPodGC"},
                                                                                         {"message", message}})})}})}});
  shared_.client.patch(pod_path(*pod, "status"), client::PatchType::kStrategicMerge, patch,
                       [this, pod](const Result<api::Json>& outcome, Now) {
                         in_progress_.erase(pod->metadata.uid);
                         if (outcome) force_delete(*pod);  // else the next pass tries again
                       });
}

void PodGc::force_delete(const api::Pod& pod) {
  if (!in_progress_.insert(pod.metadata.uid).second) return;
  api::Json options = delete_options(pod);
  options["gracePeriodSeconds"] = 0;
  shared_.log.info("collecting pod",
                   {{"pod", pod.key().text()}, {"node", pod.spec.node_name}, {"phase", pod.status.phase}});
  shared_.client.remove(pod_path(pod), options,
                        [this, uid = pod.metadata.uid](const Result<api::Json>&, Now) { in_progress_.erase(uid); });
}

}  // namespace spillway::controllers
