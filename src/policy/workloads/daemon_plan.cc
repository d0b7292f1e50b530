#include "policy/workloads/daemon_plan.h"

#include "policy/workloads/daemon_update.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace spillway::workloads {

namespace {

class Planner {
 public:
  Planner(const DaemonView& view, DaemonActs acts, FailureBackoff& backoff, Now now)
      : view_(view),
        backoff_(backoff),
        now_(now),
        may_act_(acts == DaemonActs::kAllowed && !view.set.metadata.deletion_timestamp),
        wanted_(std::ranges::count_if(view.fits, [](const auto& each) { return each.second.should_run; })) {}

  DaemonPlan plan() {
    plan_.status.observed_generation = view_.set.metadata.generation;
    plan_.status.collision_count = view_.set.status.collision_count;
    for (const auto& [node, fit] : view_.fits) plan_node(node, fit);
    remove_strangers();
    roll_out();
    plan_.status.number_unavailable = plan_.status.desired_number_scheduled - plan_.status.number_available;
    return std::move(plan_);
  }

 private:
  bool has_room() const { return may_act_ && plan_.create.size() + plan_.remove.size() < kDaemonBurstMax; }

  void remove(const PodPtr& pod) {
    if (has_room()) plan_.remove.push_back(pod);
  }

  void plan_node(const std::string& node, const DaemonFit& fit) {
    const auto found = view_.by_node.find(node);
    std::vector<PodPtr> here = found == view_.by_node.end() ? std::vector<PodPtr>() : found->second;
    for (const PodPtr& pod : here) replace_failed(node, pod);
    // Under a surge a second pod runs beside an ending one; a failed one must be gone first.
    const bool are_waited_for = std::ranges::any_of(here, [this](const PodPtr& pod) {
      return !is_active(*pod) && (!surges() || !pod->metadata.deletion_timestamp);
    });
    std::erase_if(here, [](const PodPtr& pod) { return !is_active(*pod); });
    std::ranges::sort(here, [](const PodPtr& a, const PodPtr& b) { return stays_before(*a, *b); });
    if (fit.should_run || !here.empty()) places_.push_back(place_of(node, fit, here));
    count(fit, here);
    if (fit.should_run && here.empty() && !are_waited_for) create(node);
    if (!fit.should_continue) {
      for (const PodPtr& pod : here) remove(pod);
    } else if (here.size() > 1) {
      thin_out(here);
    }
  }

  /// Pods with a node are kept before others, and older before younger ones.
  static bool stays_before(const api::Pod& a, const api::Pod& b) {
    const auto rank = [](const api::Pod& pod) {
      return std::tuple(pod.spec.node_name.empty(), pod.metadata.creation_timestamp, pod.metadata.name);
    };
    return rank(a) < rank(b);
  }

  DaemonPlace place_of(const std::string& node, const DaemonFit& fit, const std::vector<PodPtr>& here) {
    DaemonPlace place{.node = node, .updated = {}, .outdated = {}, .wanted = fit.should_run};
    for (const PodPtr& pod : here) {
      DaemonPod& slot = is_of_present_template(*pod) ? place.updated : place.outdated;
      if (slot.pod) {
        place.crowded = true;
      } else {
        slot = {pod, is_available(*pod)};
      }
    }
    if (place.outdated.pod && !place.updated.pod) {
      const std::optional<Instant> due = backoff_.not_before(node, now_.mono);
      place.held = due.has_value();
      if (due) wait_until(*due);
    }
    return place;
  }

  bool is_of_present_template(const api::Pod& pod) const { return is_updated(view_.set, pod, view_.hash); }

  bool is_available(const api::Pod& pod) {
    const std::optional<Duration> wait = until_available(pod, view_.set.min_ready_seconds, now_.wall);
    if (wait && *wait > Duration::zero()) wait_until(now_.mono + *wait);
    return wait == Duration::zero();
  }

  void wait_until(Instant due) { plan_.requeue_at = plan_.requeue_at ? std::min(*plan_.requeue_at, due) : due; }

  bool surges() const { return view_.set.update_strategy != "OnDelete" && daemon_bounds(view_.set, wanted_).surge > 0; }

  /// Keeps one pod on the node; under a surge also the oldest of an earlier template, while it is ready and its
  /// successor is not available.
  void thin_out(const std::vector<PodPtr>& here) {
    if (!surges()) {
      for (std::size_t i = 1; i < here.size(); ++i) remove(here[i]);
      return;
    }
    const DaemonPlace& place = places_.back();
    for (const PodPtr& pod : here) {
      if (pod != place.updated.pod && pod != place.outdated.pod) remove(pod);
    }
    if (!place.updated.pod || !place.outdated.pod) return;
    if (!is_ready(*place.outdated.pod) || place.updated.available) remove(place.outdated.pod);
  }

  /// Deletes a failed pod; each successor is delayed longer.
  void replace_failed(const std::string& node, const PodPtr& pod) {
    if (!api::is_terminal(*pod) || pod->metadata.deletion_timestamp || !has_room()) return;
    backoff_.failed(node, now_.mono);
    remove(pod);
  }

  void create(const std::string& node) {
    if (!has_room()) return;
    std::optional<Instant> due = backoff_.not_before(node, now_.mono);
    if (view_.evictions != nullptr) due = std::max(due, view_.evictions->node_held_until(node, now_.mono));
    if (due) return wait_until(*due);
    plan_.create.push_back(node);
  }

  void count(const DaemonFit& fit, const std::vector<PodPtr>& here) {
    api::DaemonSetStatus& status = plan_.status;
    if (!fit.should_run) {
      status.number_misscheduled += here.empty() ? 0 : 1;
      return;
    }
    ++status.desired_number_scheduled;
    if (here.empty()) return;
    const api::Pod& first = *here.front();
    ++status.current_number_scheduled;
    status.updated_number_scheduled += is_of_present_template(first) ? 1 : 0;
    status.number_ready += is_ready(first) ? 1 : 0;
    status.number_available += is_available(first) ? 1 : 0;
  }

  /// Deletes pods of nodes that no longer exist.
  void remove_strangers() {
    for (const auto& [node, pods] : view_.by_node) {
      if (view_.fits.contains(node)) continue;
      for (const PodPtr& pod : pods) {
        if (!pod->metadata.deletion_timestamp) remove(pod);
      }
    }
  }

  /// Called only when every node has its pod.
  void roll_out() {
    if (!may_act_ || !plan_.create.empty() || !plan_.remove.empty() || view_.set.update_strategy == "OnDelete") return;
    const std::int64_t desired = plan_.status.desired_number_scheduled;
    const DaemonStep step = next_daemon_step(places_, daemon_bounds(view_.set, desired), desired);
    for (const PodPtr& pod : step.remove) remove(pod);
    for (const std::string& node : step.create) create(node);
  }

  const DaemonView& view_;
  FailureBackoff& backoff_;
  Now now_;
  bool may_act_;
  std::int64_t wanted_;  // nodes that are to have a pod
  DaemonPlan plan_;
  std::vector<DaemonPlace> places_;
};

}  // namespace

DaemonPlan plan_daemons(const DaemonView& view, DaemonActs acts, FailureBackoff& backoff, Now now) {
  return Planner(view, acts, backoff, now).plan();
}

}  // namespace spillway::workloads
