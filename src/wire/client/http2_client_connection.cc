#include "wire/client/http2_client_connection.h"

#include "runtime/clock.h"

#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <utility>

namespace spillway::wire {

namespace {

constexpr std::size_t kBytesPerRead = std::size_t{64} * 1024;
constexpr int kReadsInATurn = 8;

}  // namespace

Http2ClientConnection::Http2ClientConnection(runtime::Loop& loop, std::uint64_t id, Owner& owner,
                                             std::unique_ptr<ByteStream> stream, Http2Patience patience)
    : loop_(loop),
      id_(id),
      owner_(owner),
      patience_(patience),
      stream_(std::move(stream)),
      session_(*this, Http2Bounds::client()),
      writer_(*stream_, *this) {}

Http2ClientConnection::~Http2ClientConnection() {
  end();
}

void Http2ClientConnection::start() {
  last_received_ = runtime::RealClock::read_mono();
  exchanges_max_ = exchanges_max();
  interest_ = POLLIN;
  loop_.watch_fd(stream_->socket().fd(), interest_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->on_ready();
  });
  requeue();  // the server may have spoken already
}

std::size_t Http2ClientConnection::exchanges_max() const {
  return closed_ || !session_.takes_requests() ? 0 : session_.streams_max();
}

void Http2ClientConnection::carry(std::uint64_t exchange, Question question) {
  const auto stream =
      closed_ ? std::nullopt : session_.ask(question.head, question.authority, std::move(question.body));
  Exchange& asked = exchanges_[exchange];
  asked.id = exchange;
  if (!stream) {
    return loop_.post([weak = weak_from_this(), exchange] {
      if (const auto self = weak.lock())
        self->finish(exchange, Failure{Failure::Trace::kUntouched, "the connection takes no more requests"});
    });
  }
  asked.stream = *stream;
  streams_.emplace(*stream, exchange);
  arm_timer();
  flush_at_end();
}

void Http2ClientConnection::cancel(std::uint64_t exchange) {
  const auto found = exchanges_.find(exchange);
  if (found == exchanges_.end()) return;
  streams_.erase(found->second.stream);
  session_.take_back(found->second.stream);
  exchanges_.erase(found);
  flush_at_end();
}

void Http2ClientConnection::pause(std::uint64_t exchange, bool paused) {
  const auto found = exchanges_.find(exchange);
  if (found == exchanges_.end() || std::exchange(found->second.paused, paused) == paused || paused) return;
  loop_.post([weak = weak_from_this(), exchange] {
    if (const auto self = weak.lock()) self->release(exchange);
  });
}

void Http2ClientConnection::release(std::uint64_t id) {
  const auto self = shared_from_this();
  auto found = exchanges_.find(id);
  if (found == exchanges_.end() || found->second.paused) return;
  if (std::string held = std::exchange(found->second.held, {}); !held.empty()) {
    session_.consume(found->second.stream, held.size());
    flush_at_end();
    owner_.on_data(id, std::move(held));
    found = exchanges_.find(id);  // the owner may have cancelled it, or paused it again
    if (found == exchanges_.end() || !found->second.held.empty()) return;
  }
  if (found->second.ended) finish(id, std::move(found->second.failure));
}

Http2ClientConnection::Exchange* Http2ClientConnection::find(StreamId stream) {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? nullptr : &exchanges_.at(found->second);
}

void Http2ClientConnection::on_head(StreamId stream, api::Response head) {
  Exchange* exchange = find(stream);
  if (exchange == nullptr) return;
  exchange->head_seen = true;
  owner_.on_head(exchange->id, head);
}

void Http2ClientConnection::on_body(StreamId stream, std::string_view bytes) {
  Exchange* exchange = find(stream);
  if (exchange == nullptr) return;
  if (exchange->paused || !exchange->held.empty()) {
    exchange->held += bytes;
    return;
  }
  session_.consume(stream, bytes.size());
  owner_.on_data(exchange->id, std::string(bytes));
}

void Http2ClientConnection::on_end(StreamId stream, std::optional<Http2ClientSession::Failure> failure) {
  Exchange* exchange = find(stream);
  if (exchange == nullptr) return;
  streams_.erase(stream);
  std::optional<Failure> reported;
  if (failure) {
    using Trace = Failure::Trace;
    Trace trace = failure->untouched ? Trace::kUntouched : Trace::kSilent;
    if (exchange->head_seen) trace = Trace::kCutOff;  // even if the server claims that it did not begin
    reported = Failure{trace, std::move(failure->problem)};
  }
  if (exchange->held.empty()) return finish(exchange->id, std::move(reported));
  exchange->ended = true;
  exchange->failure = std::move(reported);
}

void Http2ClientConnection::finish(std::uint64_t exchange, std::optional<Failure> failure) {
  if (exchanges_.erase(exchange) > 0) owner_.on_end(id_, exchange, std::move(failure));
}

