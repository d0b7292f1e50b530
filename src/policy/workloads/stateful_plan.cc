#include "policy/workloads/stateful_plan.h"

#include "policy/workloads/revision_history.h"
#include "policy/workloads/stateful_revisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

namespace spillway::workloads {

namespace {

bool is_created(const api::Pod& pod) {
  return !pod.status.phase.empty();
}

bool is_leaving(const api::Pod& pod) {
  return pod.metadata.deletion_timestamp.has_value();
}

bool runs_and_is_ready(const api::Pod& pod) {
  return pod.status.phase == "Running" && is_ready(pod);
}

std::int32_t ordinal_of(const api::Pod& pod) {
  const auto found = name_and_ordinal(pod.metadata.name);
  return found ? found->second : -1;
}

api::StringMap identity_labels(std::string_view pod_name, std::int32_t ordinal) {
  return {{std::string(kStatefulPodName), std::string(pod_name)}, {std::string(kPodIndex), std::to_string(ordinal)}};
}

class StatefulPlanner {
 public:
  StatefulPlanner(const StatefulView& view, WallTime now)
      : view_(view), set_(view.set), now_(now), ordered_(!is_parallel(view.set)) {
    for (const PodPtr& pod : view.pods) {
      const std::int32_t ordinal = ordinal_of(*pod);
      if (ordinal < 0) continue;
      (is_in_range(set_, ordinal) ? replicas_ : condemned_)[ordinal] = pod;
    }
  }

  StatefulPlan plan() {
    count();
    if (!set_.metadata.deletion_timestamp && go_over_replicas() && go_over_condemned()) bring_up_to_date();
    complete();
    return std::move(plan_);
  }

 private:
  // Each returns true if the sync continues.

  bool go_over_replicas() {
    const std::int64_t end = std::int64_t{set_.first_ordinal} + std::max(set_.replicas, 0);
    std::size_t made = 0;
    for (std::int64_t at = set_.first_ordinal; at < end; ++at) {
      const auto there = replicas_.lower_bound(static_cast<std::int32_t>(at));
      if (there == replicas_.end() || there->first != at) {
        if (made == kStatefulBurstMax) {  // continues with the next existing pod
          if (there == replicas_.end()) break;
          at = there->first;
        } else {
          if (at > std::numeric_limits<std::int32_t>::max()) break;
          make(static_cast<std::int32_t>(at));
          ++made;
          if (ordered_) return false;
          continue;
        }
      }
      if (!go_over(there->first, there->second) && ordered_) return false;
    }
    return true;
  }

  bool go_over(std::int32_t ordinal, const PodPtr& pod) {
    if (api::is_terminal(*pod)) {
      if (!is_leaving(*pod)) plan_.steps.emplace_back(DeleteStatefulPod{.pod = pod, .is_recreated = true});
      return false;
    }
    if (pod->status.phase == "Pending") {
      if (!make_claims(pod->metadata.name, ordinal)) return false;
      own_claims(*pod, ordinal);
    }
    if (ordered_ && !is_healthy(*pod)) return false;
    repair(pod, ordinal);
    return true;
  }

  void make(std::int32_t ordinal) {
    const std::string name = fmt::format("{}-{}", set_.metadata.name, ordinal);
    for (const auto& [volume, claim] : claim_names(set_, ordinal)) {
      const ClaimPtr there = view_.claim(claim);
      if (there && goes_with_predecessor(*there, set_, name)) return;
    }
    if (const auto wait = view_.held ? view_.held(name) : std::nullopt) return requeue_in(*wait);
    if (!make_claims(name, ordinal)) return;
    api::Pod future;
    future.metadata.name = name;
    future.metadata.ns = set_.metadata.ns;
    plan_.steps.emplace_back(CreateStatefulPod{name, stateful_pod(set_, revision_for(ordinal), ordinal)});
    own_claims(future, ordinal);
  }

  const api::ControllerRevision& revision_for(std::int32_t ordinal) const {
    const std::int64_t index = std::int64_t{ordinal} - set_.first_ordinal;
    const bool given = !set_.rolling_update.is_null();
    const bool rolling = set_.update_strategy == "RollingUpdate";
    const bool old = given ? index < set_.partition : rolling && index < set_.status.current_replicas;
    return old ? view_.current : view_.update;
  }

