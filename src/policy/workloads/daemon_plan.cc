#include "policy/workloads/daemon_plan.h"

#include "policy/workloads/daemon_update.h"

#include <algorithm>
#include <utility>

namespace spillway::workloads {

namespace {

class Planner {
 public:
  Planner(const DaemonView& view, DaemonActs acts, FailureBackoff& backoff, Instant now)
      : view_(view),
        backoff_(backoff),
        now_(now),
        may_act_(acts == DaemonActs::kAllowed && !view.set.metadata.deletion_timestamp) {}

  DaemonPlan plan() {
    plan_.status.observed_generation = view_.set.metadata.generation;
    plan_.status.collision_count = view_.set.status.collision_count;
    for (const auto& [node, fit] : view_.fits) look_at(node, fit);
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

  void look_at(const std::string& node, const DaemonFit& fit) {
    const auto found = view_.by_node.find(node);
    std::vector<PodPtr> here = found == view_.by_node.end() ? std::vector<PodPtr>() : found->second;
    const std::size_t all = here.size();
    for (const PodPtr& pod : here) replace_failed(node, pod);
    std::erase_if(here, [](const PodPtr& pod) { return !is_active(*pod); });
    count(fit, here);
    const bool leaving = here.size() < all;
    if (fit.should_run && here.empty() && !leaving) create(node);
    // More than one, or one that may not stay.
    for (std::size_t i = fit.should_continue ? 1 : 0; i < here.size(); ++i) remove(here[i]);
  }

  /// A failed pod goes; its successor comes later each time.
  void replace_failed(const std::string& node, const PodPtr& pod) {
    if (!api::is_terminal(*pod) || pod->metadata.deletion_timestamp || !has_room()) return;
    backoff_.failed(node, now_);
    remove(pod);
  }

  void create(const std::string& node) {
    if (!has_room()) return;
    std::optional<Instant> due = backoff_.not_before(node, now_);
    if (view_.evictions != nullptr) due = std::max(due, view_.evictions->node_held_until(node, now_));
    if (due) {
      plan_.look_again = plan_.look_again ? std::min(*plan_.look_again, *due) : *due;
      return;
    }
    plan_.create.push_back(node);
  }

  void count(const DaemonFit& fit, const std::vector<PodPtr>& here) {
    api::DaemonSetStatus& status = plan_.status;
    if (!fit.should_run) {
      status.number_misscheduled += here.empty() ? 0 : 1;
      return;
    }
    ++status.desired_number_scheduled;
    DaemonPlace& place = places_.emplace_back();
    if (here.empty()) return;
    place = {here.front(), is_updated(view_.set, *here.front(), view_.hash), is_ready(*here.front())};
    ++status.current_number_scheduled;
    status.updated_number_scheduled += place.updated ? 1 : 0;
    status.number_ready += place.available ? 1 : 0;
    status.number_available += place.available ? 1 : 0;
    if (here.size() > 1) place.pod = nullptr;
  }

  /// Pods for nodes that are gone.
  void remove_strangers() {
    for (const auto& [node, pods] : view_.by_node) {
      if (view_.fits.contains(node)) continue;
      for (const PodPtr& pod : pods) {
        if (!pod->metadata.deletion_timestamp) remove(pod);
      }
    }
  }

  /// Only when every node has what it should have.
  void roll_out() {
    if (!may_act_ || !plan_.create.empty() || !plan_.remove.empty() || view_.set.update_strategy == "OnDelete") return;
    const std::int64_t most = unavailable_max(view_.set.max_unavailable, plan_.status.desired_number_scheduled);
    for (const PodPtr& pod : pods_to_update(places_, most)) remove(pod);
  }

  const DaemonView& view_;
  FailureBackoff& backoff_;
  Instant now_;
  bool may_act_;
  DaemonPlan plan_;
  std::vector<DaemonPlace> places_;
};

}  // namespace

DaemonPlan plan_daemons(const DaemonView& view, DaemonActs acts, FailureBackoff& backoff, Instant now) {
  return Planner(view, acts, backoff, now).plan();
}

}  // namespace spillway::workloads
