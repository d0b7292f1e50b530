// Takes part in an election by a Lease for as long as the process lasts, and gives the lease back when it stops, after
// everything that acts. What acts belongs to one term: it is begun when the process is elected, fenced by may_act() and
// ended when the lease is lost. Thread: loop.
#pragma once

#include "apps/process/process.h"
#include "base/rng.h"
#include "client/engine.h"
#include "client/leader_election.h"
#include "runtime/engine_driver.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace spillway::apps {

class ElectionPart final : public Part {
 public:
  struct Callbacks {
    /// Called when the process leads. Not called if the term has ended by then.
    std::function<void(std::uint64_t term)> begin;
    /// Called when this process no longer leads: ends the engines of the term. `why`: one line.
    std::function<void(const std::string& why)> end;
    /// Called when another process has become the leader.
    std::function<void(const std::string& leader)> standby;
  };

  /// `options.identity` is generated here.
  ElectionPart(Process& process, client::LeaderElection::Options options, const Rng& rng,
               std::unique_ptr<client::Transport> transport, Callbacks callbacks);

  void stop(runtime::Loop::Task done) override;

  bool may_act(std::uint64_t term, Now now) const { return engine_->term() == term && engine_->may_act(now); }

  /// The engine does nothing once the term is over.
  std::unique_ptr<client::ApiEngine> fenced(std::unique_ptr<client::ApiEngine> engine, std::uint64_t term) const;

 private:
  client::LeaderElection::Listener listener();

  Process& process_;
  Callbacks callbacks_;
  std::string identity_;
  std::string lease_;
  telemetry::Gauge master_;
  std::unique_ptr<client::LeaderElection> engine_;
  std::unique_ptr<client::Transport> transport_;
  runtime::EngineDriver driver_;
};

}  // namespace spillway::apps
