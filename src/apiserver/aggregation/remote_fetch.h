// Small GET requests of this server's own to aggregated API servers: to see if they answer, and for their discovery
// documents. Thread: loop. Bounds: bytes of an answer, the time that one may take, requests under way.
#pragma once

#include "api/exchange/exchange.h"
#include "apiserver/ports/aggregated_gateway.h"
#include "apiserver/read/core.h"
#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace spillway::apiserver {

class RemoteFetch {
 public:
  static constexpr std::size_t kOpenMax = 64;

  using Done = std::move_only_function<void(Result<api::Response>)>;

  struct Question {
    AggregatedServer server;
    std::string target;  // "/apis/metrics.example.com/v1"
    std::size_t bytes_max = std::size_t{1} << 20U;
    Duration time_max = seconds(5);
    std::string known_tag = {};  // ETag of the answer that is known; a server that still has it answers 304
  };

  /// `gateway` null: no server can be reached.
  RemoteFetch(Core& core, AggregatedGateway* gateway) : core_(core), gateway_(gateway) {}

  ~RemoteFetch();
  RemoteFetch(const RemoteFetch&) = delete;
  RemoteFetch& operator=(const RemoteFetch&) = delete;

  /// False: every get() fails.
  bool reaches() const { return gateway_ != nullptr; }

  /// Calls `done` once, never from inside, with the answer, whatever its code; kServiceUnavailable: there is none;
  /// kTimeout: it took too long; kRequestEntityTooLarge: it is longer than `bytes_max`.
  void get(Question question, Done done);

 private:
  class Sink;
  struct Call;

  void finish(std::uint64_t id, Result<api::Response> result);

  Core& core_;
  AggregatedGateway* gateway_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Call>> calls_;
};

}  // namespace spillway::apiserver
