#include "wire/client/http_client_connection.h"

#include "wire/http/http_head.h"

#include <poll.h>

#include <array>
#include <utility>

namespace spillway::wire {

namespace {

constexpr std::size_t kReadBytes = std::size_t{64} * 1024;
constexpr int kAnswerReadsPerTurn = 8;

}  // namespace

void HttpClientConnection::start() {
  interest_ = POLLIN;
  loop_.watch_fd(stream_->socket().fd(), interest_, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    if (self->interest_ == 0) return self->break_off("connection lost");  // reported although nothing is waited for
    self->on_ready();
  });
}

void HttpClientConnection::on_ready() {
  const auto self = shared_from_this();
  if (!closed_) flush();
  if (!closed_) receive();
  if (!closed_) update_interest();
}

void HttpClientConnection::carry(std::uint64_t exchange, Question question) {
  const auto self = shared_from_this();
  const std::string_view body = question.body ? std::string_view(*question.body) : std::string_view();
  output_ = format_request_head(question.head, body.size(), question.authority);
  output_ += body;
  sent_ = 0;
  input_.clear();
  using Upgrade = ResponseParser::Upgrade;
  exchange_ = exchange;
  parser_ =
      std::make_unique<ResponseParser>(question.head.method, question.upgrades ? Upgrade::kAsked : Upgrade::kNotAsked);
  may_upgrade_ = question.upgrades;
  head_reported_ = false;
  touched_ = false;
  paused_ = false;
  flush();
  update_interest();
}

void HttpClientConnection::cancel(std::uint64_t exchange) {
  if (exchange == exchange_) end();
}

void HttpClientConnection::write(std::uint64_t, std::string_view bytes) {
  if (closed_ || !upgraded_) return;
  const auto self = shared_from_this();
  output_.append(bytes);
  unreported_ += bytes.size();
  flush();
  if (!closed_) update_interest();
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
  if (unreported_ > 0) owner_.on_written(exchange_, std::exchange(unreported_, 0));
}

void HttpClientConnection::receive() {
  std::array<char, kReadBytes> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by read
  read_wants_write_ = false;
  for (int reads = 0; !paused_; ++reads) {
    if (reads == kAnswerReadsPerTurn) {
      if (!stream_->has_buffered()) return;
      return loop_.post([weak = weak_from_this()] {
        const auto self = weak.lock();
        if (self && !self->closed_) self->on_ready();
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
        if (!busy()) return break_off("closed by the server");
        if (!upgraded_) {
          if (const auto ended = parser_->finish(); !ended) return break_off(ended.error().message);
        }
        end();
        return finish(std::nullopt);
      }
      case ByteStream::Step::kDone:
        break;
    }
    if (upgraded_) {
      owner_.on_data(exchange_, std::string(buffer.data(), moved.bytes));
      if (closed_) return;
      continue;
    }
    if (!busy()) return break_off("the server sent data without a request");
    touched_ = true;
    input_.append(buffer.data(), moved.bytes);
    feed();
    if (closed_) return;
  }
}

void HttpClientConnection::feed() {
  const auto step = parser_->feed(input_);
  if (!step) return break_off(step.error().message);
  if (*step == ResponseParser::Step::kNeedMore) return;
  if (!std::exchange(head_reported_, true)) owner_.on_head(exchange_, parser_->head());
  if (closed_) return;  // the owner has closed the connection meanwhile
  if (may_upgrade_ && parser_->head().status == 101) {
    upgraded_ = true;
    if (!input_.empty()) owner_.on_data(exchange_, std::exchange(input_, {}));
    return;
  }
  if (std::string data = parser_->take_body(); !data.empty()) owner_.on_data(exchange_, std::move(data));
  if (closed_ || *step != ResponseParser::Step::kDone) return;
  const bool reusable = parser_->keep_alive() && output_.empty() && input_.empty();
  if (!reusable) end();
  finish(std::nullopt);
}

void HttpClientConnection::finish(std::optional<Failure> failure) {
  parser_.reset();
  owner_.on_end(id_, std::exchange(exchange_, 0), std::move(failure));
}

void HttpClientConnection::pause(std::uint64_t, bool paused) {
  if (closed_) return;
  paused_ = paused;
  update_interest();
  // Bytes may wait decrypted, where the socket does not report them.
  if (!paused) {
    loop_.post([weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self && !self->closed_) self->on_ready();
    });
  }
}

void HttpClientConnection::break_off(std::string problem) {
  const bool was_busy = busy();
  end();
  if (!was_busy) return owner_.on_change(id_);
  finish(Failure{touched_ ? Failure::Trace::kCutOff : Failure::Trace::kSilent, std::move(problem)});
}

void HttpClientConnection::end() {
  if (std::exchange(closed_, true)) return;
  loop_.unwatch_fd(stream_->socket().fd());
}

void HttpClientConnection::update_interest() {
  short interest = 0;
  if (!paused_ || write_wants_read_) interest |= POLLIN;
  if (read_wants_write_ || (write_waits_ && !write_wants_read_)) interest |= POLLOUT;
  if (interest == interest_) return;
  interest_ = interest;
  loop_.rewatch_fd(stream_->socket().fd(), interest);
}

}  // namespace spillway::wire
