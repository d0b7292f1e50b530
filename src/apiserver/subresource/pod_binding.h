// pods/binding: gives a pod its node, once.
// Thread: loop. Source: spec "API server contract", 8.5, 12.3.
#pragma once

#include "apiserver/read/core.h"
#include "apiserver/request/exchange.h"
#include "apiserver/write/writer.h"

namespace spillway::apiserver {

class PodBinding {
 public:
  PodBinding(Core& core, Writer& writer) : core_(core), writer_(writer) {}

  void create(const ExchangePtr& exchange);

 private:
  Core& core_;
  Writer& writer_;
};

}  // namespace spillway::apiserver
