#include "wire/server/http2_connection.h"

#include "base/ascii.h"
#include "runtime/clock.h"
#include "wire/http/gzip_stream.h"
#include "wire/http/http_head.h"
#include "wire/net/socket.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace spillway::wire {
namespace {

constexpr Duration kCheckInterval = seconds(5);
constexpr Duration kSilenceMax = seconds(30);  // silence of a client with open exchanges; then it gets a ping
constexpr Duration kPingAnswerMax = seconds(15);

constexpr std::size_t kSmallAnswer = std::size_t{16} * 1024;
constexpr std::size_t kLargeAnswer = std::size_t{1024} * 1024;
constexpr Http2Session::Priority kWatchPriority = {.urgency = 1, .incremental = true};

/// A heartbeat's answer does not wait for a list.
Http2Session::Priority priority_of(std::size_t body_bytes) {
  if (body_bytes < kSmallAnswer) return {.urgency = 0, .incremental = false};
  return {.urgency = body_bytes > kLargeAnswer ? 5U : 3U, .incremental = true};
}

Http2Bounds bounds_of(const HttpLimits& limits) {
  Http2Bounds bounds;
  bounds.head_bytes_max = limits.request.head_bytes_max;
  bounds.fields_max = limits.request.fields_max;
  return bounds;
}

/// The length in Content-Length; 0 without one.
std::size_t announced_bytes(const api::Request& head) {
  const std::string_view text = head.header("content-length");
  std::size_t bytes = 0;
  std::from_chars(text.data(), text.data() + text.size(), bytes);
  return bytes;
}

Error body_too_large(std::size_t most) {
  return make_error(ErrorCode::kRequestEntityTooLarge, "limit is {}", most);
}

}  // namespace

Http2Connection::Http2Connection(std::uint64_t id, ConnectionOwner& owner, std::unique_ptr<ByteStream> stream,
                                 std::string address)
    : id_(id),
      owner_(owner),
      stream_(std::move(stream)),
      intake_(id, owner, std::move(address), peer_address(stream_->socket())),
      streams_(owner, intake_),
      session_(*this, bounds_of(owner.options().limits)),
      writer_(*stream_, *this),
      stall_(owner.options().limits) {}

void Http2Connection::start() {
  interest_ = POLLIN;
  owner_.loop()->watch_fd(stream_->socket().fd(), interest_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->on_ready();
  });
  last_received_ = idle_since_ = runtime::RealClock::read_mono();
  owner_.set_idle(id_, true);
  if (!intake_.accept(stream_->peer_certificate())) return close();
  on_ready();
}

void Http2Connection::on_ready() {
  const auto self = shared_from_this();  // a callback may close the connection
  if (phase_ == Phase::kClosed) return;
  receive();
  if (phase_ != Phase::kClosed) flush();
}

void Http2Connection::receive() {
  const std::span<char> scratch = owner_.scratch();
  input_wants_write_ = false;
  for (int reads = 0;; ++reads) {
    if (reads == kReadsPerTurn) {
      if (stream_->has_buffered()) requeue();  // the socket reports itself again, decrypted bytes do not
      return;
    }
    const ByteStream::Moved moved = stream_->read(scratch);
    switch (moved.step) {
      case ByteStream::Step::kWaitRead:
        return;
      case ByteStream::Step::kWaitWrite:
        input_wants_write_ = true;
        return;
      case ByteStream::Step::kEnd:
      case ByteStream::Step::kFailed:
        return close();
      case ByteStream::Step::kDone:
        break;
    }
    if (phase_ == Phase::kLinger) {
      lingered_bytes_ += moved.bytes;
      if (lingered_bytes_ > kLingerMax) return close();
    } else if (!feed({scratch.data(), moved.bytes})) {
      intake_.count(Refusal::kMalformed);
      return close();
    }
  }
}

bool Http2Connection::feed(std::string_view bytes) {
  last_received_ = runtime::RealClock::read_mono();
  pinged_ = false;
  if (!session_.feed(bytes, last_received_)) return false;
  if (!session_.awaits_head())
    head_since_.reset();
  else if (!head_since_)
    head_since_ = last_received_;
  return true;
}

