// Attach: a client that receives a container's output from now on, and gives it input if the container reads any.
// Thread: loop. Bounds: a container is not read while a client is behind, but a client that reads nothing for
// kStalledMax is cut off. Source: spec "Pod lifecycle", 11.1.
#pragma once

#include "host/streams/channel_session.h"
#include "host/streams/container_console.h"

#include <memory>
#include <string_view>

namespace spillway::host {

class AttachSession final : public ChannelSession, public OutputListener {
 public:
  static constexpr Duration kStalledMax = seconds(10);

  AttachSession(runtime::Loop& loop, std::shared_ptr<api::UpgradingSink> sink,
                std::unique_ptr<api::CommandChannels> channels, api::StreamOptions options,
                std::weak_ptr<ContainerConsole> console);

  void on_listening() override;
  void on_output(api::Channel channel, std::string_view data) override;
  void on_container_ended() override;
  bool is_behind() override;

 private:
  void on_ready() override;

  bool holds_program() const override { return false; }

  void on_resize(api::TerminalSize size) override;
  void on_input_closed() override;
  void on_client_gone() override;

  std::weak_ptr<ContainerConsole> console_;
  bool listens_ = false;
  std::optional<Instant> stalled_since_;
  std::size_t stalled_bytes_ = 0;
};

}  // namespace spillway::host
