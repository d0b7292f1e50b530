#include "wire/client/http_client_connection.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::wire {

namespace {

constexpr std::size_t kReadBytes = std::size_t{64} * 1024;
constexpr int kReadsPerTurn = 8;

}  // namespace

void HttpClientConnection::connect(std::vector<std::string> addresses) {
  const auto self = shared_from_this();
  addresses_ = std::move(addresses);
  phase_ = Phase::kConnecting;
  connect_next();
}

void HttpClientConnection::connect_next() {
  for (;;) {
    auto socket = connect_to(addresses_[next_address_++], endpoint_.port);
    if (socket) {
      connecting_ = *std::move(socket);
      return watch(connecting_.fd(), POLLOUT);
    }
    if (next_address_ == addresses_.size()) return break_off(socket.error().message);
  }
}

void HttpClientConnection::on_ready() {
  const auto self = shared_from_this();
  if (phase_ == Phase::kConnecting && !on_connected()) return;
  if (phase_ == Phase::kHandshake && !shake_hands()) return;
  if (phase_ == Phase::kOpen) flush();
  if (phase_ == Phase::kOpen) receive();
  if (phase_ == Phase::kOpen) update_interest();
}

bool HttpClientConnection::on_connected() {
  if (const auto problem = connect_problem(connecting_)) {
    loop_.unwatch_fd(std::exchange(watched_fd_, -1));
    connecting_.close();
    if (next_address_ < addresses_.size()) {
      connect_next();
    } else {
      break_off(*problem);
    }
    return false;
  }
  if (endpoint_.own_port == endpoint_.port && leads_home(connecting_)) {
    break_off("the address leads back to this server");
    return false;
  }
  if (endpoint_.tls) {
    const std::string& name = endpoint_.tls_name.empty() ? endpoint_.host : endpoint_.tls_name;
    stream_ = endpoint_.tls->connect_stream(std::move(connecting_), endpoint_.tls_subject ? std::string() : name);
  } else {
    stream_ = make_plain_stream(std::move(connecting_));
  }
  phase_ = Phase::kHandshake;
  return true;
}

bool HttpClientConnection::shake_hands() {
  const ByteStream::Step step = stream_->handshake();
  if (step == ByteStream::Step::kDone) {
    if (auto problem = peer_problem()) {
      break_off("TLS: " + *std::move(problem));
      return false;
    }
    handshake_wants_write_ = false;
    phase_ = Phase::kOpen;
    owner_.on_open(*this);
    return true;
  }
  if (step == ByteStream::Step::kEnd)
    break_off("TLS: connection closed during the handshake");
  else if (step == ByteStream::Step::kFailed)
    break_off("TLS: " + stream_->problem());
  if (phase_ == Phase::kClosed) return false;
  handshake_wants_write_ = step == ByteStream::Step::kWaitWrite;
  update_interest();
  return false;
}

