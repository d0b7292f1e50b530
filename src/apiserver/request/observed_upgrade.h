// A connection that leaves HTTP (an upgrade), with an observer of its start and end. Thread: loop.
#pragma once

#include "api/exchange/exchange.h"
#include "apiserver/request/answer_observer.h"

#include <memory>

namespace spillway::apiserver {

/// Wraps `sink` for another writer and reports to `observer`. If the sink cannot leave HTTP, the observer is destroyed
/// at once.
std::shared_ptr<api::ResponseSink> observed(std::shared_ptr<api::ResponseSink> sink,
                                            std::unique_ptr<AnswerObserver> observer);

}  // namespace spillway::apiserver
