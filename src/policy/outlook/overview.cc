#include "policy/outlook/overview.h"

#include "api/object/kind_id.h"
#include "policy/outlook/pod_outlook.h"
#include "policy/outlook/service_outlook.h"
#include "policy/workloads/job_pods.h"
#include "policy/workloads/pod_complaint.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace spillway::outlook {

namespace {

using policy::Fact;
using policy::Reason;
using policy::ReasonCode;
using workloads::PodPtr;

/// Time in which a new pod may become ready before it is listed as a concern.
constexpr Duration kStartGrace = seconds(30);
/// A pod that the scheduler has tried to place has so long: a node or a volume may be about to come.
constexpr Duration kPlaceGrace = seconds(5);
constexpr std::string_view kNoPlace = "Unschedulable";  // reason of the condition PodScheduled
/// A threshold that will be met within this time needs a look; later forecasts of the last seconds mean nothing.
constexpr double kNearSeconds = 600;

std::optional<double> number_fact(const Reason& reason, std::string_view name) {
  const Fact* fact = policy::find_fact(reason.facts, name);
  if (fact == nullptr) return std::nullopt;
  if (const auto* whole = std::get_if<std::int64_t>(&fact->value)) return static_cast<double>(*whole);
  const auto* number = std::get_if<double>(&fact->value);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

/// The pod that would be evicted first; empty: none may be.
std::string first_of(const policy::Decision& decision) {
  for (const policy::Candidate& each : decision.candidates) {
    if (each.reason.code == ReasonCode::kRankedFirst) {
      return fmt::format("{}/{}", each.subject.ns, each.subject.name);
    }
  }
  return {};
}

policy::Subject named_subject(std::string_view kind, const api::ObjectMeta& metadata) {
  return {std::string(kind), metadata.ns, metadata.name, metadata.uid};
}

std::optional<Remark> remark_about(const api::Node& node) {
  const api::NodeCondition* ready = api::find_condition(node.status.conditions, "Ready");
  if (ready == nullptr) return Remark{Code::kNodeNoStatus, {}};
  std::vector<Fact> facts;
  if (!ready->message.empty()) facts.push_back({"message", ready->message});
  if (ready->status == "Unknown") return Remark{Code::kNodeSilent, std::move(facts)};
  if (ready->status != "True") return Remark{Code::kNodeNotReady, std::move(facts)};
  std::string pressure;
  for (const api::NodeCondition& each : node.status.conditions) {
    if (each.status != "True" || !each.type.ends_with("Pressure")) continue;
    pressure += pressure.empty() ? each.type : ", " + each.type;
  }
  if (!pressure.empty()) return Remark{Code::kNodeUnderPressure, {{"conditions", pressure}}};
  return std::nullopt;
}

template <typename T>
using ByNamespace = std::map<std::string_view, std::vector<T>>;

template <typename T>
const std::vector<T>& in_namespace(const ByNamespace<T>& objects, std::string_view ns) {
  static const std::vector<T> kNone;
  const auto found = objects.find(ns);
  return found == objects.end() ? kNone : found->second;
}

/// Looks at each object once, and for a pod or Service at those of its namespace.
class OverviewMaker {
 public:
  OverviewMaker(const OverviewScene& scene, WallTime now) : scene_(scene), now_(now) {
    for (const PodPtr& pod : scene_.pods) {
      if (!api::is_terminal(*pod)) pods_[pod->metadata.ns].push_back(pod);
    }
    for (const ClaimPtr& claim : scene_.claims) claims_[claim->metadata.ns].push_back(claim);
  }

  Overview run() {
    if (!scene_.hold.empty()) {
      add({{"Cluster", "", "", ""}, {Code::kClusterHeld, {{"why", scene_.hold}}}, {}, 0});
    }
    for (const auto& node : scene_.nodes) inspect_node(*node);
    for (const PodPtr& pod : scene_.pods) inspect_pod(*pod);
    inspect_makers();
    for (const ClaimPtr& claim : scene_.claims) inspect_claim(*claim);
    for (const auto& service : scene_.services) inspect_service(*service);
    out_.concerns_total = static_cast<std::int64_t>(out_.concerns.size());
    if (out_.concerns.size() > kConcernsMax) out_.concerns.resize(kConcernsMax);
    return std::move(out_);
  }

 private:
  void add(Concern concern) { out_.concerns.push_back(std::move(concern)); }

  // Nodes.

  void inspect_node(const api::Node& node) {
    ++out_.nodes;
    std::optional<Remark> remark = remark_about(node);
    if (remark && remark->code == Code::kNodeUnderPressure) add_measure(node.metadata.name, remark->facts);
    const api::NodeCondition* ready = api::find_condition(node.status.conditions, "Ready");
    if (ready != nullptr && ready->status == "True") ++out_.nodes_ready;
    if (!remark) remark = near_threshold(node.metadata.name);
    if (remark) add({named_subject("Node", node.metadata), *std::move(remark), {}, 0});
  }

  /// Adds the measurement that is beyond its threshold, if the agent reports it.
  void add_measure(const std::string& node, std::vector<Fact>& facts) const {
    const auto found = scene_.standings.find(node);
    if (found == scene_.standings.end()) return;
    for (const Reason& reason : found->second.reasons) {
      if (reason.code != ReasonCode::kThresholdMet && reason.code != ReasonCode::kObservationStale) continue;
      for (const Fact& fact : reason.facts) {
        const bool is_measure =
            fact.name == "signal" || fact.name.starts_with("available_") || fact.name.starts_with("threshold_");
        if (is_measure) facts.push_back(fact);
      }
      return;
    }
  }

  std::optional<Remark> near_threshold(const std::string& node) const {
    const auto found = scene_.standings.find(node);
    if (found == scene_.standings.end()) return std::nullopt;
    std::optional<Remark> nearest;
    double soonest = kNearSeconds;
    for (const Reason& reason : found->second.reasons) {
      const auto due = number_fact(reason, "forecast_seconds");
      const auto signal = policy::text_fact(reason, "signal");
      if (!due || !signal || *due > soonest) continue;
      soonest = *due;
      std::vector<Fact> facts{{"signal", std::string(*signal)}, {"due_seconds", *due}};
      if (const std::string first = first_of(found->second); !first.empty()) facts.push_back({"pod", first});
      nearest = Remark{Code::kNodeNear, std::move(facts)};
    }
    return nearest;
  }

  // Pods.

  void inspect_pod(const api::Pod& pod) {
    ++out_.pods;
    if (pod.status.phase == "Running") ++out_.pods_running;
    auto remark = trouble_of(pod);
    if (!remark) return;
    const api::OwnerReference* owner = api::controller_of(pod.metadata);
    std::string owner_text =
        owner == nullptr ? std::string() : fmt::format("{} {}", api::text_of(api::kind_of(*owner)), owner->name);
    if (!owner_text.empty()) {
      const auto [same, is_first] =
          of_owners_.try_emplace({pod.metadata.ns, owner_text, remark->code}, out_.concerns.size());
      if (!is_first) {
        ++out_.concerns[same->second].more;
        return;
      }
    }
    add({named_subject("Pod", pod.metadata), *std::move(remark), std::move(owner_text), 0});
  }

  std::optional<Remark> trouble_of(const api::Pod& pod) const {
    if (pod.status.phase == "Succeeded") return std::nullopt;
    if (pod.status.reason == "Evicted") {
      return Remark{Code::kPodEvicted, {{"node", pod.spec.node_name}, {"message", pod.status.message}}};
    }
    if (pod.metadata.deletion_timestamp) return std::nullopt;
    if (const auto trouble = explain_containers(pod, now_)) return trouble->remarks.front();
    if (pod.status.phase == "Failed") return Remark{Code::kPodFailed, {{"why", workloads::why_failed(pod)}}};
    if (workloads::is_ready(pod)) return std::nullopt;
    const api::PodCondition* scheduled = api::find_condition(pod.status.conditions, "PodScheduled");
    const bool has_no_place = scheduled != nullptr && scheduled->status == "False" && scheduled->reason == kNoPlace;
    const Duration grace = has_no_place ? kPlaceGrace : kStartGrace;
    if (pod.metadata.creation_timestamp && now_ - *pod.metadata.creation_timestamp < grace) return std::nullopt;
    if (const auto* claim = unbound_claim_of(pod, in_namespace(claims_, pod.metadata.ns), scene_.classes)) {
      return Remark{Code::kPodClaim, {{"claim", claim->metadata.name}}};
    }
    if (pod.spec.node_name.empty()) {
      std::vector<Fact> facts;
      if (scheduled != nullptr && !scheduled->message.empty()) facts.push_back({"message", scheduled->message});
      return Remark{Code::kPodUnschedulable, std::move(facts)};
    }
    return Remark{Code::kPodUnready, {{"why", workloads::why_not_ready(pod)}}};
  }

  // Workloads.

  /// The pods of one owner.
  struct Owned {
    std::int64_t active = 0;
    std::optional<WallTime> newest;  // creation
  };

  void inspect_makers() {
    if (scene_.refusals.empty()) return;
    std::map<std::string_view, const api::Event*> last;  // by the uid of the workload
    for (const auto& event : scene_.refusals) {
      const api::Event*& known = last[event->involved_object.uid];
      if (known == nullptr || time_of(*event) > time_of(*known)) known = event.get();
    }
    std::map<std::string_view, Owned> owned;
    for (const PodPtr& pod : scene_.pods) {
      const api::OwnerReference* owner = api::controller_of(pod->metadata);
      if (owner == nullptr) continue;
      Owned& pods = owned[owner->uid];
      if (workloads::is_active(*pod)) ++pods.active;
      pods.newest = std::max(pods.newest, pod->metadata.creation_timestamp);
    }
    for (const PodMaker& maker : scene_.makers) {
      const auto refused = last.find(maker.metadata.uid);
      if (refused == last.end()) continue;
      const Owned& pods = owned[maker.metadata.uid];
      const auto at = time_of(*refused->second);
      if (pods.active >= maker.wanted || pods.newest > at || maker.metadata.deletion_timestamp) continue;
      std::vector<Fact> facts{{"message", refused->second->message}};
      if (at) facts.push_back(time_fact("last_at", *at));
      add({root_of(maker), {Code::kJobPodsRefused, std::move(facts)}, {}, 0});
    }
  }

  static std::optional<WallTime> time_of(const api::Event& event) {
    return event.last_timestamp ? event.last_timestamp : event.metadata.creation_timestamp;
  }

  /// The Deployment of a ReplicaSet that has one: users know its name.
  static policy::Subject root_of(const PodMaker& maker) {
    const api::OwnerReference* owner = api::controller_of(maker.metadata);
    if (owner != nullptr && api::kind_of(*owner) == api::KindId{"apps", "Deployment"}) {
      return {owner->kind, maker.metadata.ns, owner->name, owner->uid};
    }
    return named_subject(maker.kind, maker.metadata);
  }

  // Claims and Services.

  void inspect_claim(const api::PersistentVolumeClaim& claim) {
    if (claim.status.phase == "Bound" || claim.metadata.deletion_timestamp) return;
    if (claim.status.phase == "Lost") {
      return add({named_subject(api::PersistentVolumeClaim::kKind, claim.metadata),
                  {Code::kClaimLost, {{"volume", claim.volume_name}}},
                  {},
                  0});
    }
    Remark remark = unbound_claim(claim, scene_.classes);
    // A claim that waits for a pod lacks nothing yet: the pod has an entry of its own, if it needs a look.
    if (remark.code == Code::kClaimFirstConsumer) return;
    add({named_subject(api::PersistentVolumeClaim::kKind, claim.metadata), std::move(remark), {}, 0});
  }

  void inspect_service(const api::Service& service) {
    if (!endpoints::has_selected_pods(service) || service.metadata.deletion_timestamp) return;
    std::vector<endpoints::PodPtr> pods;
    for (const PodPtr& pod : in_namespace(pods_, service.metadata.ns)) {
      if (endpoints::selects(service, pod->metadata.labels)) pods.push_back(pod);
    }
    const ServiceScene scene{service, {}, std::move(pods), std::nullopt, std::nullopt};
    const Outlook outlook = explain_service(scene, now_);
    for (Remark remark : outlook.remarks) {
      if (remark.code != Code::kServiceNoMatch && remark.code != Code::kServiceNoneReady) continue;
      // The pod that is not ready has an entry of its own.
      std::erase_if(remark.facts, [](const Fact& fact) { return fact.name == "pod" || fact.name == "why"; });
      return add({named_subject(api::Service::kKind, service.metadata), std::move(remark), {}, 0});
    }
  }

  const OverviewScene& scene_;
  WallTime now_;
  ByNamespace<PodPtr> pods_;  // pods that have not ended
  ByNamespace<ClaimPtr> claims_;
  std::map<std::tuple<std::string, std::string, Code>, std::size_t> of_owners_;  // entry of a namespace, owner, remark
  Overview out_;
};

}  // namespace

PodMaker maker_of(const api::ReplicaSet& set) {
  return {api::ReplicaSet::kKind, set.metadata, set.replicas};
}

PodMaker maker_of(const api::StatefulSet& set) {
  return {api::StatefulSet::kKind, set.metadata, set.replicas};
}

PodMaker maker_of(const api::DaemonSet& set) {
  return {api::DaemonSet::kKind, set.metadata, set.status.desired_number_scheduled};
}

PodMaker maker_of(const api::Job& job) {
  PodMaker maker{api::Job::kKind, job.metadata, job.parallelism.value_or(1)};
  if (job.completions) maker.wanted = std::min<std::int64_t>(maker.wanted, *job.completions - job.status.succeeded);
  if (job.suspend || job.managed_by || workloads::is_finished(job)) maker.wanted = 0;
  return maker;
}

std::optional<Outlook> explain_node(const api::Node& node, WallTime now) {
  std::optional<Remark> remark = remark_about(node);
  if (!remark || remark->code != Code::kNodeNotReady) return std::nullopt;
  return Outlook{.at = now,
                 .subject = named_subject("Node", node.metadata),
                 .verdict = policy::Verdict::kRefuses,
                 .remarks = {*std::move(remark)},
                 .parts = {}};
}

Overview overview_of(const OverviewScene& scene, WallTime now) {
  return OverviewMaker(scene, now).run();
}

}  // namespace spillway::outlook
