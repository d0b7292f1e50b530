// The scheduler's way to extenders: one question posted, one answer, over HTTP or HTTPS with the certificates of the
// configuration. Redirects are answers like any other; no credentials of the scheduler go with a question.
// Thread: loop; the connections live on a thread of their own. Bounds: connections to each, questions that wait, bytes
// of an answer.
#pragma once

#include "api/exchange/exchange.h"
#include "base/error.h"
#include "base/time.h"
#include "runtime/loop.h"
#include "runtime/loop_thread.h"
#include "wire/client/http_client.h"
#include "wire/client/http_endpoint.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace spillway::wire {

class ExtenderCaller {
 public:
  struct Question {
    std::size_t extender = 0;  // index among the endpoints
    std::string verb;          // the path behind the URL: "filter"
    std::string body;          // JSON
    Duration timeout{};        // time after which the answer is dropped
    /// The call has no side effects: it is repeated if a kept connection has ended before any answer.
    bool repeatable = true;
  };

  /// The answer with any status code; kServiceUnavailable: there is none, and why.
  using Done = std::move_only_function<void(Result<api::Response>)>;

  /// `loop` must outlive the caller.
  ExtenderCaller(runtime::Loop& loop, std::vector<HttpEndpoint> extenders, std::size_t answer_bytes_max);
  ~ExtenderCaller();
  ExtenderCaller(const ExtenderCaller&) = delete;
  ExtenderCaller& operator=(const ExtenderCaller&) = delete;

  /// `done` is called once, and never from inside; not at all after the caller is destroyed.
  void call(Question question, Done done);

 private:
  class Room;

  struct Waiting {
    std::map<std::uint64_t, Done> calls;
  };

  runtime::Loop& loop_;
  std::shared_ptr<Waiting> waiting_ = std::make_shared<Waiting>();
  std::uint64_t last_id_ = 0;
  runtime::LoopThread io_;
  std::shared_ptr<Room> room_;  // used on io_ only
};

}  // namespace spillway::wire