  /// Makes the missing claims. False: one is being deleted.
  bool make_claims(const std::string& pod, std::int32_t ordinal) {
    bool all = true;
    for (auto& [volume, document] : claim_documents(set_, ordinal)) {
      const std::string name(document.string_at({"metadata", "name"}));
      const ClaimPtr there = view_.claim(name);
      if (!there) {
        plan_.steps.emplace_back(CreateClaim{pod, std::move(document)});
      } else if (there->metadata.deletion_timestamp) {
        plan_.steps.emplace_back(CannotCreate{pod, fmt::format("pvc {} is being deleted", name)});
        all = false;
      }
    }
    return all;
  }

  /// True if a step was added.
  bool own_claims(const api::Pod& pod, std::int32_t ordinal) {
    bool any = false;
    for (const auto& [volume, name] : claim_names(set_, ordinal)) {
      const ClaimPtr there = view_.claim(name);
      if (!there || is_owned_as_asked(*there, set_, pod, ordinal)) continue;
      plan_.steps.emplace_back(OwnClaim{pod.metadata.name, there, owners_asked(*there, set_, pod, ordinal)});
      any = true;
    }
    return any;
  }

  void repair(const PodPtr& pod, std::int32_t ordinal) {
    RepairPod repaired{pod, {}, api::Json()};
    bool consistent = true;
    const api::StringMap labels = identity_labels(pod->metadata.name, ordinal);
    const auto label = pod->metadata.labels.find(kStatefulPodName);
    if (label == pod->metadata.labels.end() || label->second != pod->metadata.name) {
      repaired.labels = labels;
      consistent = false;
    }
    if (!has_its_claims(set_, *pod, ordinal)) {
      repaired.volumes = with_claims(set_, api::Json::array(), ordinal);
      consistent = false;
      if (!make_claims(pod->metadata.name, ordinal)) return;
    }
    if (own_claims(*pod, ordinal)) consistent = false;
    if (!consistent) plan_.steps.emplace_back(std::move(repaired));
  }

  bool go_over_condemned() {
    for (auto at = condemned_.rbegin(); at != condemned_.rend(); ++at) own_claims(*at->second, at->first);
    // All that are wanted are healthy when one is removed in order.
    const auto sick = std::ranges::find_if(condemned_, [this](const auto& each) { return !is_healthy(*each.second); });
    for (auto at = condemned_.rbegin(); at != condemned_.rend(); ++at) {
      const PodPtr& pod = at->second;
      const bool is_first_sick = sick != condemned_.end() && sick->first == at->first;
      if (is_leaving(*pod)) {
        if (ordered_) return false;
        continue;
      }
      if (ordered_ && !is_first_sick && (!runs_and_is_ready(*pod) || !is_available(*pod))) return false;
      plan_.steps.emplace_back(DeleteStatefulPod{pod});
      if (ordered_) return false;
    }
    return true;
  }

  /// Updates pods from the last one down; one at a time.
  void bring_up_to_date() {
    if (set_.update_strategy == "OnDelete") return;
    const std::int64_t end = std::int64_t{set_.first_ordinal} + std::max(set_.replicas, 0);
    for (std::int64_t at = end - 1; at - set_.first_ordinal >= set_.partition; --at) {
      const auto found = at > std::numeric_limits<std::int32_t>::max() ? replicas_.end()
                                                                       : replicas_.find(static_cast<std::int32_t>(at));
      if (found == replicas_.end()) return;  // the pod is being made
      const PodPtr& pod = found->second;
      if (revision_hash(pod->metadata) != view_.update.metadata.name && !is_leaving(*pod)) {
        plan_.steps.emplace_back(DeleteStatefulPod{pod});
        --plan_.status.current_replicas;
        return;
      }
      if (!is_healthy(*pod)) return;
    }
  }

  void requeue_in(Duration wait) { plan_.requeue_after = std::min(plan_.requeue_after.value_or(wait), wait); }

  /// From 1.34 on a pod has to be available, not only ready, before the next one is changed.
  bool is_healthy(const api::Pod& pod) const { return runs_and_is_ready(pod) && is_available(pod) && !is_leaving(pod); }

  bool is_available(const api::Pod& pod) const {
    const auto left = until_available(pod, set_.min_ready_seconds, now_);
    return left && *left == Duration::zero();
  }

  void count() {
    api::StatefulSetStatus& status = plan_.status;
    status.observed_generation = set_.metadata.generation;
    status.current_revision = view_.current.metadata.name;
    status.update_revision = view_.update.metadata.name;
    status.collision_count = set_.status.collision_count.value_or(0);
    for (const auto* pods : {&replicas_, &condemned_}) {
      for (const auto& [ordinal, pod] : *pods) count(*pod, status);
    }
  }

