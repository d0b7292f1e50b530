// A sink for answers that are made on one loop and received on another: a node of this process answers a client whose
// connection belongs to the API server's loop. Calls cross in their order. Thread: the loop that answers, except where
// said. Bounds: kUnderWayMax bytes on their way to the other loop, which includes the time in which it is held; beyond,
// write() is refused.
#pragma once

#include "api/exchange/exchange.h"
#include "runtime/loop.h"

#include <cstddef>
#include <memory>

namespace spillway::wire {

class CrossingSink {
 public:
  static constexpr std::size_t kUnderWayMax = std::size_t{8} * 1024 * 1024;

  /// A sink for use on `answering` that passes everything on to `inner`, which is used and released on `receiving`
  /// only. It can be upgraded if `inner` can. Thread: `receiving`. `receiving` must outlive the sink, and `answering`
  /// every upgraded connection.
  static std::shared_ptr<api::ResponseSink> make(std::shared_ptr<api::ResponseSink> inner, runtime::Loop& receiving,
                                                 const std::shared_ptr<runtime::Loop>& answering);
};

}  // namespace spillway::wire
