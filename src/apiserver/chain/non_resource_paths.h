// Dispatches an authorized request that is for no resource: pages of the server, of its parts and of its process, and
// what-if simulations. Thread: loop. Bounds: a page is made in slices where it grows with the cluster; the simulator
// limits simulations. Source: spec "API server contract", 6.
#pragma once

#include "apiserver/read/core.h"
#include "apiserver/request/exchange.h"
#include "apiserver/serving/server_options.h"

namespace spillway::apiserver {

class FlowControl;
class Pages;
class Reader;
class ServerHealth;
class SliceQueue;
class WatchHub;

class NonResourcePaths {
 public:
  /// Every reference must outlive the paths.
  struct Parts {
    Core& core;
    Reader& reader;
    WatchHub& hub;
    SliceQueue& slices;
    Pages& pages;
    FlowControl& flows;
    const ServerHealth& health;
  };

  NonResourcePaths(const Parts& parts, const ServerOptions& options) : parts_(parts), options_(options) {}

  /// Answers the exchange, now or later; with 404 if the path is unknown. Its user may.
  void perform(const ExchangePtr& exchange);

 private:
  bool answer_own_page(const ExchangePtr& exchange);
  bool answer_page_of_process(Exchange& exchange);
  bool begin_slow_page(const ExchangePtr& exchange);
  void show_memory(const ExchangePtr& exchange);
  void simulate(const ExchangePtr& exchange);

  Parts parts_;
  const ServerOptions& options_;
};

}  // namespace spillway::apiserver
