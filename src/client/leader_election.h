// Leader election by a Lease: of several processes that may act, one does. The holder renews the lease; the others
// watch it by their own clocks and take it when it has not changed for the duration in it.
//
// Fencing: a leader may act until `renew_deadline` after the *sending* of its last successful renewal, and the others
// wait `lease_duration` from when they saw that renewal, which is later. So there is always lease_duration -
// renew_deadline between the last act of one leader and the first of the next, for requests that are still on their
// way. Callers check may_act() before every step (FencedEngine does), so that a process that was stopped and continued
// does nothing.
// Thread: loop. Bounds: one call in flight, each ends within half of renew_deadline.
// Source: Kubernetes docs, "Leases", leader election; client-go's lease/renew/retry semantics and jitter factor 1.2.
#pragma once

#include "api/json/json.h"
#include "base/error.h"
#include "base/rng.h"
#include "client/api_client.h"
#include "client/engine.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::client {

/// Decides if a lease is held, by the time when its content was last seen to change.
class LeaseObservation {
 public:
  /// The lease as read last.
  void see(const api::Json& lease, Instant now);

  /// The identity of the holder; empty: the lease is free.
  const std::string& holder() const { return holder_; }

  /// The lease has a holder, and its time has not run out since it last changed. `fallback`: used if the lease names no
  /// duration.
  bool is_held(Instant now, Duration fallback) const;

  /// True if the holder renewed it between two reads.
  bool moved() const { return moves_ > 1; }

 private:
  std::string content_;
  std::string holder_;
  std::optional<Duration> duration_;
  Instant changed_{};
  int moves_ = 0;  // reads that differed from the one before; the first counts
};

class LeaderElection final : public ApiEngine {
 public:
  struct Options {
    std::string ns = "kube-system";
    std::string name = "spillway-controller";
    std::string identity;  // unique per process
    Duration lease_duration = seconds(15);
    Duration renew_deadline = seconds(10);
    Duration retry_period = seconds(2);
    /// Annotations that the leader keeps on the lease: for example its address.
    std::map<std::string, std::string> annotations;
  };

  struct Listener {
    /// Called each time this process begins to lead.
    std::function<void(Now)> on_elected;
    /// Called each time its term ends: engines that act must be destroyed, a later term begins anew. The elector
    /// continues to take part. `why`: one line.
    std::function<void(const std::string& why, Now)> on_lost;
    /// Called when another process leads.
    std::function<void(const std::string& identity, Now)> on_leader_seen;
    /// The lease cannot be read: called once for each code in a row; it is read again. May be empty.
    std::function<void(const Error& error, Now)> on_unreadable;
  };

  /// kInvalid: lease_duration > renew_deadline > 1.2 * retry_period must hold, and whole seconds of the first.
  static Outcome check(const Options& options);

  LeaderElection(Options options, Rng rng, Listener listener);

  /// True if this process leads, and it is still too early for any other.
  bool may_act(Now now) const { return leads_ && now.mono < renewed_ + options_.renew_deadline; }

  bool leads() const { return leads_; }

  /// The number of times it was elected so far. An engine that acts belongs to one term.
  std::uint64_t term() const { return term_; }

  /// Gives the lease back if it is held, so that the next one need not wait; call it when nothing acts any more. A
  /// write that is under way is awaited, because the lease has the version that it leaves. `done` runs once, when the
  /// server has answered or half of renew_deadline has passed.
  void release(std::function<void()> done, Now now);

  // ApiEngine
  std::string_view name() const override { return "leader-election"; }

  void start(Now now) override;
  void on_api_event(const ApiEvent& event, Now now) override;
  void on_wakeup(Now now) override;

  std::optional<Instant> next_wakeup() const override { return client_.next_wakeup(); }

  std::vector<ApiCommand> take_api_commands() override { return client_.take_api_commands(); }

 private:
  void attempt(Now now);
  void on_lease_read(const Result<api::Json>& outcome, Now now);
  void on_lease(const api::Json& lease, Now now);
  void create(Now now);
  void take(const api::Json& lease, Now now);
  void on_taken(const Result<api::Json>& outcome, Now now);
  void again(Now now);
  void check_deadline(Now now);
  void arm_deadline();
  void lose(const std::string& why, Now now);
  void read_back();
  void on_read_back(const Result<api::Json>& outcome, Now now);
  void give_back(const api::Json& lease, Now now);
  void end_release();
  api::Json spec(const api::Json* before, Now now) const;
  void annotate(api::Json& lease) const;

  Options options_;
  Rng rng_;
  Listener listener_;
  // The code that was last passed to on_unreadable; nullopt: the lease was read since.
  std::optional<ErrorCode> unreadable_;
  ApiClient client_;
  LeaseObservation observed_;
  std::string leader_seen_;
  std::optional<api::Json> latest_;  // as our last write left it
  Instant sent_{};                   // when the attempt under way was sent
  Instant renewed_{};                // sending of the last attempt that succeeded
  std::optional<ApiClient::TimerId> deadline_;
  std::uint64_t term_ = 0;
  bool leads_ = false;
  bool writing_ = false;            // a write of the lease is under way
  bool over_ = false;               // released
  std::function<void()> released_;  // argument of release(), until it has run
};

/// Wraps an engine: it gets no event and gives no command unless `may_act`. The first refusal is final: a wrapper
/// belongs to one term of its leader.
class FencedEngine final : public ApiEngine {
 public:
  FencedEngine(std::unique_ptr<ApiEngine> inner, std::function<bool(Now)> may_act)
      : inner_(std::move(inner)), may_act_(std::move(may_act)) {}

  std::string_view name() const override { return inner_->name(); }

  void start(Now now) override;
  void on_api_event(const ApiEvent& event, Now now) override;
  void on_wakeup(Now now) override;
  std::optional<Instant> next_wakeup() const override;
  std::vector<ApiCommand> take_api_commands() override;

 private:
  bool open(Now now);

  std::unique_ptr<ApiEngine> inner_;
  std::function<bool(Now)> may_act_;
  bool closed_ = false;
};

/// Reads the lease of another program repeatedly, and ends this program if that one is alive.
class LeaseGuard final : public ApiEngine {
 public:
  struct Options {
    std::string ns = "kube-system";
    std::string name = "kube-controller-manager";
    Duration period = seconds(2);
    Duration lease_duration = seconds(15);  // used where the lease names none
  };

  struct Listener {
    std::function<void(Now)> on_free;  // called once, when the lease has no holder
    std::function<void(const std::string& holder, Now)> on_held;
  };

  LeaseGuard(Options options, Rng rng, Listener listener);

  std::string_view name() const override { return "lease-guard"; }

  void start(Now now) override;

  void on_api_event(const ApiEvent& event, Now now) override { client_.on_api_event(event, now); }

  void on_wakeup(Now now) override { client_.on_wakeup(now); }

  std::optional<Instant> next_wakeup() const override { return client_.next_wakeup(); }

  std::vector<ApiCommand> take_api_commands() override { return client_.take_api_commands(); }

 private:
  void read_lease(Now now);
  void on_lease(const Result<api::Json>& lease, Now now);

  Options options_;
  Listener listener_;
  ApiClient client_;
  LeaseObservation observed_;
  bool reported_free_ = false;
};

}  // namespace spillway::client