void Http2Connection::requeue() {
  owner_.loop()->post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->on_ready();
  });
}

Http2Connection::Stream& Http2Connection::open(StreamId id, const api::Request& head) {
  if (streams_.empty()) owner_.set_idle(id_, false);
  ++requests_;
  return streams_.open(id, head);
}

Http2Connection::Stream* Http2Connection::waiting_for(const std::shared_ptr<HttpExchange>& exchange) {
  return phase_ == Phase::kOpen ? streams_.waiting_for(exchange) : nullptr;
}

/// A client that takes its requests back has the handler work on more than the streams it has open.
void Http2Connection::on_head(StreamId id, api::Request head, Http2Session::Body body) {
  if (streams_.works_on_too_many()) return session_.reset(id, Http2Session::Code::kRefusedStream);
  Stream& stream = open(id, head);
  if (!head.target.starts_with('/') && head.target != "*")
    return refuse(id, stream, head, nullptr, make_error(ErrorCode::kBadRequest, "the request has no path"));
  Result<UserPtr> user = intake_.identify(head);
  if (!user) {
    refuse(id, stream, head, nullptr, user.error());
    return session_.submit_goaway();
  }
  if (!intake_.admit(**user)) {
    refuse(id, stream, head, user->get(),
           make_error(ErrorCode::kTooManyRequests, "too many connections, please try again later"));
    return session_.submit_goaway();
  }
  const std::size_t most = owner_.options().limits.request.body_bytes_max;
  if (announced_bytes(head) > most) return refuse(id, stream, head, user->get(), body_too_large(most));
  const bool continues = lower_case(head.header("expect")) == "100-continue";
  stream.user = *std::move(user);
  stream.request = std::move(head);
  if (body == Http2Session::Body::kNone) return dispatch(id, stream);
  const HttpLimits& limits = owner_.options().limits;
  const bool unproven = intake_.rank() == ClientRank::kUnproven;
  stream.body_due = last_received_ + (unproven ? std::min(limits.header_max, limits.body_max) : limits.body_max);
  if (continues) session_.respond(id, {100, {}, {}}, Http2Session::Body::kNone);
}

void Http2Connection::on_large_head(StreamId id, api::Request head) {
  intake_.count(Refusal::kMalformed);
  refuse(id, open(id, head), head, nullptr,
         make_error(ErrorCode::kBadRequest, "the fields of the request are too large"), 431);
}

void Http2Connection::on_body(StreamId id, std::string_view bytes) {
  Stream* stream = streams_.find(id);
  if (stream == nullptr || !stream->request) return session_.consume(id, bytes.size());  // already answered
  session_.consume(id, bytes.size());  // also for refused bytes: the window is that of the whole connection
  std::string& body = stream->request->body;
  body.append(bytes);
  const std::size_t most = owner_.options().limits.request.body_bytes_max;
  if (body.size() > most) return refuse(id, *stream, body_too_large(most));
  if (intake_.is_too_large(body.size())) return refuse(id, *stream, intake_.too_large());
  if (streams_.account(*stream, body.size())) return;
  intake_.count(Refusal::kRequestBytes);
  refuse(id, *stream, make_error(ErrorCode::kTooManyRequests, "too many requests at once, please try again later"));
}

void Http2Connection::on_body_end(StreamId id) {
  Stream* stream = streams_.find(id);
  if (stream != nullptr && stream->request) dispatch(id, *stream);
}

void Http2Connection::dispatch(StreamId id, Stream& stream) {
  stream.body_due.reset();
  api::Request request = *std::exchange(stream.request, std::nullopt);
  UserPtr user = std::exchange(stream.user, nullptr);
  // A client without credentials gets one request per connection: a connection costs it more than us.
  const HttpServer::Options& options = owner_.options();
  const bool is_verified =
      options.authenticator && options.authenticator->tokens_verified() == Authenticator::Tokens::kHere;
  if (is_verified && intake_.rank() == ClientRank::kUnproven) session_.submit_goaway();
  stream.goes_away = owner_.draw_goaway();
  auto handed_over = intake_.hand_over(std::move(request), std::move(user), weak_from_this(), id);
  if (auto* answer = std::get_if<api::Response>(&handed_over)) return send_answer(id, stream, std::move(*answer));
  stream.exchange = std::get<std::shared_ptr<HttpExchange>>(std::move(handed_over));
}

