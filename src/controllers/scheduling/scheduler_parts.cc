#include "controllers/scheduling/scheduler_parts.h"

#include <string>
#include <utility>
#include <vector>

namespace spillway::controllers {

namespace {

std::vector<std::string> names_of(const std::vector<scheduling::Profile>& profiles) {
  std::vector<std::string> names;
  for (const scheduling::Profile& profile : profiles) names.push_back(profile.scheduler);
  return names;
}

}  // namespace

Scheduler::Parts::Parts(Scheduler& owner, const Rng& rng, telemetry::Registry& registry)
    : storage(owner.client_),
      attachments(owner.client_, [this](std::string_view event) { refused.requeue_claimants(event); }),
      placer(owner.options_.profiles),
      metrics(registry, names_of(owner.options_.profiles)),
      timings(registry, owner.options_.stopwatch),
      refused({owner.client_, owner.pods_, placer, owner.queue_, timings, owner.log_},
              owner.options_.unschedulable_retry, [this] { return cycles.keys(); }),
      extender_calls(owner.client_, owner.log_, registry, owner.options_.extenders),
      cycles({owner.client_, owner.pods_, placer, owner.queue_, refused, extender_calls, owner.log_},
             {.still_waiting = [&owner](const PodPtr& pod) { return owner.still_waiting(pod); },
              .volumes_now = [&owner] { return owner.volumes_now(); },
              .on_placed = [&owner](const PodPtr& pod, const scheduling::Placement& placement,
                                    const scheduling::PodVolumes& volumes,
                                    Now now) { owner.start_binding(pod, placement, volumes, now); },
              .on_refused = [&owner](const PodPtr& pod, const scheduling::Placement& placement,
                                     const scheduling::VolumeFilter& volumes,
                                     Now now) { owner.refuse(pod, placement, volumes, now); },
              .on_failed = [&owner](const PodPtr& pod, const Error& error,
                                    Now now) { owner.on_extender_failed(pod, error, now); }}),
      preemption(
          {owner.client_, owner.pods_, owner.budgets_, placer, owner.queue_, refused, extender_calls, owner.log_},
          {.brakes = owner.options_.brakes, .respects_budgets = owner.options_.respect_budgets}, rng.fork("preemption"),
          registry,
          {.still_waiting = [&owner](const PodPtr& pod) { return owner.still_waiting(pod); },
           .volumes_now = [&owner] { return owner.volumes_now(); },
           .pods_on = [&owner](const std::string& node) { return owner.pods_on(node); },
           .has_cycle = [this](const std::string& pod_uid) { return cycles.contains(pod_uid); },
           .events_of = [&owner](const api::Pod& pod) -> client::EventRecorder& { return owner.events_of(pod); },
           .promise = [&owner](const std::string& node, const PodPtr& pod,
                               std::string_view counts_on) { owner.promise_node(node, pod, counts_on); },
           .restore_promise = [&owner](const PodPtr& pod) { owner.update_promise(pod, pod); },
           .report = [this](const PodPtr& pod, const std::string& message, std::optional<std::string> promise,
                            Now now) { conditions.report(pod, message, std::move(promise), now); }}),
      conditions({owner.client_, owner.pods_, refused, owner.log_},
                 {.events_of = [&owner](const api::Pod& pod) -> client::EventRecorder& { return owner.events_of(pod); },
                  .is_preempting = [this](const std::string& uid) { return preemption.is_preempting(uid); },
                  .on_promise_lost = [&owner](const PodPtr& pod) { owner.promise_node({}, pod); }}),
      bindings(
          {owner.client_, refused, extender_calls, conditions, metrics, timings, owner.log_},
          {.events_of = [&owner](const api::Pod& pod) -> client::EventRecorder& { return owner.events_of(pod); },
           .is_assumed = [&owner](const std::string& uid) { return owner.assumed_.contains(uid); },
           .give_up = [&owner](const PodPtr& pod, const std::string& node, Now now) { owner.give_up(pod, node, now); },
           .still_waiting = [&owner](const PodPtr& pod) { return owner.still_waiting(pod); }}),
      volume_binding(owner.client_, owner.nodes_, storage, owner.options_.claims_timeout,
                     {.on_waits = [this] { bindings.pause(); },
                      .on_bound = [this](const PodPtr& pod, const std::string& node,
                                         Now now) { bindings.on_claims_bound(pod, node, now); },
                      .on_failed = [this](const PodPtr& pod, const std::string& node, const std::string& why,
                                          Now now) { bindings.on_claims_failed(pod, node, why, now); }}),
      feed(owner.client_, placer.surroundings(),
           [this](const scheduling::ClusterChange& change) { refused.requeue(change); }) {}

}  // namespace spillway::controllers
