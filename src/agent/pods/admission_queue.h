// The queue of pods before the kubelet's admission: pods are admitted one after the other, so that each check counts
// the pods admitted before. While victims of a preemption are ending, the pods behind wait. Thread: loop. Invariants: a
// pod is checked once; no pod is checked while victims are ending, but no longer than each victim's own deadline.
// Bounds: as many entries as the workers hold. Source: spec "Pod admission", 1, 2, 8.
#pragma once

#include "agent/contract/context.h"
#include "agent/contract/decision_log.h"
#include "api/json/json.h"
#include "api/object/pod.h"
#include "base/time.h"
#include "client/api_client.h"
#include "policy/admission/chain.h"
#include "telemetry/metrics.h"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

class AdmissionQueue {
 public:
  /// Port: the part that holds the pods.
  class Workers {
   public:
    virtual ~Workers() = default;
    /// The pod if it still waits for admission; null: it is gone or ending.
    virtual std::shared_ptr<const api::Pod> find_waiting(const std::string& uid) const = 0;
    /// Pods whose requests count, in namespace/name order.
    virtual std::vector<const api::Pod*> active() const = 0;
    virtual bool is_finished(const std::string& uid) const = 0;
    /// An earlier process admitted it, and something of it is on the machine: what the node is short of now does not
    /// count.
    virtual bool was_admitted(const std::string& uid) const = 0;
    virtual void begin(const std::string& uid, Now now) = 0;
    virtual void refuse(const std::string& uid, const admission::Refusal& refusal, Now now) = 0;
    virtual void preempt(const admission::Victim& victim, Now now) = 0;
  };

  /// `situation`: state of the node that decides about admission. `metrics` may be null.
  AdmissionQueue(AgentContext& context, std::function<admission::NodeSituation()> situation, Workers& workers,
                 DecisionLog& decisions, telemetry::Registry* metrics);

  void add(const std::string& uid) { waiting_.push_back(uid); }

  /// Decides about the first pods that wait, as far as can be decided now.
  void ask(Now now);

  /// True while victims of a preemption are ending.
  bool is_preempting() const { return preemption_.has_value(); }

  /// State for people and /debug/spillway: no contract.
  api::Json state() const;

  /// A pod has no process left.
  void on_finished(const std::string& uid, Now now);

 private:
  /// A pod that ends for another one.
  struct Preempted {
    std::string uid;
    api::PodKey pod;
  };

  /// A preemption under way.
  struct Preemption {
    std::optional<std::string> newcomer;  // nullopt: refused by a later question, its victims end all the same
    std::vector<Preempted> victims;       // not yet finished
    client::ApiClient::TimerId deadline{};
  };

  void ask_one(const std::string& uid, const api::Pod& pod, Now now);
  void record(const api::Pod& pod, const admission::Answer& answer, Now now);
  void begin_preemption(const api::Pod& pod, const admission::Answer& answer, Now now);
  void end_preemption(Now now);

  AgentContext& context_;
  std::function<admission::NodeSituation()> situation_;
  Workers& workers_;
  DecisionLog& decisions_;
  telemetry::Registry* metrics_;
  std::deque<std::string> waiting_;  // uids
  std::optional<Preemption> preemption_;
};

}  // namespace spillway::agent
