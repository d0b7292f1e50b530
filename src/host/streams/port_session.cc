#include "host/streams/port_session.h"

#include "base/file.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

constexpr std::size_t kPortBytesMax = 65'536;  // read from one connection in one turn of the loop
constexpr Duration kPortPaceInterval = milliseconds(10);

}  // namespace

PortSession::PortSession(runtime::Loop& loop, std::shared_ptr<api::UpgradingSink> sink,
                         api::PortStreams::Carrier carrier, std::string pod, Dial dial,
                         std::shared_ptr<std::size_t> forwards)
    : loop_(loop),
      sink_(std::move(sink)),
      streams_(carrier),
      pod_(std::move(pod)),
      dial_(std::move(dial)),
      open_(std::move(forwards)) {}

PortSession::~PortSession() {
  cut();
}

void PortSession::open() {
  active_ = loop_.now().mono;
  arm_idle_timer();
}

void PortSession::arm_idle_timer() {
  idle_timer_ = loop_.at(active_ + idle_max(), [this] {
    idle_timer_.reset();
    if (loop_.now().mono - active_ < idle_max()) return arm_idle_timer();
    const auto self = shared_from_this();
    cut();
  });
}

void PortSession::on_input(std::string bytes) {
  if (!sink_) return;
  const auto self = shared_from_this();
  active_ = loop_.now().mono;
  unused_ += bytes.size();
  std::string reply;
  auto events = streams_.feed(bytes, active_, reply);
  send(std::move(reply));
  if (!events) return cut();
  for (api::PortEvent& event : *events) take(std::move(event));
  report_used();
}

void PortSession::take(api::PortEvent event) {
  using Kind = api::PortEvent::Kind;
  if (event.kind == Kind::kOpened) return begin(event.pair, event.port);
  const auto found = forwards_.find(event.pair);
  if (found == forwards_.end()) return;
  Forward& forward = found->second;
  if (event.kind == Kind::kReset) return close(event.pair, {});
  if (event.kind == Kind::kData && !forward.client_ended) forward.to_port += event.data;
  if (event.kind == Kind::kEnd) forward.client_ended = true;
  if (forward.connected && write_port(event.pair, forward)) watch(event.pair, forward);
}

void PortSession::begin(Pair pair, std::uint16_t port) {
  if (*open_ >= kForwardsMax) return fail(pair, port, "this node forwards too many connections");
  ++*open_;
  forwards_[pair].port = port;
  dial_(port, [weak = weak_from_this(), pair](Result<UniqueFd> socket) {
    if (const auto self = weak.lock()) self->on_socket(pair, std::move(socket));
  });
}

void PortSession::on_socket(Pair pair, Result<UniqueFd> socket) {
  const auto found = forwards_.find(pair);
  if (found == forwards_.end()) return;  // the client has closed the stream meanwhile
  if (!socket) {
    fail(pair, found->second.port, socket.error().text());
    return report_used();
  }
  found->second.socket = *std::move(socket);
  watch(pair, found->second);
}

void PortSession::watch(Pair pair, Forward& forward) {
  short wanted = 0;
  if (!forward.connected || !forward.to_port.empty()) wanted |= POLLOUT;
  if (forward.connected && !forward.port_ended && !pace_timer_) wanted |= POLLIN;
  if (wanted == 0 || !forward.socket) return unwatch(forward);
  if (std::exchange(forward.watched, true)) return loop_.rewatch_fd(forward.socket.get(), wanted);
  loop_.watch_fd(forward.socket.get(), wanted, [this, pair] {
    const auto self = weak_from_this().lock();
    on_ready(pair);
  });
}

void PortSession::unwatch(Forward& forward) {
  if (std::exchange(forward.watched, false)) loop_.unwatch_fd(forward.socket.get());
}

