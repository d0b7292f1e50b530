// Brings the API server's copy of each pod's status to what the agent wants it to be: one patch in flight per pod, the
// latest status wins, failures are retried. A status that another client changed is written again.
//
// Pods that an earlier process of this node has reported on: what it sent may arrive after this one has read them. For
// kPredecessorsMax their statuses are written only over what was read, so that nothing newer is overwritten unseen.
// Thread: loop. Bounds: one entry per pod; retries back off to 10 s and end when the object is gone. Source: spec "Node
// agent", 15.3.
#pragma once

#include "agent/contract/context.h"
#include "api/json/json.h"
#include "api/object/pod.h"
#include "base/back_off.h"
#include "base/time.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace spillway::agent {

class PodStatusWriter {
 public:
  static constexpr Duration kPredecessorsMax = seconds(30);

  /// `on_written`: the API server has the wanted status of this uid. Called inside a step.
  PodStatusWriter(AgentContext& context, std::function<void(const std::string& uid, Now now)> on_written);

  /// The API server's copy of the pod `uid`, as watched; of a static pod it is the mirror, which has another uid.
  void observe(const std::string& uid, const api::Pod& copy);
  /// Marks that the informer has no copy: the wanted status waits for one.
  void lose(const std::string& uid);
  void want(const std::string& uid, const api::PodStatus& status, Now now);
  /// True if nothing waits to be written.
  bool is_written(const std::string& uid) const;
  void forget(const std::string& uid);

  /// State for people and /debug/spillway: no contract.
  api::Json state() const;

 private:
  struct Entry {
    std::string path;
    std::string copy_uid;  // empty: the API server has no copy
    api::PodStatus reported;
    api::PodStatus wanted;
    bool has_wanted = false;
    bool inherited = false;     // a status had already been reported when the pod was first seen
    std::uint64_t version = 0;  // resourceVersion of `reported`
    bool in_flight = false;
    bool waiting_to_retry = false;
    BackOff back_off{milliseconds(500), seconds(10)};
  };

  void write(const std::string& uid, Now now);
  void on_answer(const std::string& uid, const std::string& copy_uid, const api::PodStatus& sent,
                 const Result<api::Json>& outcome, Now now);

  AgentContext& context_;
  std::function<void(const std::string&, Now)> on_written_;
  std::map<std::string, Entry> entries_;
  std::optional<Instant> began_;
};

}  // namespace spillway::agent
