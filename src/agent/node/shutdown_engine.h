// Ends the pods of a node that is shutting down: group after group by priority, each with its grace; the node reports
// that it is not ready, and new pods are refused. Without configured periods nothing happens here.
// Thread: loop. Invariants: a shutdown that has begun is not taken back; a group begins when the one before it has
// ended or its time is over. Bounds: the sum of the groups' graces, and kReportWait more for the statuses to be
// written. Source: Kubernetes docs, "Node Shutdowns", graceful node shutdown; KEP-2000, KEP-2712; spec "Node
// agent", 19.
#pragma once

#include "agent/contract/context.h"
#include "agent/node/shutdown_plan.h"
#include "api/json/json.h"
#include "api/object/pod.h"
#include "base/time.h"
#include "telemetry/metrics.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

class ShutdownEngine {
 public:
  /// Port: the part that runs the pods.
  class Pods {
   public:
    virtual ~Pods() = default;
    virtual std::vector<const api::Pod*> active() const = 0;
    /// Ends the pod because of the shutdown.
    virtual void shut_down(const std::string& uid, std::int64_t grace_seconds, Now now) = 0;
    virtual bool is_finished(const std::string& uid) const = 0;
    /// The API server has its last status, or the pod has no worker any more.
    virtual bool is_reported(const std::string& uid) const = 0;
  };

  /// `metrics` may be null. `on_begin`: the node's condition has changed.
  ShutdownEngine(AgentContext& context, Pods& pods, telemetry::Registry* metrics, std::function<void(Now)> on_begin);

  /// `done`: no pod is left that is waited for, and their statuses are written. False: no graceful shutdown is
  /// configured; `done` is not called. A repeated call only replaces `done`.
  bool begin(std::function<void(Now)> done, Now now);
  void on_pod_finished(const std::string& uid, Now now);

  bool is_active() const { return active_; }

  /// State for people and /debug/spillway: no contract.
  api::Json state() const;

 private:
  void next_group(Now now);
  void wait_for_reports(Instant deadline, Now now);

  AgentContext& context_;
  Pods& pods_;
  telemetry::Registry* metrics_;
  std::function<void(Now)> on_begin_;
  std::function<void(Now)> done_;
  bool active_ = false;
  std::vector<ShutdownStep> steps_;
  std::size_t next_step_ = 0;
  std::set<std::string> ending_;  // pods of the group under way
  std::vector<std::string> ended_;
  std::optional<client::ApiClient::TimerId> timer_;
};

inline constexpr std::string_view kShutdownReason = "Terminated";
inline constexpr std::string_view kShutdownMessage = "Pod was terminated in response to imminent node shutdown.";
inline constexpr std::string_view kShutdownNotReady = "node is shutting down";
inline constexpr Duration kReportWait = seconds(5);

}  // namespace spillway::agent
