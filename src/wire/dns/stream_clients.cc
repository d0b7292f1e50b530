#include "wire/dns/stream_clients.h"

#include "wire/dns/datagram.h"
#include "wire/dns/message.h"
#include "wire/dns/stream_frames.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

namespace spillway::wire {
namespace {

constexpr std::size_t kQueriesBytes = 16384;
// Connections accepted in a turn.
constexpr int kAcceptsOfTurn = 32;

}  // namespace

StreamClients::~StreamClients() {
  while (!connections_.empty()) close(connections_.begin()->first);
}

void StreamClients::accept(const Socket& listener) {
  for (int i = 0; i < kAcceptsOfTurn; ++i) {
    auto accepted = accept_from(listener);
    if (!accepted || !*accepted) return;
    Socket socket = std::move(**accepted);
    const auto client = peer_ip(socket);
    if (!client || !callbacks_.may_ask(*client) || connections_.size() >= kConnectionsMax) continue;
    std::size_t& own = by_client_[*client];
    if (own >= kConnectionsPerClient) continue;
    ++own;
    const ConnectionId id = ++last_;
    const int fd = socket.fd();
    const Instant now = loop_.now().mono;
    Connection& connection = connections_[id];
    connection.socket = std::move(socket);
    connection.client = *client;
    connection.idle_since = now;
    loop_.watch_fd(fd, POLLIN, [this, id] { on_ready(id); });
    watch_idle(id, now + kIdle);
  }
}

void StreamClients::watch_idle(ConnectionId id, Instant due) {
  connections_.at(id).idle_timer = loop_.at(due, [this, id] {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    const Instant until = found->second.idle_since + kIdle;
    if (loop_.now().mono >= until) return close(id);
    watch_idle(id, until);
  });
}

void StreamClients::close(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  loop_.cancel(found->second.idle_timer);
  loop_.unwatch_fd(found->second.socket.fd());
  const auto own = by_client_.find(found->second.client);
  if (own != by_client_.end() && --own->second == 0) by_client_.erase(own);
  connections_.erase(found);
}

void StreamClients::on_ready(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  if (!send(id, found->second)) return;
  if (found->second.waiting < kQueriesOfConnection && !read(id, found->second)) return;
  take_messages(id);
  update_interest(id);
}

bool StreamClients::read(ConnectionId id, Connection& connection) {
  std::array<char, kQueriesBytes> buffer;
  const ssize_t size = ::recv(connection.socket.fd(), buffer.data(), buffer.size(), 0);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (size < 0) {
    close(id);
    return false;
  }
  if (size == 0) connection.ended = true;
  connection.received.append(buffer.data(), static_cast<std::size_t>(size));
  return true;
}

void StreamClients::take_messages(ConnectionId id) {
  for (;;) {
    const auto found = connections_.find(id);  // a message may have closed it
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    if (connection.waiting >= kQueriesOfConnection) return;
    const auto frame = first_frame(connection.received);
    if (!frame) return;
    const std::string message(*frame);
    connection.received.erase(0, kFrameLengthBytes + message.size());
    connection.idle_since = loop_.now().mono;
    ++connection.waiting;
    callbacks_.on_message(id, connection.client, message);
  }
}

void StreamClients::answer(ConnectionId id, std::string_view message) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  --connection.waiting;
  if (message.empty() || message.size() > kDnsMessageMax) return;
  append_frame(connection.unsent, message);
  if (connection.unsent.size() > kUnsentMax) return close(id);
  // The messages that wait behind a full connection are handled in a turn of their own.
  loop_.at_end_of_turn(alive_.guard([this, id] { on_ready(id); }));
}

bool StreamClients::send(ConnectionId id, Connection& connection) {
  if (connection.unsent.empty()) return true;
  const ssize_t sent = ::send(connection.socket.fd(), connection.unsent.data(), connection.unsent.size(), MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (sent < 0) {
    close(id);
    return false;
  }
  connection.unsent.erase(0, static_cast<std::size_t>(sent));
  return true;
}

void StreamClients::update_interest(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const Connection& connection = found->second;
  if (connection.ended && connection.waiting == 0 && connection.unsent.empty()) return close(id);
  const bool reads = !connection.ended && connection.waiting < kQueriesOfConnection;
  loop_.rewatch_fd(connection.socket.fd(),
                   static_cast<short>((reads ? POLLIN : 0) | (connection.unsent.empty() ? 0 : POLLOUT)));
}

}  // namespace spillway::wire
