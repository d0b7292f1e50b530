// The API server's connections to admission webhooks: HTTPS, verified by each configuration, without any credentials.
// Redirects are answers like any other. Thread: loop; the connections are on a thread of their own. Bounds: webhooks
// whose connections are kept, connections to each, bytes of an answer and of all answers under way.
#pragma once

#include "apiserver/ports/webhook_caller.h"
#include "runtime/loop.h"
#include "runtime/loop_thread.h"
#include "wire/client/http_client.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

namespace spillway::wire {

class HttpsWebhookCaller final : public apiserver::WebhookCaller {
 public:
  struct Options {
    HttpClient::Limits limits{.connections_max = 32,
                              .waiting_max = 256,
                              .body_bytes_max = std::size_t{4} << 20U,
                              .connect_max = seconds(10),
                              .idle_max = seconds(30)};
    // addresses of webhooks, each with its certificate authority
    std::size_t clients_max = 64;
    std::size_t answers_bytes_max = std::size_t{64} << 20U;  // for all answers that are being read
  };

  /// `loop` must outlive the caller.
  HttpsWebhookCaller(runtime::Loop& loop, Options options);
  ~HttpsWebhookCaller() override;
  HttpsWebhookCaller(const HttpsWebhookCaller&) = delete;
  HttpsWebhookCaller& operator=(const HttpsWebhookCaller&) = delete;

  /// The port of this API server: webhooks at this port of this machine are refused.
  void set_own_port(std::uint16_t port);

  void call(std::uint64_t id, apiserver::WebhookCall call, Done done) override;
  void cancel(std::uint64_t id) override;

 private:
  class Room;

  struct Waiting {
    std::map<std::uint64_t, Done> calls;
  };

  runtime::Loop& loop_;
  std::shared_ptr<Waiting> waiting_ = std::make_shared<Waiting>();
  runtime::LoopThread io_;
  std::shared_ptr<Room> room_;  // used on io_ only
};

}  // namespace spillway::wire
