// Runs the probes of the node's containers in their periods, and keeps their results. One run per container and kind of
// probe.
// Thread: loop. Bounds: probes of the pods that are there; one call of each at a time. Source: Kubernetes docs,
// "Liveness, Readiness and Startup Probes"; spec "Pod lifecycle", 1.4, 9.1-9.5, 13.1.
#pragma once

#include "agent/contract/context.h"
#include "agent/probes/handler_calls.h"
#include "api/object/pod.h"
#include "api/object/probe.h"
#include "base/rng.h"
#include "client/api_client.h"
#include "policy/containers/probe_run.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

namespace spillway::agent {

/// The pods as probes see them.
class ProbedPods {
 public:
  virtual ~ProbedPods() = default;
  /// nullopt: there is no such container.
  virtual std::optional<containers::ProbedContainer> probed_container(const std::string& uid,
                                                                      const std::string& container, Now now) const = 0;
  virtual HandlerPlace place_of(const std::string& uid, const std::string& container) const = 0;
  virtual void on_probe_event(const std::string& uid, const std::string& container, const containers::ProbeEvent& event,
                              Now now) = 0;
  /// The probe's result has changed.
  virtual void on_probe_result(const std::string& uid, containers::ProbeKind kind, Now now) = 0;
};

class Prober {
 public:
  Prober(AgentContext& context, Rng rng, HandlerCalls& calls, ProbedPods& pods)
      : context_(context), rng_(rng), calls_(calls), pods_(pods) {}

  /// Sets the start of the agent: containers older than that are first probed at a random time within their period.
  void start(Now now) { started_ = now.mono; }

  /// Adds the probes of the pod's containers, sidecars included. Does nothing for a known pod.
  void add(const api::Pod& pod, Now now);
  void remove(const std::string& uid);
  /// The container has just started: its readiness is probed at once.
  void wake(const std::string& uid, const std::string& container, Now now);

  struct Said {
    bool started = false;
    bool ready = false;
  };

  /// Takes over an earlier agent's probe results for the instance `id`, which runs on. Existing results take
  /// precedence.
  void resume(const std::string& uid, const std::string& container, const std::string& id, Said said);

  /// `id`: of the instance that is meant.
  containers::ProbeVerdicts verdicts(const std::string& uid, const std::string& container, std::string_view id) const;
  /// nullopt: no result yet, or no such probe.
  std::optional<containers::ProbeResult> result(const std::string& uid, const std::string& container,
                                                containers::ProbeKind kind, std::string_view id) const;

 private:
  using Key = std::tuple<std::string, std::string, containers::ProbeKind>;  // uid, container

  struct Worker {
    containers::ProbeRun run;
    api::Probe probe;
    std::optional<client::ApiClient::TimerId> timer;
    int tries = 0;  // tries of the call under way; 0: none is
  };

  void add(const Key& key, const api::Json& document, Now now);
  void arm(const Key& key, Worker& worker, Instant due);
  void run_once(Key key, Now now);
  void call(const Key& key, Worker& worker, Now now);
  void on_done(Key key, const containers::ProbeVerdict& verdict, Now now);

  AgentContext& context_;
  Rng rng_;
  HandlerCalls& calls_;
  ProbedPods& pods_;
  Instant started_{};
  std::map<Key, Worker> workers_;
};

}  // namespace spillway::agent