/// Answers a request that is refused, without waiting for the rest of it.
void Http2Connection::refuse(StreamId id, Stream& stream, const Error& error) {
  const auto head = std::exchange(stream.request, std::nullopt);
  const UserPtr user = std::exchange(stream.user, nullptr);
  refuse(id, stream, head.value_or(api::Request()), user.get(), error);
}

void Http2Connection::refuse(StreamId id, Stream& stream, const api::Request& head, const api::UserInfo* user,
                             const Error& error, std::optional<int> http_status) {
  stream.request.reset();
  stream.user.reset();
  stream.body_due.reset();
  static_cast<void>(streams_.account(stream, 0));  // fewer always fit
  api::Response answer = status_response(error, http_status);
  intake_.audit(head, user, answer);
  send_answer(id, stream, std::move(answer));
}

void Http2Connection::send_head(StreamId id, api::Response& head, Http2Session::Body body) {
  intake_.complete(head);
  if (head.header("date").empty()) head.headers.emplace_back("Date", format_http_date(runtime::RealClock::read().wall));
  session_.respond(id, head, body);
  const Stream* stream = streams_.find(id);
  if (stream != nullptr && stream->goes_away) session_.submit_goaway();
}

void Http2Connection::send_answer(StreamId id, Stream& stream, api::Response response) {
  auto body = std::make_shared<const std::string>(std::exchange(response.body, {}));
  send_answer(id, stream, Answer{std::move(response), std::move(body), {}});
}

void Http2Connection::send_answer(StreamId id, Stream& stream, Answer answer) {
  api::Response& head = answer.head;
  std::erase_if(head.headers, [](const auto& field) { return equal_ignoring_case(field.first, "content-length"); });
  const bool asks_body = stream.method != api::Method::kHead;
  const bool pack = stream.gzip_offered && asks_body && answer.body->size() >= owner_.options().limits.gzip_bytes_min &&
                    head.header("content-encoding").empty();
  if (pack) {
    announce_gzip(head);
  } else if (!is_bodyless(head.status)) {
    head.headers.emplace_back("Content-Length", fmt::format("{}", answer.body->size()));
  }
  const bool has_body = asks_body && !is_bodyless(head.status) && !answer.body->empty();
  session_.set_priority(id, priority_of(answer.body->size()));
  if (has_body)
    stream.body.add({.data = std::move(answer.body),
                     .gzip = pack ? std::make_shared<GzipStream>() : nullptr,
                     .charge = std::move(answer.charge)});
  stream.exchange.reset();
  stream.answered = true;
  send_head(id, head, has_body ? Http2Session::Body::kFollows : Http2Session::Body::kNone);
}

void Http2Connection::on_answer(const std::shared_ptr<HttpExchange>& exchange, Answer answer) {
  Stream* stream = waiting_for(exchange);
  if (stream == nullptr) return;
  send_answer(exchange->stream, *stream, std::move(answer));
  flush_at_end();
}

void Http2Connection::on_answer_stream(const std::shared_ptr<HttpExchange>& exchange, api::Response head) {
  Stream* stream = waiting_for(exchange);
  if (stream == nullptr) return;
  if (stream->method == api::Method::kHead) {  // HEAD has no body
    streams_.drop_exchange(*stream);
    send_answer(exchange->stream, *stream, std::move(head));
  } else {
    stream->streams = !exchange->in_pieces;
    session_.set_priority(exchange->stream, stream->streams ? kWatchPriority : priority_of(kLargeAnswer + 1));
    if (exchange->in_pieces && stream->gzip_offered) {
      stream->gzip = std::make_shared<GzipStream>();
      announce_gzip(head);
    }
    send_head(exchange->stream, head, Http2Session::Body::kFollows);
    if (stream->streams && owner_.stopping()) end_stream(exchange->stream, *stream);
  }
  flush_at_end();
}

