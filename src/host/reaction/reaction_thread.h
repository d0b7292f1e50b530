// The thread that acts on memory pressure: it reads the node's memory the more often, the nearer the next threshold is,
// and executes the present plan the moment a threshold is crossed and a second reading confirms it: journal line,
// signal, report. It decides nothing of its own: victim and urgency come from policy/eviction and agent/fall_rate.
// After start it neither allocates nor frees; plans are passed in and out through two lock-free lists.
// Thread: offer(), retired() and outcome flags from the loop; run() is the thread itself.
// Source: spec "Wake-up sources", 6.
#pragma once

#include "agent/eviction/fall_rate.h"
#include "agent/eviction/memory_brake.h"
#include "agent/eviction/reaction.h"
#include "base/bytes.h"
#include "base/time.h"
#include "base/unique_fd.h"
#include "host/kernel/thread_rank.h"
#include "host/reaction/memory_brake.h"
#include "host/reaction/memory_gauge.h"
#include "host/reaction/memory_release.h"
#include "host/reaction/reaction_target.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace spillway::host {

/// A published plan with everything it takes to carry it out. The loop makes and frees it; in between it belongs to the
/// thread, except for the atomics.
struct ArmedPlan {
  enum State : int { kOpen, kClaimed, kTaken };

  agent::ReactionPlan plan;
  std::vector<std::shared_ptr<const ReactionTarget>> targets;  // target of each candidate; null: the pod has no process
  std::vector<eviction::MemoryStanding> keys;
  std::vector<char> exact;  // per candidate: inactive_file was read
  UniqueFd journal;
  bool watches_pods = false;      // some threshold is about all pods together
  bool needs_everything = false;  // the working set alone does not decide if a threshold is met

  std::atomic<int> state{kOpen};
  std::atomic<bool> escalated{false};
  ArmedPlan* next = nullptr;

  // The outcome, written before the state becomes kTaken.
  std::size_t victim = 0;
  bool emergency = false;
  std::optional<MemoryReading> node;
  std::optional<MemoryReading> pods;
  std::vector<std::optional<Bytes>> container_working_sets;  // the victim's; room for the containers of any candidate
  WallTime at;
  std::atomic<std::int64_t> took_nanos{0};  // once the signal is out
};

class ReactionThread {
 public:
  struct Gauges {
    MemoryGauge node;
    std::optional<MemoryGauge> pods;
    std::optional<RootGauge> root;                 // for a version 2 root: confirms /proc/meminfo
    std::unique_ptr<MemoryBrake> brake = nullptr;  // for all pods; may be null
  };

  /// The source that woke the thread, in epoll's user data: low half the source, high half the descriptor to be
  /// drained.
  enum class Source : std::uint32_t { kControl, kPsi, kMemoryEvents, kUsageThreshold };

  static std::uint64_t tag(Source source, int fd) {
    return (std::uint64_t{static_cast<std::uint32_t>(fd)} << 32) | static_cast<std::uint32_t>(source);
  }

  explicit ReactionThread(Gauges gauges);
  ~ReactionThread();
  ReactionThread(const ReactionThread&) = delete;
  ReactionThread& operator=(const ReactionThread&) = delete;

  /// Descriptors added here (edge-triggered, tagged) shorten the thread's sleep, no more.
  int wakers() const { return epoll_.get(); }

  /// Readable when there is something to report: a plan was executed or escalated, or an observation is worth while.
  /// The report of a plan may wait until the victim is gone.
  int news() const { return news_.get(); }

  bool take_observation_wanted() { return observation_wanted_.exchange(false); }

  /// Offers the next plan; the replaced one is returned through retired().
  void offer(std::unique_ptr<ArmedPlan> plan);

  /// A list of plans the thread is done with; the caller owns them.
  ArmedPlan* retired() { return retired_.exchange(nullptr); }

  std::uint64_t readings() const { return readings_.load(std::memory_order_relaxed); }

  ThreadRank rank() const { return rank_.load(); }

 private:
  enum class Depth { kWatched, kAll };

  struct Seen {
    std::optional<MemoryReading> node;
    std::optional<MemoryReading> pods;
  };

  void run() noexcept;
  void wait(Duration limit) noexcept;
  void adopt() noexcept;
  void retire(ArmedPlan* plan) noexcept;
  Seen read_gauges(Depth depth) noexcept;
  eviction::MemoryEstimator estimator() const noexcept;
  /// The value of a signal by the estimator of the plan; nullopt: it was not read.
  std::optional<Bytes> left(eviction::Signal signal, const Seen& seen) const noexcept;
  bool is_met(const agent::ReactionPlan::Trigger& trigger, const Seen& seen) const noexcept;
  bool act_is_met(const Seen& seen) const noexcept;
  /// Reads everything again, as exactly as can be; nullopt: it was a false alarm.
  std::optional<Seen> confirm() noexcept;
  void consider(const Seen& seen, Instant now) noexcept;
  std::optional<std::size_t> choose() noexcept;
  void act(std::size_t victim, const Seen& seen, Instant since) noexcept;
  bool may_stay_quiet(const Seen& seen, Instant now) const noexcept;
  void follow_up(const Seen& seen, Instant now) noexcept;
  void steer_brake(const Seen& seen, Instant now) noexcept;
  Duration interval(const Seen& seen, Instant now) const noexcept;
  Bytes blind_zone(const Seen& seen) const noexcept;
  void notify() noexcept;

  Gauges gauges_;
  UniqueFd epoll_;
  UniqueFd control_;
  UniqueFd news_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> observation_wanted_{false};
  std::atomic<ArmedPlan*> offered_{nullptr};
  std::atomic<ArmedPlan*> retired_{nullptr};
  std::atomic<std::uint64_t> readings_{0};
  std::atomic<ThreadRank> rank_{ThreadRank::kOrdinary};

  // The thread's own.
  ArmedPlan* current_ = nullptr;
  ArmedPlan* acted_ = nullptr;  // the executed plan, whose victim is dying
  Instant grace_end_;
  Instant acted_at_;
  Instant reported_at_;
  std::optional<Instant> quiet_until_;  // a victim is dying, and needs the processor more than the loop does
  std::uint64_t wake_reached_ = 0;      // bits of the wake triggers that were reached
  agent::BrakeVictim victim_ = agent::BrakeVictim::kSomebody;
  agent::FallRate fall_;
  MemoryRelease release_;
  std::thread thread_;
};

}  // namespace spillway::host
