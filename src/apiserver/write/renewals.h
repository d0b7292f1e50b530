// The short path of heartbeats: an update or patch of a lease that changes its renewTime alone is spliced into the
// stored bytes (renewal.h). Writes, answers and events are equal to those of the general path.
// Thread: loop. Source: spec "API server contract", 7.6, 8.
#pragma once

#include "apiserver/read/core.h"
#include "apiserver/request/exchange.h"
#include "apiserver/request/request_options.h"
#include "apiserver/write/renewal.h"
#include "apiserver/write/writer.h"
#include "telemetry/metrics.h"

#include <array>
#include <functional>
#include <string>

namespace spillway::apiserver {

class Renewals {
 public:
  /// Turns the short path for heartbeats off, for comparison with the general one.
  enum class Short : std::uint8_t { kNo, kYes };

  Renewals(Core& core, Writer& writer, telemetry::Registry& metrics, Short wanted);

  /// Callbacks that end the exchange. `general`: the request has to take the general path after all.
  struct Ends {
    std::function<void(api::StatusResult<Written>)> done;
    std::function<void()> general;
  };

  /// False: the request is to take the general path; nothing has happened.
  bool take(const Exchange& exchange, RenewalForm form, const WriteOptions& options, Ends ends);

 private:
  RenewalMatch match(const Exchange& exchange, const ObjectPtr& current, RenewalForm form,
                     const std::string& manager) const;

  Core& core_;
  Writer& writer_;
  Short wanted_;
  std::array<telemetry::Counter, 7> counts_;
};

}  // namespace spillway::apiserver
