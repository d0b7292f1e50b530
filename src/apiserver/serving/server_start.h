// The start of a server, from the load of its stores to the first request that it serves. The order of its steps is at
// the top of server_start.cc.
// Thread: loop. Bounds: one start for each server; it waits for the stores without a limit, and health checks say so.
// Source: spec "API server contract", 2.
#pragma once

#include "apiserver/read/core.h"
#include "apiserver/serving/server_options.h"
#include "base/step_list.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace spillway::apiserver {

class Collector;
class Collectors;
class Compaction;
class CustomKinds;
class RemoteDiscovery;
class ServingState;
class StorageReport;
class Writer;

class ServerStart {
 public:
  enum class Step : std::uint8_t {
    kStores,          // load the stores into the cache
    kObservers,       // begin all parts that follow the cache and write nothing
    kCustomKinds,     // wait for the objects of custom kinds
    kPolicies,        // wait until the stored policies and webhooks are compiled
    kCollectors,      // begin the collectors, if this server is the active one of its store
    kClusterObjects,  // create the objects of every cluster
    kServing,         // serve requests
  };

  /// Every reference must outlive the start.
  struct Parts {
    Core& core;
    ServingState& state;
    StorageReport& storage;
    std::span<Collector* const> observers;
    RemoteDiscovery& discovery;
    Compaction& compaction;
    CustomKinds& kinds;
    Writer& writer;
    Collectors& collectors;
  };

  ServerStart(const Parts& parts, const ServerOptions& options);

  /// `ready` is called once; an error means that the server cannot serve.
  void begin(std::move_only_function<void(Outcome)> ready);

 private:
  void advance();
  void resume(Next next);
  Next run(Step step);
  Next load_stores();
  Next begin_observers();
  Next await_custom_kinds();
  Next await_policies();
  Next begin_collectors();
  Next create_objects();
  Next serve();
  Next on_loaded(const Outcome& outcome);
  Next on_created(const Outcome& outcome);
  Next end(Outcome outcome);

  Parts parts_;
  const ServerOptions& options_;
  StepList<Step> steps_;
  std::move_only_function<void(Outcome)> ready_;
};

}  // namespace spillway::apiserver
