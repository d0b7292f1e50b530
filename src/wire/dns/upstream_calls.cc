#include "wire/dns/upstream_calls.h"

#include "runtime/entropy.h"
#include "wire/dns/datagram.h"
#include "wire/dns/stream_frames.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

namespace spillway::wire {
namespace {

constexpr std::size_t kAnswerBytes = 65536;
// Datagrams read in a turn: forged ones may arrive in numbers.
constexpr int kForgeriesOfTurn = 16;
}  // namespace

UpstreamCalls::UpstreamCalls(runtime::Loop& loop, std::vector<DnsServerPlace> servers, Done done)
    : loop_(loop), servers_(std::move(servers)), done_(std::move(done)) {}

UpstreamCalls::~UpstreamCalls() {
  for (const auto& [id, call] : calls_) loop_.unwatch_fd(call.socket.fd());
}

void UpstreamCalls::ask(const dns::Ask& ask) {
  const DnsServerPlace& server = servers_[ask.server];
  Call call{.socket = {},
            .query = {.id = static_cast<std::uint16_t>(runtime::entropy()),
                      .question = ask.question,
                      .dnssec_ok = ask.dnssec_ok,
                      .checking_disabled = ask.checking_disabled},
            .over_tcp = ask.over_tcp,
            .unsent = {},
            .received = {}};
  const std::string message = print_query(call.query);
  auto socket = ask.over_tcp ? connect_to(server.address, server.port) : connect_datagrams(server.address, server.port);
  if (message.empty() || !socket) return fail_later(ask.id);
  call.socket = *std::move(socket);
  if (ask.over_tcp) {
    append_frame(call.unsent, message);
  } else if (::send(call.socket.fd(), message.data(), message.size(), MSG_NOSIGNAL) < 0) {
    return fail_later(ask.id);
  }
  const int fd = call.socket.fd();
  calls_.emplace(ask.id, std::move(call));
  loop_.watch_fd(fd, ask.over_tcp ? POLLOUT : POLLIN, [this, id = ask.id] { on_ready(id); });
}

void UpstreamCalls::fail_later(dns::AskId id) {
  loop_.post(alive_.guard([this, id] { done_(id, std::nullopt); }));
}

void UpstreamCalls::end(dns::AskId id) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  loop_.unwatch_fd(found->second.socket.fd());
  calls_.erase(found);
}

void UpstreamCalls::finish(dns::AskId id, std::optional<dns::ForeignAnswer> answer) {
  end(id);
  done_(id, std::move(answer));
}

void UpstreamCalls::on_ready(dns::AskId id) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  Call& call = found->second;
  if (!call.over_tcp) return read_datagrams(id, call);
  if (!call.unsent.empty() && !write_stream(id, call)) return;
  if (call.unsent.empty()) read_stream(id, call);
}

void UpstreamCalls::read_datagrams(dns::AskId id, Call& call) {
  std::array<char, kAnswerBytes> buffer;
  for (int i = 0; i < kForgeriesOfTurn; ++i) {
    const ssize_t size = ::recv(call.socket.fd(), buffer.data(), buffer.size(), 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size < 0) return finish(id, std::nullopt);
    // A datagram with another id or question is forged, or late; the right one may still arrive.
    auto answer = parse_answer({buffer.data(), static_cast<std::size_t>(size)}, call.query);
    if (answer) return finish(id, std::move(answer));
  }
}

bool UpstreamCalls::write_stream(dns::AskId id, Call& call) {
  const ssize_t sent = ::send(call.socket.fd(), call.unsent.data(), call.unsent.size(), MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (sent < 0) {
    finish(id, std::nullopt);
    return false;
  }
  call.unsent.erase(0, static_cast<std::size_t>(sent));
  if (call.unsent.empty()) loop_.rewatch_fd(call.socket.fd(), POLLIN);
  return true;
}

void UpstreamCalls::read_stream(dns::AskId id, Call& call) {
  std::array<char, kAnswerBytes> buffer;
  const ssize_t size = ::recv(call.socket.fd(), buffer.data(), buffer.size(), 0);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) return finish(id, std::nullopt);
  call.received.append(buffer.data(), static_cast<std::size_t>(size));
  const auto message = first_frame(call.received);
  if (message) finish(id, parse_answer(*message, call.query));
}

}  // namespace spillway::wire