void Http2ClientConnection::on_ready() {
  const auto self = shared_from_this();  // a callback may close the connection
  if (!closed_) receive();
  if (!closed_) flush();
}

void Http2ClientConnection::receive() {
  std::array<char, kBytesPerRead> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by read
  input_wants_write_ = false;
  for (int reads = 0; !closed_; ++reads) {
    if (reads == kReadsInATurn) {
      if (stream_->has_buffered()) requeue();  // the socket reports itself again, decrypted bytes do not
      return;
    }
    const ByteStream::Moved moved = stream_->read(buffer);
    switch (moved.step) {
      case ByteStream::Step::kWaitRead:
        return;
      case ByteStream::Step::kWaitWrite:
        input_wants_write_ = true;
        return;
      case ByteStream::Step::kEnd:
        return break_off("connection closed by the server");
      case ByteStream::Step::kFailed:
        return break_off(stream_->problem());
      case ByteStream::Step::kDone:
        break;
    }
    last_received_ = runtime::RealClock::read_mono();
    if (pinged_) stop_timer();
    pinged_.reset();
    if (!session_.feed({buffer.data(), moved.bytes}, last_received_))
      return break_off("the server's answer is not HTTP/2");
  }
}

void Http2ClientConnection::requeue() {
  loop_.post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->on_ready();
  });
}

std::size_t Http2ClientConnection::fill(std::string& ready) {
  if (!session_.pull(ready, SocketWriter::kReadyMax)) failed_ = true;
  return ready.size();
}

/// Sends at the end of the turn, so that all data of the turn are sent together.
void Http2ClientConnection::flush_at_end() {
  if (std::exchange(flush_due_, true)) return;
  loop_.at_end_of_turn([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->flush_due_ = false;
    if (!self->closed_) self->flush();
  });
}

void Http2ClientConnection::flush() {
  if (writer_.flush() == SocketWriter::Flushed::kFailed || failed_) {
    receive();  // the server may have sent the reason
    if (!closed_) break_off("connection closed by the server");
    return;
  }
  after_turn();
}

void Http2ClientConnection::after_turn() {
  if (session_.is_over() && writer_.empty()) {
    const auto flood = session_.flood();
    return break_off(flood ? fmt::format("the server sent too many {}", to_string(*flood))
                           : std::string("the HTTP/2 connection was ended by the server, or because of its frames"));
  }
  arm_timer();
  update_interest();
  const std::size_t most = exchanges_max();
  if (std::exchange(exchanges_max_, most) != most) owner_.on_change(id_);
}

void Http2ClientConnection::break_off(const std::string& problem) {
  end();
  const auto exchanges = std::exchange(exchanges_, {});
  for (const auto& [id, exchange] : exchanges) {
    if (!exchange.held.empty()) owner_.on_data(id, exchange.held);
    const auto trace = exchange.head_seen ? Failure::Trace::kCutOff : Failure::Trace::kSilent;
    owner_.on_end(id_, id, exchange.ended ? exchange.failure : Failure{trace, problem});
  }
  if (exchanges.empty()) owner_.on_change(id_);
}

void Http2ClientConnection::end() {
  if (std::exchange(closed_, true)) return;
  streams_.clear();
  stop_timer();
  if (interest_ != 0) loop_.unwatch_fd(stream_->socket().fd());
}

void Http2ClientConnection::arm_timer() {
  if (timer_ || exchanges_.empty()) return;
  const Instant due = pinged_ ? *pinged_ + patience_.ping_answer_max : last_received_ + patience_.silence_max;
  timer_ = loop_.at(due, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self && !self->closed_) self->on_timer();
  });
}

void Http2ClientConnection::stop_timer() {
  if (timer_) loop_.cancel(*timer_);
  timer_.reset();
}

void Http2ClientConnection::on_timer() {
  timer_.reset();
  const Instant now = runtime::RealClock::read_mono();
  if (exchanges_.empty()) return;
  if (pinged_ && now >= *pinged_ + patience_.ping_answer_max)
    return break_off(fmt::format("the server has not answered a ping within {} ms",
                                 std::chrono::duration_cast<milliseconds>(patience_.ping_answer_max).count()));
  if (!pinged_ && now >= last_received_ + patience_.silence_max) {
    pinged_ = now;
    session_.ping();
    return flush();
  }
  arm_timer();
}

void Http2ClientConnection::update_interest() {
  short interest = POLLIN;
  if (input_wants_write_ || writer_.waits() == SocketWriter::Wait::kWritable) interest |= POLLOUT;
  if (interest == interest_) return;
  interest_ = interest;
  loop_.rewatch_fd(stream_->socket().fd(), interest);
}

}  // namespace spillway::wire
