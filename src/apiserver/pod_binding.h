// pods/binding: gives a pod its node, once.
// Thread: loop. Source: spec "API server contract", 8.5, 12.3.
#pragma once

#include "apiserver/core.h"
#include "apiserver/exchange.h"
#include "apiserver/writer.h"

namespace spillway::apiserver {

class PodBinding {
 public:
  PodBinding(Core& core, Writer& writer) : core_(core), writer_(writer) {}

  void create(const ExchangePtr& exchange);

 private:
  Core& core_;
  Writer& writer_;
};

/// Sets the condition of that type in status.conditions; lastTransitionTime moves only with the status.
void set_condition(api::Json& object, std::string_view type, std::string_view status, std::string_view reason,
                   std::string_view message, WallTime now);

/// {kind: Status, status: Success, code: 201}: the answer to bindings and evictions.
api::Json created_status();

}  // namespace spillway::apiserver
