// A connection that leaves HTTP, with somebody who is told when it does and when it ends.
// Thread: loop.
#pragma once

#include "api/exchange/exchange.h"
#include "apiserver/request/answer_observer.h"

#include <memory>

namespace spillway::apiserver {

/// `sink` for somebody else to write to, and `observer` told of it. Of a sink that cannot leave HTTP the observer is
/// let go at once.
std::shared_ptr<api::ResponseSink> observed(std::shared_ptr<api::ResponseSink> sink,
                                            std::unique_ptr<AnswerObserver> observer);

}  // namespace spillway::apiserver