void Http2Connection::on_answer_data(const std::shared_ptr<HttpExchange>& exchange,
                                     std::shared_ptr<const std::string> chunk, ByteLedger::Charge charge) {
  Stream* stream = waiting_for(exchange);
  if (stream == nullptr) return;
  stream->body.add({.data = std::move(chunk), .of_stream = true, .gzip = stream->gzip, .charge = std::move(charge)});
  session_.resume(exchange->stream);
  if (writer_.waits() == SocketWriter::Wait::kNothing) flush_at_end();
}

void Http2Connection::on_answer_end(const std::shared_ptr<HttpExchange>& exchange) {
  Stream* stream = waiting_for(exchange);
  if (stream == nullptr) return;
  if (stream->gzip) {
    stream->body.add({.data = std::make_shared<const std::string>(),
                      .of_stream = true,
                      .ends_stream = true,
                      .gzip = std::move(stream->gzip)});
  }
  stream->answered = true;
  session_.resume(exchange->stream);
  flush_at_end();
}

void Http2Connection::on_answer_cut(const std::shared_ptr<HttpExchange>& exchange) {
  if (waiting_for(exchange) == nullptr) return;
  const auto self = shared_from_this();
  session_.reset(exchange->stream, Http2Session::Code::kInternalError);
  flush();
}

/// Resets the stream: a handler upgrades only a client that requests it, which HTTP/2 clients cannot; this is a mistake
/// of the handler.
void Http2Connection::on_answer_upgrade(const std::shared_ptr<HttpExchange>& exchange, api::Response) {
  Stream* stream = waiting_for(exchange);
  if (stream == nullptr) return;
  streams_.drop_exchange(*stream);
  session_.reset(exchange->stream, Http2Session::Code::kHttp11Required);
  flush_at_end();
}

Http2Session::BodyPart Http2Connection::next_body(StreamId id, std::size_t max) {
  Stream* stream = streams_.find(id);
  if (stream == nullptr) return {.bytes = {}, .last = true};
  const AnswerBody::Part part = stream->body.next(max);
  streams_.take(*stream, stream->body.take_packed_stream_bytes());
  return {.bytes = part.bytes, .last = part.last && stream->answered};
}

void Http2Connection::on_body_sent(StreamId id, std::size_t bytes) {
  Stream* stream = streams_.find(id);
  if (stream == nullptr || bytes == 0) return;
  stream->taken_bytes += static_cast<std::int64_t>(bytes);
  streams_.take(*stream, stream->body.take(bytes));
}

void Http2Connection::on_stream_closed(StreamId id) {
  if (!streams_.close(id) || !streams_.empty()) return;
  idle_since_ = runtime::RealClock::read_mono();
  owner_.set_idle(id_, true);
}

std::size_t Http2Connection::fill(std::string& ready) {
  if (!session_.pull(ready, SocketWriter::kReadyMax)) failed_ = true;
  return ready.size();
}

/// Sends at the end of the turn, so that all data of the turn are sent together.
void Http2Connection::flush_at_end() {
  if (std::exchange(flush_due_, true)) return;
  owner_.loop()->at_end_of_turn([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->flush_due_ = false;
    if (self->phase_ != Phase::kClosed) self->flush();
  });
}

void Http2Connection::flush() {
  if (phase_ == Phase::kLinger) return update_interest();
  const SocketWriter::Flushed flushed = writer_.flush();
  if (flushed == SocketWriter::Flushed::kFailed || failed_) return close();
  if (writer_.waits() == SocketWriter::Wait::kNothing)
    stall_.end();
  else if (!stall_.due())
    stall_.begin(runtime::RealClock::read_mono(), writer_.taken_bytes());
  after_turn();
}

void Http2Connection::after_turn() {
  if (session_.is_over() && writer_.empty()) {
    if (session_.flood()) intake_.count(Refusal::kFlood);
    return linger();
  }
  deadline_.reset();
  if (streams_.empty()) {
    const HttpLimits& limits = owner_.options().limits;
    const bool unproven = intake_.rank() == ClientRank::kUnproven;
    deadline_ = idle_since_ + (unproven ? std::min(limits.unproven_idle_max, limits.idle_max) : limits.idle_max);
  }
  arm_timer();
  update_interest();
}

