// The time since which the endpoints of a Service are out of date: the value of the annotation
// last-change-trigger-time, by which other programs measure the delay of a change. Thread: loop.
// Bounds: one entry per Service, one time per pod that is behind it. Source: Kubernetes 1.32, endpoint slices.
#pragma once

#include "api/object/pod.h"
#include "api/object/service.h"
#include "policy/workloads/pod_state.h"

#include <map>
#include <optional>
#include <span>
#include <string>

namespace spillway::endpoints {

class TriggerTimes {
 public:
  /// The first of the times that are later than at the last look. nullopt: nothing happened that has a time.
  std::optional<WallTime> observe(const std::string& service_key, const api::Service& service,
                                  std::span<const workloads::PodPtr> pods);

  void forget(const std::string& service_key) { seen_.erase(service_key); }

 private:
  struct Seen {
    std::optional<WallTime> service;
    std::map<std::string, WallTime> pods;  // by name
  };

  std::map<std::string, Seen> seen_;
};

}  // namespace spillway::endpoints
