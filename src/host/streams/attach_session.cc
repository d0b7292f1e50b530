#include "host/streams/attach_session.h"

#include <utility>

namespace spillway::host {

AttachSession::AttachSession(runtime::Loop& loop, std::shared_ptr<api::UpgradingSink> sink,
                             std::unique_ptr<api::CommandChannels> channels, api::StreamOptions options,
                             std::weak_ptr<ContainerConsole> console)
    : ChannelSession(loop, std::move(sink), std::move(channels), options), console_(std::move(console)) {}

void AttachSession::on_ready() {
  const auto console = console_.lock();
  if (console == nullptr) return finish(0);
  console->listen(std::static_pointer_cast<AttachSession>(shared_from_this()));
}

/// The container's answer could be lost if input were sent before.
void AttachSession::on_listening() {
  if (!is_open() || std::exchange(listens_, true)) return;
  const auto console = console_.lock();
  take_input(console && options().in ? console->share_input() : UniqueFd());
}

void AttachSession::on_output(api::Channel channel, std::string_view data) {
  if (channel == api::Channel::kOut ? !options().out : !options().err) return;
  say(channel, data);
}

void AttachSession::on_container_ended() {
  finish(0);
}

bool AttachSession::is_behind() {
  if (!is_full()) {
    stalled_since_.reset();
    return false;
  }
  const Instant now = loop().now().mono;
  if (!stalled_since_ || waiting() < stalled_bytes_) {
    stalled_since_ = now;
    stalled_bytes_ = waiting();
  }
  if (now - *stalled_since_ < kStalledMax) return true;
  cut();
  return false;
}

void AttachSession::on_resize(api::TerminalSize size) {
  if (const auto console = console_.lock()) console->resize(size);
}

void AttachSession::on_input_closed() {
  if (const auto console = console_.lock()) console->on_input_given();
}

void AttachSession::on_client_gone() {
  if (options().in) on_input_closed();
}

}  // namespace spillway::host
