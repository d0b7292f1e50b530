// Executes the choice of scheduling::decide_preemption(). The pod is nominated to the node first; once the API server
// has stored that, the choice is evaluated again, and exactly the decided writes follow: each victim is marked and
// deleted, pods of lower priority lose their nomination. So if this process ends in between, it leaves a nomination
// that the next one resumes, and never room without a nomination.
//
// Every write names the uid of its pod. A victim that is not found has ended already. If another write is refused, the
// nomination is removed and the pod is requeued.
// Thread: loop. Bounds: one preemption per pod; a written one counts as in progress until the cache shows that its
// victims have ended, and for kSightMax at most.
// Source: Kubernetes docs, "Pod Priority and Preemption"; spec "Scheduler and workloads", 8.
#pragma once

#include "client/api_client.h"
#include "client/event_recorder.h"
#include "controllers/shared/act_gate.h"
#include "policy/scheduling/preemption.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::controllers {

class Preemptor {
 public:
  static constexpr Duration kSightMax = seconds(30);

  /// An authorized preemption, with all its writes.
  struct Plan {
    scheduling::PodPtr pod;
    scheduling::PreemptionCandidate choice;
    std::vector<scheduling::PreemptionWrite> writes;
    bool by_extenders = false;  // extenders took part, so victims may differ from those of the rules
  };

  struct Hooks {
    /// Events about what is done for this pod.
    std::function<client::EventRecorder&(const api::Pod&)> events_of;
    /// True if the rules would choose the same victims on the node now.
    std::function<bool(const Plan&)> still_holds;
    /// The preemption has failed: the promise of the node must no longer count.
    std::function<void(const Plan&, Now)> on_withdrawn;
  };

  Preemptor(client::ApiClient& client, const telemetry::Log& log, telemetry::Registry& metrics,
            lifecycle::BrakeConfig brakes, Hooks hooks);
  Preemptor(const Preemptor&) = delete;
  Preemptor& operator=(const Preemptor&) = delete;

  /// Counts a search for victims, with or without a result.
  void count_attempt() { attempts_.add(); }

  /// The brake that would hold the preemption now; nullopt: none.
  std::optional<lifecycle::Brakes::Answer> find_brake(const Plan& plan, Now now);
  /// Logs that this brake holds back the decision for a pod; nullopt: not any more.
  void record_brake(const api::Pod& pod, const std::optional<lifecycle::Brakes::Answer>& held, Now now);

  /// `condition`: the condition of the pod's status with the reason of its wait.
  void begin(Plan plan, const api::Json& condition, Now now);

  /// True while some victims have not begun to end.
  bool is_under_way(const std::string& pod_uid) const { return acts_.contains(pod_uid); }

  void on_pod(const scheduling::PodPtr& before, const scheduling::PodPtr& after);

  std::size_t under_way() const { return acts_.size(); }

 private:
  struct Act {
    Plan plan;
    std::size_t unanswered = 0;
    bool failed = false;
    std::set<std::string> unseen;  // uids of victims that the cache does not show as ending
  };

  using ActPtr = std::shared_ptr<Act>;

  void on_promised(const ActPtr& act, const Result<api::Json>& outcome, Now now);
  void carry_out(const ActPtr& act, Now now);
  /// The writes of a victim from this one on, one after the other.
  void write(const ActPtr& act, std::size_t index, Now now);
  void on_written(const ActPtr& act, std::size_t index, const Result<api::Json>& outcome, Now now);
  void on_answered(const ActPtr& act, Now now);
  void withdraw(const ActPtr& act, Now now);

  void end(const std::string& pod_uid) { acts_.erase(pod_uid); }

  client::ApiClient& client_;
  const telemetry::Log& log_;
  ActGate gate_;
  Hooks hooks_;
  telemetry::Counter attempts_;
  telemetry::Histogram victims_;
  std::map<std::string, ActPtr> acts_;  // by uid of the pod
};

}  // namespace spillway::controllers
