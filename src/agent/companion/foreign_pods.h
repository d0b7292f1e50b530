// The pods of the kubelet beside which a companion runs: those that may be evicted, and how. A pod is ended twice, at
// once: its status becomes Failed/Evicted, which is final for the kubelet, so that it starts nothing of it again and
// cleans up; and its processes get SIGTERM and, when the grace is over, SIGKILL from here, so that the memory is freed
// in time. Thread: loop. Invariants: only a pod that was measured is offered for eviction; a mark is written until the
// API server has it or the pod is gone. Bounds: one entry per pod of the node; retries back off to 10 s; a status that
// another client resets is restored kMarksMax times. Source: spec "Node agent", 15.1, 15.4; docs/adr/0007-companion.md.
#pragma once

#include "agent/companion/foreign_storage.h"
#include "agent/companion/pod_cgroup.h"
#include "agent/contract/context.h"
#include "agent/contract/decision_log.h"
#include "agent/contract/evictable_pods.h"
#include "api/object/summary.h"
#include "base/back_off.h"
#include "client/object_cache.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

/// The place of one pod on the machine: its cgroup and directories.
struct PodPlace {
  std::string uid;  // UID as in the API
  api::PodKey pod;
  api::QosClass qos = api::QosClass::kBestEffort;
  std::string cgroup_uid;
  std::vector<NamedContainer> containers;
  std::vector<DiskVolume> volumes = {};

  friend bool operator==(const PodPlace&, const PodPlace&) = default;
};

class ForeignPods final : public EvictablePods {
 public:
  using Ptr = client::ObjectCache<api::Pod>::Ptr;

  /// kShadow: nothing is ended and nothing written; evict() only notifies its listener.
  ForeignPods(AgentContext& context, Consequence consequence) : context_(context), consequence_(consequence) {}

  void on_pod(const Ptr& before, const Ptr& after, Now now);
  /// Pods without an entry were not found on the machine.
  void on_measured(const api::Summary& summary);
  /// No process of its containers is left.
  void on_stopped(const std::string& uid, Now now);

  std::vector<const api::Pod*> active() const override;
  void evict(const eviction::EvictPod& action, Urgency urgency, Now now) override;
  void kill_now(const std::string& uid) override;

  /// While a reason is set, no pod is offered for eviction.
  void set_hold(std::optional<std::string> why) { hold_ = std::move(why); }

  const std::optional<std::string>& hold() const { return hold_; }

  /// An eviction is over: the pod has no process left, is gone, or, in a shadow, was never touched.
  void when_finished(std::function<void(const std::string& uid, Now now)> listener) {
    on_finished_ = std::move(listener);
  }

  void when_evicting(std::function<void(const eviction::EvictPod& action, Now now)> listener) {
    on_evicting_ = std::move(listener);
  }

  /// Null: no such pod.
  const api::Pod* find(const std::string& uid) const;
  /// Every pod that is not terminal, if that has changed since the last call. In namespace/name order.
  std::optional<std::vector<PodPlace>> take_places();

  /// All pods, in namespace/name order.
  std::vector<const api::Pod*> all() const;

  std::size_t marks_waiting() const;

 private:
  struct Entry {
    std::shared_ptr<const api::Pod> pod;
    bool measured = false;
    bool ending = false;                     // the pod's processes are being stopped
    std::optional<eviction::EvictPod> mark;  // the eviction that the status must show, written or about to be
    int marks = 0;
    bool in_flight = false;
    bool waiting_to_retry = false;
    BackOff back_off{milliseconds(100), seconds(10)};
  };

  void write_mark(const std::string& uid, Now now);
  void on_answer(const std::string& uid, const Result<api::Json>& outcome, Now now);
  void finish(Entry& entry, Now now);

  AgentContext& context_;
  Consequence consequence_;
  std::function<void(const std::string&, Now)> on_finished_;
  std::function<void(const eviction::EvictPod&, Now)> on_evicting_;
  std::optional<std::string> hold_;
  std::map<std::string, Entry> entries_;     // by uid
  std::map<api::PodKey, std::string> uids_;  // in the order of the reports
  std::vector<PodPlace> reported_;           // by the last take_places()
  bool changed_ = true;
};

}  // namespace spillway::agent
