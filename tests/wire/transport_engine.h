// An engine with a transport over sockets, on the server's loop.
#pragma once

#include "wire/transport/https_transport.h"
#include "wire/transport_fixture.h"

#include <cstdint>
#include <memory>
#include <utility>

namespace spillway::wire {

inline HttpEndpoint endpoint_at(std::uint16_t port) {
  HttpEndpoint endpoint;
  endpoint.host = "127.0.0.1";
  endpoint.port = port;
  return endpoint;
}

/// An engine with a transport of its own, on the server's loop.
class Engine {
 public:
  Engine(LoopRoom& loops, HttpsTransport::Options options) : loops_(loops) {
    // Times that the test has not set itself: a busy machine may hold up either side for long.
    const HttpsTransport::Options usual{};
    if (options.answer_max == usual.answer_max) options.answer_max = support::kPatience;
    if (options.limits.connect_max == usual.limits.connect_max) options.limits.connect_max = support::kPatience;
    loops_.run([&] { transport_ = std::make_unique<HttpsTransport>(loops_.loop(), std::move(options)); });
  }

  ~Engine() {
    loops_.run([&] { transport_.reset(); });
  }

  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  void execute(client::ApiCommand command) {
    loops_.run([&] { log.execute(*transport_, std::move(command)); });
  }

  void use_certificate(std::shared_ptr<const TlsContext> tls) {
    loops_.run([&] { transport_->use_certificate(std::move(tls)); });
  }

  void wait(std::size_t events) { log.wait(loops_, events); }

  /// Sends one call, and waits for its answer.
  Result<api::Response> call(api::Request request) {
    const std::size_t before = loops_.run([&] { return log.events.size(); });
    execute(client::SendCall{++last_id_, std::move(request)});
    wait(before + 1);
    return log.done(before).response;
  }

  void disconnect() {
    loops_.run([&] { transport_->disconnect(log); });
  }

  EventLog log;

 private:
  LoopRoom& loops_;
  client::CallId last_id_ = 1000;
  std::unique_ptr<HttpsTransport> transport_;
};

}  // namespace spillway::wire
