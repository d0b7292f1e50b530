// The end of a pod that has no process left: its content on the machine is removed, its object deleted, its entry
// forgotten. Steps, each as soon as the one before allows it: the terminal status is written; the content of an evicted
// pod is removed; the object is deleted, if its deletion was requested; the object is gone.
// Thread: loop. Bounds: one request for each pod; kRetry between two. Source: spec "Pod lifecycle", 10.7; spec "Node
// agent", 15.
#pragma once

#include "agent/contract/context.h"
#include "agent/pod_state/pod_status_writer.h"
#include "agent/pod_state/pod_table.h"

#include <functional>
#include <string>

namespace spillway::agent {

class PodRemoval {
 public:
  static constexpr Duration kRetry = seconds(1);

  /// `forget`: nothing of the pod is left; it takes the entry out of the table.
  PodRemoval(AgentContext& context, PodTable& pods, PodStatusWriter& status,
             std::function<void(const std::string& uid, Now now)> forget)
      : context_(context), pods_(pods), status_(status), forget_(std::move(forget)) {}

  /// Takes the steps that are possible now. Does nothing for a pod that is not in kTerminated.
  void advance(PodWorker& worker, Now now);
  void remove_content(PodWorker& worker);

 private:
  void delete_object(PodWorker& worker);
  void on_deleted(const std::string& uid, const Result<api::Json>& outcome, Now now);
  void retry(const std::string& uid, Now now);

  AgentContext& context_;
  PodTable& pods_;
  PodStatusWriter& status_;
  std::function<void(const std::string&, Now)> forget_;
};

}  // namespace spillway::agent
