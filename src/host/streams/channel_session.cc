#include "host/streams/channel_session.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <utility>

namespace spillway::host {
namespace {

constexpr std::size_t kChannelBytesMax = 65'536;          // read from one output in one turn of the loop
constexpr std::size_t kChannelDrainBytesMax = 1'048'576;  // the most that a full pipe can still hold at the end
constexpr Duration kChannelPace = milliseconds(10);

/// write(2) without SIGPIPE.
ssize_t write_quietly(int fd, std::string_view data) {
  sigset_t broken;
  sigset_t before;
  ::sigemptyset(&broken);
  ::sigaddset(&broken, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &broken, &before);
  const ssize_t written = ::write(fd, data.data(), data.size());
  const int error = errno;
  if (written < 0 && error == EPIPE) {
    const timespec now = {};
    while (::sigtimedwait(&broken, nullptr, &now) < 0 && errno == EINTR) {
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return written;
}

}  // namespace

ChannelSession::ChannelSession(runtime::Loop& loop, std::shared_ptr<api::UpgradingSink> sink,
                               std::unique_ptr<api::CommandChannels> channels, api::StreamOptions options)
    : loop_(loop), sink_(std::move(sink)), channels_(std::move(channels)), options_(options) {
  outputs_[1].channel = api::Channel::kErr;
}

ChannelSession::~ChannelSession() {
  end();
}

void ChannelSession::open() {
  active_ = loop_.now().mono;
  arm_idle_timer();
  const api::Readiness readiness = channels_->readiness();
  if (readiness == api::Readiness::kCertain) return begin();
  const bool likely = readiness == api::Readiness::kLikely;
  ready_timer_ = loop_.at(active_ + (likely ? api::kLikelyReadyWait : kReadyMax), [this, likely] {
    const auto self = weak_from_this().lock();
    ready_timer_.reset();
    if (likely) return begin();
    cut();
  });
}

void ChannelSession::begin() {
  if (!sink_ || std::exchange(begun_, true)) return;
  if (ready_timer_) loop_.cancel(*ready_timer_);
  ready_timer_.reset();
  const api::Channel lowest = options_.out   ? api::Channel::kOut
                              : options_.err ? api::Channel::kErr
                                             : api::Channel::kStatus;
  static_cast<void>(sink_->write(std::make_shared<const std::string>(channels_->greeting(lowest))));
  on_ready();
}

void ChannelSession::arm_idle_timer() {
  idle_timer_ = loop_.at(active_ + idle_max(), [this] {
    idle_timer_.reset();
    if (loop_.now().mono - active_ < idle_max()) return arm_idle_timer();
    cut();
  });
}

void ChannelSession::take_input(UniqueFd in) {
  input_taken_ = true;
  in_ = std::move(in);
  write_input();
}

void ChannelSession::take_output(api::Channel channel, UniqueFd from) {
  Output& output = outputs_[channel == api::Channel::kErr ? 1 : 0];
  output.from = std::move(from);
  watch(output);
}

void ChannelSession::watch(Output& output) {
  if (!output.from || std::exchange(output.watched, true)) return;
  loop_.watch_fd(output.from.get(), POLLIN, [this, &output] {
    const auto self = weak_from_this().lock();
    if (!pump(output, kChannelBytesMax)) return close_output(output);
    if (is_full()) pace();
  });
}

/// The client is behind: nothing is read until it has caught up.
void ChannelSession::pace() {
  for (Output& output : outputs_)
    if (output.from && std::exchange(output.watched, false)) loop_.unwatch_fd(output.from.get());
  if (pace_timer_) return;
  pace_timer_ = loop_.at(loop_.now().mono + kChannelPace, [this] {
    pace_timer_.reset();
    if (is_full()) return pace();
    for (Output& output : outputs_) watch(output);
  });
}

bool ChannelSession::pump(Output& output, std::size_t bytes_max) {
  std::array<char, 16'384> chunk;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (std::size_t total = 0; total < bytes_max && output.from;) {
    const ssize_t got = ::read(output.from.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) return false;  // EIO: no process has the terminal open any more
    total += static_cast<std::size_t>(got);
    say(output.channel, {chunk.data(), static_cast<std::size_t>(got)});
  }
  return true;
}

void ChannelSession::close_output(Output& output) {
  if (!output.from) return;
  if (std::exchange(output.watched, false)) loop_.unwatch_fd(output.from.get());
  output.from.reset();
}

void ChannelSession::say(api::Channel channel, std::string_view data) {
  if (!sink_) return;
  active_ = loop_.now().mono;
  const auto sink = sink_;
  if (!sink->write(std::make_shared<const std::string>(channels_->message(channel, data)))) cut();
}

void ChannelSession::finish(const Result<std::int32_t>& exit_code) {
  const auto self = shared_from_this();
  for (Output& output : outputs_) {
    if (output.from) static_cast<void>(pump(output, kChannelDrainBytesMax));
    close_output(output);
  }
  if (!sink_) return end();
  const auto sink = sink_;
  const std::string last = channels_->farewell(exit_code);
  static_cast<void>(sink->write(std::make_shared<const std::string>(last)));
  end();
}

void ChannelSession::on_input(std::string bytes) {
  if (!sink_) return;
  const auto self = shared_from_this();
  active_ = loop_.now().mono;
  unused_ += bytes.size();
  std::string reply;
  const auto inputs = channels_->feed(bytes, reply);
  if (!inputs) return cut();
  if (!reply.empty() && !sink_->write(std::make_shared<const std::string>(std::move(reply)))) return cut();
  if (channels_->readiness() == api::Readiness::kCertain) begin();
  for (const api::ChannelInput& input : *inputs) {
    using Kind = api::ChannelInput::Kind;
    if (input.kind == Kind::kClosed) return cut();
    if (input.kind == Kind::kResize) on_resize(input.size);
    if (input.kind == Kind::kData && (in_ || !input_taken_) && !in_ends_) input_ += input.data;
    if (input.kind == Kind::kEnd) in_ends_ = true;
  }
  write_input();
}

void ChannelSession::write_input() {
  if (!input_taken_) return;
  while (in_ && !input_.empty()) {
    const ssize_t written = write_quietly(in_.get(), input_);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      if (!std::exchange(in_watched_, true)) {
        loop_.watch_fd(in_.get(), POLLOUT, [this] {
          const auto self = weak_from_this().lock();
          write_input();
        });
      }
      return;
    }
    if (written < 0) {  // the program has closed its input
      close_input();
      break;
    }
    input_.erase(0, static_cast<std::size_t>(written));
  }
  if (in_ && std::exchange(in_watched_, false)) loop_.unwatch_fd(in_.get());
  if (!in_) input_.clear();
  if (sink_) sink_->on_input_used(std::exchange(unused_, 0));
  if (in_ends_ && in_) {
    on_input_closed();
    if (!options_.tty) close_input();
  }
}

void ChannelSession::close_input() {
  if (!in_) return;
  if (std::exchange(in_watched_, false)) loop_.unwatch_fd(in_.get());
  in_.reset();
}

void ChannelSession::on_input_end() {
  cut();
}

void ChannelSession::cut() {
  if (!sink_) return;
  const auto self = weak_from_this().lock();
  end();
  on_client_gone();
}

void ChannelSession::end() {
  for (std::optional<runtime::Loop::TimerId>* timer : {&pace_timer_, &idle_timer_, &ready_timer_}) {
    if (*timer) loop_.cancel(**timer);
    timer->reset();
  }
  close_input();
  for (Output& output : outputs_) close_output(output);
  if (const auto sink = std::exchange(sink_, nullptr)) sink->on_end();
}

}  // namespace spillway::host
