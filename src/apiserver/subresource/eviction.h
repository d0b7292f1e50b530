// Requests to pods/eviction: parsed here, and executed by a PodEviction. Thread: loop. Source: spec "API server
// contract", 13.1-13.4.
#pragma once

#include "apiserver/read/core.h"
#include "apiserver/request/exchange.h"
#include "apiserver/subresource/pod_eviction.h"
#include "apiserver/write/remover.h"
#include "apiserver/write/writer.h"

namespace spillway::apiserver {

class EvictionPath {
 public:
  EvictionPath(Core& core, Writer& writer, Remover& remover) : tools_{core, BudgetCounter(core), writer, remover} {}

  void create(const ExchangePtr& exchange);

 private:
  EvictionTools tools_;
};

}  // namespace spillway::apiserver