void PortSession::on_ready(Pair pair) {
  const auto found = forwards_.find(pair);
  if (found == forwards_.end()) return;
  Forward& forward = found->second;
  active_ = loop_.now().mono;
  if (!forward.connected && !finish_connecting(pair, forward)) return report_used();
  if (!write_port(pair, forward)) return report_used();
  if (!forward.port_ended && !is_full() && !read_port(pair, forward)) return report_used();
  report_used();
  if (!sink_) return;
  if (is_full()) return pace();
  watch(pair, forward);
}

bool PortSession::finish_connecting(Pair pair, Forward& forward) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(forward.socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) {
    fail(pair, forward.port, fmt::format("connect to localhost:{}: {}", forward.port, errno_error({}, error).message));
    return false;
  }
  forward.connected = true;
  return true;
}

bool PortSession::write_port(Pair pair, Forward& forward) {
  while (!forward.to_port.empty()) {
    const ssize_t sent = ::send(forward.socket.get(), forward.to_port.data(), forward.to_port.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return true;
    if (sent < 0) {
      close(pair, {});  // closes as if the connection had ended by itself
      return false;
    }
    forward.to_port.erase(0, static_cast<std::size_t>(sent));
  }
  if (!forward.client_ended) return true;
  if (!forward.port_ended) {
    ::shutdown(forward.socket.get(), SHUT_WR);
    return true;
  }
  close(pair, {});
  return false;
}

bool PortSession::read_port(Pair pair, Forward& forward) {
  std::array<char, 16'384> chunk;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (std::size_t total = 0; total < kPortBytesMax;) {
    const ssize_t got = ::recv(forward.socket.get(), chunk.data(), chunk.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got < 0) {
      close(pair, {});
      return false;
    }
    if (got == 0) {
      forward.port_ended = true;
      if (!forward.client_ended) {
        send(streams_.end(pair));
        return sink_ != nullptr;
      }
      close(pair, {});
      return false;
    }
    total += static_cast<std::size_t>(got);
    send(streams_.data(pair, {chunk.data(), static_cast<std::size_t>(got)}));
    if (!sink_) return false;
  }
  return true;
}

/// The client is behind: nothing is read until it has caught up.
void PortSession::pace() {
  if (pace_timer_) return;
  pace_timer_ = loop_.at(loop_.now().mono + kPortPaceInterval, [this] {
    pace_timer_.reset();
    if (is_full()) return pace();
    for (auto& [pair, forward] : forwards_) watch(pair, forward);
  });
  for (auto& [pair, forward] : forwards_) watch(pair, forward);
}

void PortSession::fail(Pair pair, std::uint16_t port, std::string_view why) {
  const std::string text = fmt::format("error forwarding port {} to pod {}: {}", port, pod_, why);
  if (forwards_.contains(pair)) return close(pair, text);
  send(streams_.close(pair, text));
}

void PortSession::close(Pair pair, std::string_view why) {
  const auto found = forwards_.find(pair);
  if (found == forwards_.end()) return;
  unwatch(found->second);
  forwards_.erase(found);
  --*open_;
  send(streams_.close(pair, why));
}

void PortSession::send(std::string bytes) {
  if (!sink_ || bytes.empty()) return;
  const auto sink = sink_;
  if (!sink->write(std::make_shared<const std::string>(std::move(bytes)))) cut();
}

void PortSession::report_used() {
  if (!sink_) return;
  std::size_t waiting = 0;
  for (const auto& [pair, forward] : forwards_) waiting += forward.to_port.size();
  if (waiting >= unused_) return;
  const auto sink = sink_;
  sink->on_input_used(unused_ - waiting);
  unused_ = waiting;
}

void PortSession::cut() {
  for (std::optional<runtime::Loop::TimerId>* timer : {&pace_timer_, &idle_timer_}) {
    if (*timer) loop_.cancel(**timer);
    timer->reset();
  }
  for (auto& [pair, forward] : forwards_) unwatch(forward);
  *open_ -= forwards_.size();
  forwards_.clear();
  if (const auto sink = std::exchange(sink_, nullptr)) sink->on_end();
}

}  // namespace spillway::host
