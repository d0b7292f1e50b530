// Forwards requests of the API server to other servers, each on a connection of its own, and their answers to a sink,
// as they arrive. Thread: loop; sockets are on a thread of its own, begun with the first request. Bounds: exchanges at
// a time, time to connect and to the header of the answer; a client that reads slowly slows the server down.
#pragma once

#include "api/exchange/exchange.h"
#include "runtime/loop.h"
#include "runtime/loop_thread.h"
#include "wire/client/http_client.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace spillway::wire {

class Relays {
 public:
  struct Bounds {
    HttpClient::Limits limits;
    Duration answer_max = seconds(30);  // to the header of the answer
    std::size_t exchanges_max = 256;
  };

  /// The answers that are forwarded as they arrive: successes, while up to 1 MiB of a failure is held and forwarded
  /// whole; or all answers that have a body. With kEverything, headers of the connection are left to the sink.
  enum class Passing { kSuccesses, kEverything };

  /// `loop` must outlive the relays. `thread_name`: at most 15 characters.
  Relays(runtime::Loop& loop, std::string thread_name, const Bounds& bounds, Passing passing);
  ~Relays();
  Relays(const Relays&) = delete;
  Relays& operator=(const Relays&) = delete;

  /// True if no more exchanges can be opened: the caller refuses the request.
  bool full() const { return open_.size() >= bounds_.exchanges_max; }

  /// The answer is passed to `sink`; one that ends too early is cut (api::PacedSink::on_cut). A missing answer is a 503
  /// Status that begins with `problem`. full() must be false.
  std::uint64_t open(HttpEndpoint endpoint, api::Request request, std::string problem,
                     std::shared_ptr<api::ResponseSink> sink);
  /// Ends an exchange: its sink is not called again. No effect if it has ended.
  void cancel(std::uint64_t id);

 private:
  class Relay;

  runtime::Loop& loop_;
  const std::string thread_name_;
  const Bounds bounds_;
  const Passing passing_;
  std::optional<runtime::LoopThread> io_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Relay>> open_;
};

}  // namespace spillway::wire
