// A client that attaches to a container, as the server of its connection sees it.
#pragma once

#include "api/stream/websocket.h"
#include "host/streams/attach_session.h"
#include "runtime/loop.h"

#include <memory>
#include <string>
#include <string_view>

namespace spillway::host {

class AttachClient {
 public:
  AttachClient(runtime::Loop& loop, const std::shared_ptr<ContainerConsole>& console,
               Duration idle_max = StreamSession::kIdleMax)
      : session_(std::make_shared<AttachSession>(loop, sink_,
                                                 std::make_unique<api::WebSocketChannels>("v5.channel.k8s.io"),
                                                 api::StreamOptions{.in = true, .out = true, .err = true}, console)) {
    session_->set_idle_max(idle_max);
    session_->open();
  }

  ~AttachClient() { session_->cut(); }

  AttachClient(const AttachClient&) = delete;
  AttachClient& operator=(const AttachClient&) = delete;

  void says(std::string_view text) {
    // Masked with zeros, which change nothing.
    std::string frame = {'\x82', static_cast<char>(0x80 | (text.size() + 1)), '\0', '\0', '\0', '\0', '\0'};
    session_->on_input(frame.append(text));
  }

  bool over() const { return session_->over(); }

  /// All bytes that the client received, with the frames.
  const std::string& received() const { return sink_->received; }

 private:
  struct Sink final : api::UpgradingSink {
    std::string received;

    void on_response(api::Response) override {}

    void on_stream(api::Response) override {}

    void on_end() override {}

    void on_upgrade(api::Response, std::shared_ptr<api::UpgradedInput>) override {}

    void on_input_used(std::size_t) override {}

    std::size_t waiting_bytes() const override { return 0; }

    bool write(std::shared_ptr<const std::string> chunk) override {
      received += *chunk;
      return true;
    }
  };

  std::shared_ptr<Sink> sink_ = std::make_shared<Sink>();
  std::shared_ptr<AttachSession> session_;
};

}  // namespace spillway::host
