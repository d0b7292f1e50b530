// Kubernetes events about a pod, or about one of its containers. Thread: loop.
#pragma once

#include "agent/contract/ports.h"
#include "agent/pod_state/pod_worker.h"
#include "client/event_recorder.h"

#include <string>
#include <string_view>

namespace spillway::agent {

class PodEvents {
 public:
  explicit PodEvents(client::EventRecorder& recorder) : recorder_(recorder) {}

  /// `container`: empty if the event is about the pod.
  void record(const PodWorker& worker, const std::string& container, client::EventType type, std::string_view reason,
              std::string_view message, Now now);
  /// The machine reports something about the pod.
  void record(const PodWorker& worker, const PodNotice& notice, Now now);

 private:
  client::EventRecorder& recorder_;
};

}  // namespace spillway::agent
