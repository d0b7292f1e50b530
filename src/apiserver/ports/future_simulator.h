// Port: runs what-if simulations beside the API server. Thread: loop.
#pragma once

#include "api/exchange/exchange.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace spillway::apiserver {

/// Port. It takes nothing of the loop but the reading of what the requester may read. Implemented by apps/.
class FutureSimulator {
 public:
  using Done = std::move_only_function<void(api::Response)>;

  virtual ~FutureSimulator() = default;

  /// `asked`: a POST whose sender, `requester`, may run simulations; its body is the question. `done` is called once,
  /// perhaps from within, with a refusal as well; not after abandon(). `id`: of the request.
  virtual void simulate(std::uint64_t id, const api::Request& asked, std::shared_ptr<const api::UserInfo> requester,
                        Done done) = 0;
  /// Cancels a simulation whose client has gone.
  virtual void abandon(std::uint64_t id) = 0;
};

}  // namespace spillway::apiserver
