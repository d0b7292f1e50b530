// vectors/admission/pod_additions: pods arriving in batches at an agent whose workers act at once.
#include "api/codec/codec.h"
#include "policy/admission/arrival.h"
#include "policy/admission/chain.h"
#include "policy/admission/reading.h"
#include "support/vectors.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

namespace spillway::admission {
namespace {

using api::Json;
using support::compare;
using support::Mismatch;

class Additions {
 public:
  explicit Additions(const Json& in)
      : node_(std::make_shared<const api::Node>(api::decode<api::Node>(*in.find("node")).value())),
        conditions_(strings_at(in, "node_conditions")),
        app_armor_error_(in.string_at({"apparmor_host_error"})),
        shutting_down_(flag_at(in, {"shutting_down"})) {
    std::vector<std::string> patterns = safe_sysctls(in.string_at({"kernel"}));
    for (std::string& allowed : strings_at(in, "allowed_unsafe_sysctls")) patterns.push_back(std::move(allowed));
    sysctls_ = SysctlAllowlist::parse(patterns).value();
    for (const std::string& uid : strings_at(in, "termination_requested")) {
      workers_[uid].termination_requested = true;
    }
    for (const std::string& uid : strings_at(in, "known_terminated")) workers_[uid].terminated = true;
  }

  void add_batch(const Json& batch) {
    std::vector<std::shared_ptr<const api::Pod>> arrivals;
    for (const Json& each : *batch.if_array()) {
      arrivals.push_back(std::make_shared<const api::Pod>(api::decode<api::Pod>(each).value()));
    }
    sort_arrivals(arrivals);
    for (const auto& pod : arrivals) add(*pod);
    std::set<std::string> active;
    for (const api::Pod* pod : active_pods()) active.insert(pod->metadata.uid);
    Json uids = Json::array();
    for (const std::string& uid : active) uids.if_array()->emplace_back(uid);
    active_after_.if_array()->push_back(std::move(uids));
  }

  Json outcome() const {
    return Json::object({{"worker_updates", updates_},
                         {"events", events_},
                         {"statuses", statuses_json()},
                         {"killed", killed_},
                         {"active_after_batch", active_after_}});
  }

 private:
  void add(const api::Pod& pod) {
    const std::string& uid = pod.metadata.uid;
    known_[{pod.key(), uid}] = pod;
    switch (arrival_of(pod, workers_[uid])) {
      case Arrival::kMirror:
        hand_over_mirror(pod);
        return;
      case Arrival::kNotStarted:
        create(pod);
        return;
      case Arrival::kAsked:
        break;
    }
    const std::vector<const api::Pod*> active = active_pods();
    const std::vector<std::string_view> conditions(conditions_.begin(), conditions_.end());
    const NodeSituation situation{.node = node_,
                                  .operating_system = "linux",
                                  .conditions = conditions,
                                  .sysctls = sysctls_,
                                  .app_armor_error = app_armor_error_,
                                  .shutting_down = shutting_down_,
                                  .features = {},
                                  .allocate = {},
                                  .devices_in_use = {}};
    const Answer answer = admit_pod(situation, pod, active);
    for (const Victim& victim : answer.victims) {
      events_.if_array()->push_back(preempting_event("uid", victim.uid));
      killed_.if_array()->emplace_back(victim.uid);
      mark_ended(statuses_.try_emplace(victim.uid, known_.at({victim.pod, victim.uid}).status).first->second,
                 preempted());
      workers_[victim.uid] = {.termination_requested = true, .terminated = true};
    }
    if (!answer.refusal) {
      create(pod);
      return;
    }
    events_.if_array()->push_back(Json::object(
        {{"uid", uid}, {"type", "Warning"}, {"reason", answer.refusal->reason}, {"message", answer.refusal->message}}));
    statuses_[uid] = refused_status(pod, *answer.refusal);
  }

  bool is_counterpart(const api::Pod& mirror, const api::Pod& pod) const {
    return pod.key() == mirror.key() && api::is_static(pod) && !api::is_mirror(pod);
  }

  void hand_over_mirror(const api::Pod& mirror) {
    for (const auto& [key, pod] : known_) {
      if (!is_counterpart(mirror, pod)) continue;
      updates_.if_array()->push_back(
          Json::object({{"type", "update"}, {"uid", pod.metadata.uid}, {"mirror_uid", mirror.metadata.uid}}));
    }
  }

  void create(const api::Pod& pod) {
    Json update = Json::object({{"type", "create"}, {"uid", pod.metadata.uid}});
    for (const auto& [key, other] : known_) {
      if (api::is_mirror(other) && is_counterpart(other, pod)) update["mirror_uid"] = other.metadata.uid;
    }
    updates_.if_array()->push_back(std::move(update));
  }

  /// Known pods that count, without mirror pods; by namespace/name.
  std::vector<const api::Pod*> active_pods() {
    std::vector<const api::Pod*> active;
    for (const auto& [key, pod] : known_) {
      if (api::is_mirror(pod)) continue;
      const auto recorded = statuses_.find(pod.metadata.uid);
      const std::optional<std::string_view> phase =
          recorded == statuses_.end() ? std::nullopt : std::optional<std::string_view>(recorded->second.phase);
      if (is_active(pod, phase, workers_[pod.metadata.uid])) active.push_back(&pod);
    }
    return active;
  }

  Json statuses_json() const {
    Json all = Json::object();
    for (const auto& [uid, status] : statuses_) all[uid] = api::encode(status);
    return all;
  }

  std::shared_ptr<const api::Node> node_;
  std::vector<std::string> conditions_;
  std::string app_armor_error_;
  bool shutting_down_;
  SysctlAllowlist sysctls_;
  std::map<std::string, WorkerState> workers_;
  std::map<std::pair<api::PodKey, std::string>, api::Pod> known_;
  std::map<std::string, api::PodStatus> statuses_;
  Json updates_ = Json::array();
  Json events_ = Json::array();
  Json killed_ = Json::array();
  Json active_after_ = Json::array();
};

std::optional<Mismatch> check_pod_additions(const Json& row) {
  const Json& in = *row.find("in");
  Additions additions(in);
  for (const Json& batch : *in.find("batches")->if_array()) additions.add_batch(batch);
  return compare(*row.find("want"), additions.outcome());
}

const bool kPodAdditions = support::add_vector_check("admission/pod_additions", check_pod_additions);

}  // namespace
}  // namespace spillway::admission