/// Closes without a reset, which could take the last answer from a client that is still sending.
void Http2Connection::linger() {
  streams_.drop_exchanges();
  stream_->end_writing();
  phase_ = Phase::kLinger;
  stall_.end();
  deadline_ = runtime::RealClock::read_mono() + kLingerTime;
  arm_timer();
  update_interest();
}

void Http2Connection::wind_down() {
  const auto self = shared_from_this();
  if (phase_ != Phase::kOpen) return;
  session_.submit_goaway();
  for (auto& [id, stream] : streams_) {
    if (stream.streams && !stream.answered) end_stream(id, stream);
  }
  flush();
}

void Http2Connection::end_stream(StreamId id, Stream& stream) {
  streams_.drop_exchange(stream);
  stream.answered = true;
  session_.resume(id);
}

void Http2Connection::close() {
  if (std::exchange(phase_, Phase::kClosed) == Phase::kClosed) return;
  const auto self = shared_from_this();
  streams_.close_all();
  if (timer_due_) owner_.loop()->cancel(timer_);
  owner_.loop()->unwatch_fd(stream_->socket().fd());
  owner_.on_closed(id_);
}

/// Ends streams with bodies that do not arrive, and with answers that are not read.
void Http2Connection::check_streams(Instant now) {
  for (const auto& [id, refusal] : streams_.overdue(now)) {
    intake_.count(refusal);
    session_.reset(id, Http2Session::Code::kCancel);
  }
}

void Http2Connection::arm_timer() {
  std::optional<Instant> due = deadline_;
  const auto sooner = [&](Instant at) {
    if (!due || at < *due) due = at;
  };
  if (stall_.due()) sooner(*stall_.due());
  const HttpLimits& limits = owner_.options().limits;
  if (phase_ == Phase::kOpen && (!streams_.empty() || head_since_)) {
    const Instant now = runtime::RealClock::read_mono();
    sooner(now + std::min({kCheckInterval, limits.stalled_pressed_max, limits.header_max}));
  }
  if (!due || (timer_due_ && *timer_due_ <= *due)) return;
  if (timer_due_) owner_.loop()->cancel(timer_);
  timer_due_ = due;
  timer_ = owner_.loop()->at(*due, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->on_timer();
  });
}

void Http2Connection::on_timer() {
  timer_due_.reset();
  const Instant now = runtime::RealClock::read_mono();
  const HttpLimits& limits = owner_.options().limits;
  if (stall_.due() && *stall_.due() <= now &&
      stall_.is_stalled(now, writer_.taken_bytes(), owner_.answer_context()->ledger->pressed())) {
    intake_.count(Refusal::kStalled);
    return close();
  }
  if (deadline_ && *deadline_ <= now) {
    if (phase_ == Phase::kLinger || std::exchange(goaway_sent_, true)) return close();
    if (requests_ == 0) intake_.count(Refusal::kHandshakeTime);
    session_.terminate(Http2Session::Code::kNoError);
    return flush();
  }
  if (head_since_ && *head_since_ + limits.header_max <= now) {
    intake_.count(Refusal::kRequestTime);
    return close();
  }
  if (phase_ == Phase::kOpen && !streams_.empty()) {
    if (pinged_ && now >= last_received_ + kSilenceMax + kPingAnswerMax) return close();
    if (now >= last_received_ + kSilenceMax && !std::exchange(pinged_, true)) session_.ping();
    check_streams(now);
    return flush();
  }
  arm_timer();
}

void Http2Connection::update_interest() {
  short interest = POLLIN;
  if (input_wants_write_ || writer_.waits() == SocketWriter::Wait::kWritable) interest |= POLLOUT;
  if (interest == interest_) return;
  interest_ = interest;
  owner_.loop()->rewatch_fd(stream_->socket().fd(), interest);
}

}  // namespace spillway::wire
