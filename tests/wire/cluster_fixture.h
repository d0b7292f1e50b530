// An API server on a loop of its own, over HTTP.
#pragma once

#include "store/memory_store.h"
#include "wire/server/api_endpoint.h"
#include "wire/transport/https_transport.h"
#include "wire/wire_fixture.h"

#include <memory>
#include <utility>

namespace spillway::wire {

/// An API server on a loop, served over HTTP to a user that may do everything.
class Cluster {
 public:
  /// `serving`: all options but the authenticator.
  explicit Cluster(HttpServer::Options serving = {}) {
    Mailbox<bool> ready;
    loops.run([&] {
      store = std::make_unique<store::MemoryStore>(
          [&](std::move_only_function<void()> task) { loops.loop().post(std::move(task)); });
      apiserver::ApiServer::Options options;
      options.seed = 1;
      options.rearm = [this] {
        if (endpoint) endpoint->rearm();
      };
      server = std::make_unique<apiserver::ApiServer>(*store, metrics, telemetry::Log(), options);
      endpoint = std::make_unique<ApiEndpoint>(loops.loop(), *server);
      server->start(loops.loop().now(), [&](const Outcome& outcome) {
        EXPECT_TRUE(outcome) << outcome.error().text();
        ready.put(outcome.has_value());
      });
      endpoint->rearm();
    });
    EXPECT_TRUE(ready.take());
    loops.run([&] {
      serving.metrics = &metrics;
      serving.authenticator = std::make_shared<const Authenticator>(
          Authenticator::Options{.tokens = {}, .anonymous = {"admin", "", {"system:masters", "system:authenticated"}}});
      http = std::make_unique<HttpServer>(loops.loop(), *endpoint, with_patience(std::move(serving)));
      EXPECT_TRUE(http->start());
    });
  }

  ~Cluster() {
    loops.run([&] {
      http.reset();
      server->stop();
      endpoint.reset();
      server.reset();
      store.reset();
    });
  }

  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  std::unique_ptr<client::Transport> connect() {
    HttpEndpoint there;
    there.host = "127.0.0.1";
    there.port = http->port();
    return std::make_unique<HttpsTransport>(loops.loop(), HttpsTransport::Options{.endpoint = there, .limits = {}});
  }

  telemetry::Registry metrics;
  LoopRoom loops;
  std::unique_ptr<store::MemoryStore> store;
  std::unique_ptr<apiserver::ApiServer> server;
  std::unique_ptr<ApiEndpoint> endpoint;
  std::unique_ptr<HttpServer> http;
};

}  // namespace spillway::wire
