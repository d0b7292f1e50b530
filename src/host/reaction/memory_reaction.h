// The port between the engine's plans and the thread that carries them out: arms the plans that the engine publishes,
// withdraws them, and reports the thread's acts to the engine, before any event that they cause. Owns the thread and
// the kernel's wakers. Thread: loop. Source: agent/eviction/reaction.h; spec "Wake-up sources", 6.
#pragma once

#include "agent/contract/ports.h"
#include "agent/eviction/reaction.h"
#include "base/alive.h"
#include "base/error.h"
#include "host/cgroup/node_slice.h"
#include "host/files/journal_file.h"
#include "host/reaction/pressure_watch.h"
#include "host/reaction/reaction_thread.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace spillway::host {

class MemoryReaction final : public agent::Reaction {
 public:
  struct Links {
    agent::Host::Receiver& receiver;
    /// The running processes of a pod; null: the runtime does not have the pod.
    std::function<std::shared_ptr<const ReactionTarget>(const std::string& uid)> find_target;
    const JournalFile* journal = nullptr;  // may be null
    eviction::MemoryWatch memory_watch = {};
  };

  /// Errors: the node's memory cannot be read, or not as the estimator needs it. An impossible brake is reported in the
  /// log.
  static Result<std::unique_ptr<MemoryReaction>> create(runtime::Loop& loop, const NodeSlice& slice, Links links,
                                                        telemetry::Log log);
  ~MemoryReaction() override;
  MemoryReaction(const MemoryReaction&) = delete;
  MemoryReaction& operator=(const MemoryReaction&) = delete;

  void publish(agent::ReactionPlan plan) override;
  bool claim() override;

  /// Containers were added or removed: the plan gets their descriptors.
  void refresh_targets();

  /// Reports the thread's acts so far to the engine. Call it before any other event of the machine is delivered.
  void report();

  const PressureWatch::Sources& sources() const { return watch_->sources(); }

  std::uint64_t readings() const { return thread_->readings(); }

 private:
  MemoryReaction(runtime::Loop& loop, Links links, telemetry::Log log);

  void on_news();
  void offer(agent::ReactionPlan plan);
  void free_retired();
  bool pods_have_less() const;
  void emit(agent::HostEvent event);

  runtime::Loop& loop_;
  Links links_;
  telemetry::Log log_;
  Bytes node_memory_;
  std::optional<MemoryGauge> pods_;  // for the loop
  std::unique_ptr<PressureWatch> watch_;
  std::unique_ptr<ReactionThread> thread_;
  ArmedPlan* out_ = nullptr;    // the newest plan; the thread's until it is retired
  ArmedPlan* acted_ = nullptr;  // the executed plan, whose victim may still lose its grace
  bool reported_ = false;       // the result of `out_` was reported
  bool escalation_reported_ = false;
  std::optional<agent::ReactionPlan> last_;  // the last published plan, from which the next one is armed
  bool refresh_pending_ = false;
  Alive alive_;
};

}  // namespace spillway::host
