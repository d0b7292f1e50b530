// Carries an engine's calls and watches to an API server over HTTP or HTTPS; connection_plan.h chooses the connection
// of each. Sockets, TLS and parsing, of protobuf up to documents, are on a thread of the transport; events are posted
// to the engines' loop. A watch whose events are not handled as fast as they arrive is no longer read, so that the
// server's bound on slow watchers acts. Thread: loop.
#pragma once

#include "client/engine.h"
#include "runtime/loop.h"
#include "runtime/loop_thread.h"
#include "wire/client/http_client.h"
#include "wire/transport/answer_decoder.h"
#include "wire/transport/open_calls.h"

#include <cstdint>
#include <memory>

namespace spillway::wire {

class HttpsTransport final : public client::Transport {
 public:
  struct Options {
    HttpEndpoint endpoint;
    HttpClient::Limits limits;
    /// The bound of a call, unless its target has a shorter one ("timeout=10s"); of the header of a watch.
    Duration answer_max = seconds(30);
    /// Requests answers in protobuf; JSON is accepted as well.
    bool protobuf = true;
  };

  /// `loop` must outlive the transport.
  HttpsTransport(runtime::Loop& loop, Options options);
  ~HttpsTransport() override;
  HttpsTransport(const HttpsTransport&) = delete;
  HttpsTransport& operator=(const HttpsTransport&) = delete;

  /// Changes the certificate like HttpClient::use_certificate(), from one of the next turns on.
  void use_certificate(std::shared_ptr<const TlsContext> tls);

  void execute(client::ApiCommand command, Receiver& receiver) override;
  void disconnect(Receiver& receiver) override;

 private:
  class CallListener;
  class WatchListener;

  void start(const OpenCalls::EntryPtr& entry, api::Request request, HttpClient::Kind kind,
             std::shared_ptr<HttpClient::Listener> listener);
  void cancel(const OpenCalls::EntryPtr& entry);

  Duration answer_max_;
  std::shared_ptr<DecodingWish> decoding_;
  std::uint64_t last_work_ = 0;
  std::shared_ptr<OpenCalls> calls_;
  runtime::LoopThread io_;
  std::shared_ptr<HttpClient> client_;  // used on io_ only
};

}  // namespace spillway::wire
