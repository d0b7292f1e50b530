// Forwards requests to one API server and returns its answers as they arrive: calls share a few kept connections, every
// watch has its own. Thread: loop; sockets, TLS and credentials live on a thread of the relay. Bounds: exchanges at a
// time, time to the header of an answer, bytes under way; a client that reads slowly slows the server down.
#pragma once

#include "api/exchange/exchange.h"
#include "runtime/loop.h"
#include "runtime/loop_thread.h"
#include "wire/client/http_client.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

namespace spillway::wire {

class ApiRelay {
 public:
  struct Options {
    HttpEndpoint endpoint;
    HttpClient::Limits limits;
    Duration answer_max = seconds(60);  // for the answer to a call, and to the header of a watch
    std::size_t exchanges_max = 64;
  };

  /// `loop` must outlive the relay.
  ApiRelay(runtime::Loop& loop, Options options);
  ~ApiRelay();
  ApiRelay(const ApiRelay&) = delete;
  ApiRelay& operator=(const ApiRelay&) = delete;

  /// An answer of the server, also a refusal, is passed to `sink` unchanged, except for its headers, of which only the
  /// type is kept. A missing answer is a 503 Status, too many exchanges a 429. `id` is the caller's and names the
  /// exchange.
  void open(std::uint64_t id, api::Request request, HttpClient::Kind kind, std::shared_ptr<api::ResponseSink> sink);
  /// The answer is not wanted any more.
  void abandon(std::uint64_t id);

 private:
  class Exchange;
  struct Far;

  runtime::Loop& loop_;
  Options options_;
  runtime::LoopThread io_;
  std::shared_ptr<Far> far_;
  std::map<std::uint64_t, std::shared_ptr<Exchange>> exchanges_;
};

}  // namespace spillway::wire