std::optional<std::string> HttpClientConnection::peer_problem() const {
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

void HttpClientConnection::send(std::string request, api::Method method, ResponseParser::Upgrade upgrade) {
  const auto self = shared_from_this();
  ++exchanges_;
  output_ = std::move(request);
  sent_ = 0;
  input_.clear();
  parser_ = std::make_unique<ResponseParser>(method, upgrade);
  may_upgrade_ = upgrade == ResponseParser::Upgrade::kAsked;
  head_reported_ = false;
  touched_ = false;
  paused_ = false;
  if (phase_ != Phase::kOpen) return;
  flush();
  if (phase_ == Phase::kOpen) update_interest();
}

void HttpClientConnection::write(std::string_view bytes) {
  if (phase_ != Phase::kOpen || !upgraded_) return;
  const auto self = shared_from_this();
  output_.append(bytes);
  unreported_ += bytes.size();
  flush();
  if (phase_ == Phase::kOpen) update_interest();
}

void HttpClientConnection::flush() {
  write_waits_ = false;
  write_wants_read_ = false;
  while (sent_ < output_.size()) {
    const ByteStream::Moved moved = stream_->write(std::string_view(output_).substr(sent_));
    switch (moved.step) {
      case ByteStream::Step::kDone:
        sent_ += moved.bytes;
        break;
      case ByteStream::Step::kWaitRead:
        write_wants_read_ = true;
        [[fallthrough]];
      case ByteStream::Step::kWaitWrite:
        write_waits_ = true;
        return;
      case ByteStream::Step::kEnd:
      case ByteStream::Step::kFailed:
        // The server may have answered before it closed (413): read first.
        output_ = {};
        sent_ = 0;
        return;
    }
  }
  output_ = {};
  sent_ = 0;
  if (unreported_ > 0) owner_.on_written(*this, std::exchange(unreported_, 0));
}

void HttpClientConnection::receive() {
  std::array<char, kReadBytes> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by read
  read_wants_write_ = false;
  for (int reads = 0; !paused_; ++reads) {
    if (reads == kReadsPerTurn) {
      if (!stream_->has_buffered()) return;
      return loop_.post([weak = weak_from_this()] {
        const auto self = weak.lock();
        if (self && self->phase_ == Phase::kOpen) self->on_ready();
      });
    }
    const ByteStream::Moved moved = stream_->read(buffer);
    switch (moved.step) {
      case ByteStream::Step::kWaitRead:
        return;
      case ByteStream::Step::kWaitWrite:
        read_wants_write_ = true;
        return;
      case ByteStream::Step::kFailed:
        return break_off(stream_->problem());
      case ByteStream::Step::kEnd: {
        if (upgraded_) {
          close();
          return owner_.on_complete(*this, false);
        }
        if (!busy()) return break_off("closed by the server");
        if (const auto end = parser_->finish(); !end) return break_off(end.error().message);
        close();
        return owner_.on_complete(*this, false);
      }
      case ByteStream::Step::kDone:
        break;
    }
    if (upgraded_) {
      owner_.on_data(*this, std::string(buffer.data(), moved.bytes));
      if (phase_ != Phase::kOpen) return;
      continue;
    }
    if (!busy()) return break_off("the server spoke without being asked");
    touched_ = true;
    input_.append(buffer.data(), moved.bytes);
    feed();
    if (phase_ != Phase::kOpen) return;
  }
}

void HttpClientConnection::feed() {
  const auto step = parser_->feed(input_);
  if (!step) return break_off(step.error().message);
  if (*step == ResponseParser::Step::kNeedMore) return;
  if (!std::exchange(head_reported_, true)) owner_.on_head(*this, parser_->head());
  if (phase_ != Phase::kOpen) return;  // the owner has closed it
  if (may_upgrade_ && parser_->head().status == 101) {
    upgraded_ = true;
    if (!input_.empty()) owner_.on_data(*this, std::exchange(input_, {}));
    return;
  }
  if (std::string data = parser_->take_body(); !data.empty()) owner_.on_data(*this, std::move(data));
  if (phase_ != Phase::kOpen || *step != ResponseParser::Step::kDone) return;
  const bool reusable = parser_->keep_alive() && output_.empty() && input_.empty();
  parser_.reset();
  if (!reusable) close();
  owner_.on_complete(*this, reusable);
}

void HttpClientConnection::pause(bool paused) {
  paused_ = paused;
  if (phase_ != Phase::kOpen) return;
  update_interest();
  // Bytes may wait decrypted, where the socket does not report them.
  if (!paused) {
    loop_.post([weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self && self->phase_ == Phase::kOpen) self->on_ready();
    });
  }
}

void HttpClientConnection::break_off(std::string problem) {
  const bool untouched = !touched_;
  close();
  owner_.on_broken(*this, std::move(problem), untouched);
}

void HttpClientConnection::close() {
  phase_ = Phase::kClosed;
  if (watched_fd_ >= 0) loop_.unwatch_fd(std::exchange(watched_fd_, -1));
  parser_.reset();
}

void HttpClientConnection::watch(int fd, short interest) {
  watched_fd_ = fd;
  interest_ = interest;
  loop_.watch_fd(fd, interest, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    if (self->interest_ == 0) return self->break_off("connection lost");  // reported although nothing is waited for
    self->on_ready();
  });
}

void HttpClientConnection::update_interest() {
  short interest = 0;
  if (!paused_ || write_wants_read_) interest |= POLLIN;
  if (handshake_wants_write_ || read_wants_write_ || (write_waits_ && !write_wants_read_)) interest |= POLLOUT;
  if (interest == interest_) return;
  interest_ = interest;
  loop_.rewatch_fd(watched_fd_, interest);
}

}  // namespace spillway::wire
