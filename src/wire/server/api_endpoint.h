// Feeds an ApiServer on the loop: requests from HTTP servers and in-process transports, and its one timer.
// Thread: loop.
#pragma once

#include "apiserver/server.h"
#include "runtime/loop.h"
#include "wire/server/http_server.h"

#include <memory>
#include <optional>

namespace spillway::wire {

class ApiEndpoint final : public RequestHandler {
 public:
  /// Both references must outlive the endpoint.
  ApiEndpoint(runtime::Loop& loop, apiserver::ApiServer& server) : loop_(loop), server_(server) {}

  ~ApiEndpoint() override;
  ApiEndpoint(const ApiEndpoint&) = delete;
  ApiEndpoint& operator=(const ApiEndpoint&) = delete;

  std::shared_ptr<const apiserver::ReadRequest> read(const Incoming& incoming, ReadBody body) const override;
  Ticket on_request(Incoming incoming, std::shared_ptr<api::ResponseSink> sink) override;
  void on_abandoned(Ticket ticket) override;

  /// Arms the timer for the server's next wake-up. To be called after anything else that made the server step, such as
  /// a completion of its store.
  void rearm();

 private:
  struct Timer {
    runtime::Loop::TimerId id = 0;
    Instant due;
  };

  runtime::Loop& loop_;
  apiserver::ApiServer& server_;
  std::optional<Timer> timer_;
};

}  // namespace spillway::wire