  void count(const api::Pod& pod, api::StatefulSetStatus& status) {
    if (is_created(pod)) ++status.replicas;
    if (runs_and_is_ready(pod)) {
      ++status.ready_replicas;
      const auto left = until_available(pod, set_.min_ready_seconds, now_);
      if (left && *left == Duration::zero()) ++status.available_replicas;
      if (left && *left > Duration::zero()) requeue_in(*left);
    }
    if (!is_created(pod) || is_leaving(pod)) return;
    const std::string revision = revision_hash(pod.metadata);
    if (revision == view_.current.metadata.name) ++status.current_replicas;
    if (revision == view_.update.metadata.name) ++status.updated_replicas;
  }

  /// Ends an update.
  void complete() {
    api::StatefulSetStatus& status = plan_.status;
    const bool all = status.updated_replicas == set_.replicas && status.ready_replicas == set_.replicas &&
                     status.replicas == set_.replicas;
    if (set_.update_strategy != "RollingUpdate" || !all) return;
    status.current_replicas = status.updated_replicas;
    status.current_revision = status.update_revision;
  }

  const StatefulView& view_;
  const api::StatefulSet& set_;
  WallTime now_;
  bool ordered_;
  std::map<std::int32_t, PodPtr> replicas_;  // existing pods, by ordinal
  std::map<std::int32_t, PodPtr> condemned_;
  StatefulPlan plan_;
};

}  // namespace

StatefulPlan plan_stateful(const StatefulView& view, WallTime now) {
  return StatefulPlanner(view, now).plan();
}

bool is_parallel(const api::StatefulSet& set) {
  return set.pod_management_policy == "Parallel";
}

const std::string& pod_of(const StatefulStep& step) {
  struct Pod {
    const std::string& operator()(const CreateClaim& each) const { return each.pod; }

    const std::string& operator()(const CreateStatefulPod& each) const { return each.pod; }

    const std::string& operator()(const OwnClaim& each) const { return each.pod; }

    const std::string& operator()(const RepairPod& each) const { return each.pod->metadata.name; }

    const std::string& operator()(const DeleteStatefulPod& each) const { return each.pod->metadata.name; }

    const std::string& operator()(const CannotCreate& each) const { return each.pod; }
  };

  return std::visit(Pod(), step);
}

std::optional<std::pair<std::string_view, std::int32_t>> name_and_ordinal(std::string_view pod_name) {
  const std::size_t dash = pod_name.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string_view digits = pod_name.substr(dash + 1);
  std::int32_t ordinal = 0;
  const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
  const bool all = !digits.empty() && ec == std::errc{} && end == digits.data() + digits.size() && ordinal >= 0;
  if (!all) return std::nullopt;
  return std::pair(pod_name.substr(0, dash), ordinal);
}

api::Json stateful_pod(const api::StatefulSet& set, const api::ControllerRevision& revision, std::int32_t ordinal) {
  const std::string name = fmt::format("{}-{}", set.metadata.name, ordinal);
  const api::PodTemplate pod_template = template_of(revision);
  api::Json labels = api::Json::object();
  for (const auto& [key, value] : pod_template.labels) labels[key] = value;
  for (const auto& [key, value] : identity_labels(name, ordinal)) labels[key] = value;
  labels[kRevisionHash] = revision.metadata.name;
  api::Json annotations = api::Json::object();
  for (const auto& [key, value] : pod_template.annotations) annotations[key] = value;
  api::Json spec = pod_template.spec;
  if (!spec.is_object()) spec = api::Json::object();
  spec["hostname"] = name;
  if (!set.service_name.empty()) spec["subdomain"] = set.service_name;
  if (const api::Json* volumes = spec.find("volumes"); volumes != nullptr || !claim_names(set, ordinal).empty()) {
    spec["volumes"] = with_claims(set, volumes == nullptr ? api::Json() : api::Json(*volumes), ordinal);
  }
  return api::Json::object({{"apiVersion", api::Pod::kApiVersion},
                            {"kind", api::Pod::kKind},
                            {"metadata", api::Json::object({{"name", name},
                                                            {"namespace", set.metadata.ns},
                                                            {"labels", std::move(labels)},
                                                            {"annotations", std::move(annotations)}})},
                            {"spec", std::move(spec)}});
}

}  // namespace spillway::workloads
