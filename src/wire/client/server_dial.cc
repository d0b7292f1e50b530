#include "wire/client/server_dial.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

namespace spillway::wire {

void ServerDial::start(std::vector<std::string> addresses, Done done) {
  const auto self = shared_from_this();
  addresses_ = std::move(addresses);
  done_ = std::move(done);
  connect_next();
}

void ServerDial::connect_next() {
  for (;;) {
    auto socket = connect_to(addresses_[next_address_++], endpoint_.port);
    if (socket) {
      connecting_ = *std::move(socket);
      return watch(connecting_.fd(), POLLOUT);
    }
    if (next_address_ == addresses_.size()) return finish(socket.error());
  }
}

void ServerDial::on_ready() {
  const auto self = shared_from_this();
  if (connecting_.open() && !on_connected()) return;
  if (stream_) shake_hands();
}

bool ServerDial::on_connected() {
  if (const auto problem = connect_problem(connecting_)) {
    loop_.unwatch_fd(std::exchange(watched_fd_, -1));
    connecting_.close();
    if (next_address_ < addresses_.size()) {
      connect_next();
    } else {
      finish(make_error(ErrorCode::kServiceUnavailable, "{}", *problem));
    }
    return false;
  }
  if (endpoint_.own_port == endpoint_.port && leads_home(connecting_)) {
    finish(make_error(ErrorCode::kServiceUnavailable, "the address leads back to this server"));
    return false;
  }
  if (endpoint_.tls) {
    const std::string& name = endpoint_.tls_name.empty() ? endpoint_.host : endpoint_.tls_name;
    stream_ =
        endpoint_.tls->connect_stream(std::move(connecting_), endpoint_.tls_subject ? std::string() : name, offered_);
  } else {
    stream_ = make_plain_stream(std::move(connecting_));
  }
  return true;
}

void ServerDial::shake_hands() {
  const ByteStream::Step step = stream_->handshake();
  if (step == ByteStream::Step::kDone) {
    if (auto problem = peer_problem()) return finish(make_error(ErrorCode::kServiceUnavailable, "TLS: {}", *problem));
    return finish(std::move(stream_));
  }
  if (step == ByteStream::Step::kEnd)
    return finish(make_error(ErrorCode::kServiceUnavailable, "TLS: connection closed during the handshake"));
  if (step == ByteStream::Step::kFailed)
    return finish(make_error(ErrorCode::kServiceUnavailable, "TLS: {}", stream_->problem()));
  const short interest = step == ByteStream::Step::kWaitWrite ? POLLOUT : POLLIN;
  if (std::exchange(interest_, interest) != interest) loop_.rewatch_fd(watched_fd_, interest);
}

std::optional<std::string> ServerDial::peer_problem() const {
  if (!endpoint_.tls_subject) return std::nullopt;
  const TlsSubject& expected = *endpoint_.tls_subject;
  const std::optional<PeerCertificate> peer = stream_->peer_certificate();
  if (peer && !peer->problem && peer->common_name == expected.common_name &&
      std::ranges::find(peer->organizations, expected.organization) != peer->organizations.end()) {
    return std::nullopt;
  }
  return fmt::format("the certificate belongs to \"{}\", expected \"{}\" of \"{}\"", peer ? peer->common_name : "",
                     expected.common_name, expected.organization);
}

void ServerDial::finish(Result<std::unique_ptr<ByteStream>> outcome) {
  Done done = std::exchange(done_, nullptr);
  stop();
  if (done) done(std::move(outcome));
}

void ServerDial::stop() {
  done_ = nullptr;
  if (watched_fd_ >= 0) loop_.unwatch_fd(std::exchange(watched_fd_, -1));
  connecting_.close();
}

void ServerDial::watch(int fd, short interest) {
  watched_fd_ = fd;
  interest_ = interest;
  loop_.watch_fd(fd, interest, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->on_ready();
  });
}

}  // namespace spillway::wire
