#include "wire/server/http_connection.h"

#include "runtime/clock.h"
#include "wire/net/socket.h"

#include <poll.h>

#include <algorithm>
#include <utility>

namespace spillway::wire {

HttpConnection::HttpConnection(std::uint64_t id, ConnectionOwner& owner, std::unique_ptr<ByteStream> stream,
                               std::string address)
    : id_(id),
      owner_(owner),
      stream_(std::move(stream)),
      intake_(id, owner, std::move(address), peer_address(stream_->socket())),
      parser_(owner.options().limits.request),
      writer_(*stream_, output_),
      stall_(owner.options().limits) {}

HttpConnection::~HttpConnection() {
  if (current_.exchange) current_.exchange->gone = true;
}

void HttpConnection::start() {
  interest_ = POLLIN;
  owner_.loop()->watch_fd(stream_->socket().fd(), interest_, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    if (self->interest_ == 0) return self->close();  // an event although none is requested: the peer has disconnected
    self->on_ready();
  });
  owner_.set_idle(id_, true);
  if (!intake_.accept(stream_->peer_certificate())) return close();
  enter(Phase::kIdle);
  on_ready();
}

void HttpConnection::on_ready() {
  const auto self = shared_from_this();  // a callback may close the connection
  if (phase_ == Phase::kClosed) return;
  flush();
  if (phase_ != Phase::kClosed) receive();
  if (phase_ != Phase::kClosed) update_interest();
}

bool HttpConnection::wants_input() const {
  if (end_of_input_) return false;
  if (current_.upgraded) return current_.exchange && current_.exchange->input_bytes < kInputMax;
  return phase_ != Phase::kAnswer || input_.size() < kPipelinedMax;
}

void HttpConnection::receive() {
  const std::span<char> scratch = owner_.scratch();
  input_wants_write_ = false;
  for (int reads = 0; wants_input(); ++reads) {
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
        on_end_of_input();
        return;
      case ByteStream::Step::kFailed:
        close();
        return;
      case ByteStream::Step::kDone:
        break;
    }
    if (phase_ == Phase::kLinger) {
      lingered_bytes_ += moved.bytes;
      if (lingered_bytes_ > kLingerMax) return close();
      continue;
    }
    if (current_.upgraded) {
      pass_input({scratch.data(), moved.bytes});
      continue;
    }
    input_.append(scratch.data(), moved.bytes);
    if (phase_ != Phase::kAnswer) parse();
    if (phase_ != Phase::kClosed) update_account();
    if (phase_ == Phase::kClosed) return;
  }
}

void HttpConnection::pass_input(std::string_view bytes) {
  if (!current_.exchange) return;
  current_.exchange->input_bytes.fetch_add(bytes.size());
  owner_.pass_input(current_.exchange, std::string(bytes));
}

void HttpConnection::requeue() {
  owner_.loop()->post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || self->phase_ == Phase::kClosed) return;
    if (self->phase_ == Phase::kIdle) self->parse();
    self->on_ready();
  });
}

void HttpConnection::on_end_of_input() {
  end_of_input_ = true;
  // A client that only closed its sending side still gets the answer to its request; a watch is over.
  if (phase_ != Phase::kAnswer || current_.streams()) close();
}

void HttpConnection::parse() {
  if (input_.empty()) return;
  auto step = parser_.feed(input_);
  if (!step) return refuse(step.error(), parser_.http_status());
  switch (*step) {
    case RequestParser::Step::kNeedMore:
      if (parser_.started() && phase_ == Phase::kIdle) enter(Phase::kHeader);
      break;
    case RequestParser::Step::kBody:
      if (!current_.user && !authenticate()) return;
      if (!*current_.user) return refuse(current_.user->error(), std::nullopt);  // refused without reading the body
      if (phase_ != Phase::kBody) enter(Phase::kBody);
      if (parser_.expects_continue() && !parser_.http_1_0() && !std::exchange(current_.continue_sent, true)) {
        output_.add("HTTP/1.1 100 Continue\r\n\r\n");
        flush();
      }
      break;
    case RequestParser::Step::kDone:
      dispatch();
      break;
  }
}

/// Authenticates the sender of the request, once its head is complete. False: it was refused. An authentication that
/// fails is reported with the answer.
bool HttpConnection::authenticate() {
  current_.user = intake_.identify(parser_.request());
  if (!*current_.user || intake_.admit(***current_.user)) return true;
  refuse(make_error(ErrorCode::kTooManyRequests, "too many connections, please try again later"), 429);
  return false;
}

void HttpConnection::dispatch() {
  current_.http_1_0 = parser_.http_1_0();
  current_.keep_alive = parser_.keep_alive() && !current_.http_1_0;
  if (!current_.user && !authenticate()) return;
  if (*current_.user && intake_.is_too_large(parser_.request().body.size()))
    return refuse(intake_.too_large(), std::nullopt);
  Result<UserPtr> identified = *std::exchange(current_.user, std::nullopt);
  api::Request request = parser_.take();
  current_.method = request.method;
  current_.gzip_offered = offers_gzip(request.header("accept-encoding"));
  current_.body_bytes = request.body.size();
  enter(Phase::kAnswer);

  if (!identified) return deny(request, nullptr, status_response(identified.error()));
  auto handed_over = intake_.hand_over(std::move(request), *std::move(identified), weak_from_this());
  if (auto* answer = std::get_if<api::Response>(&handed_over)) return send_answer(std::move(*answer));
  current_.exchange = std::get<std::shared_ptr<HttpExchange>>(std::move(handed_over));
}

/// Answers a request that could not be read completely, and closes: the beginning of the next one is unknown.
void HttpConnection::refuse(const Error& error, std::optional<int> http_status) {
  current_.refused = true;
  current_.keep_alive = false;
  const api::Request& request = parser_.request();
  current_.method = request.method;
  enter(Phase::kAnswer);
  if (error.code == ErrorCode::kRequestEntityTooLarge && !current_.user) {
    const auto user = intake_.identify(request);
    if (!user) return deny(request, nullptr, status_response(user.error()));
  }
  if (error.code == ErrorCode::kBadRequest) intake_.count(Refusal::kMalformed);
  const bool known = current_.user && *current_.user;
  deny(request, known ? (**current_.user).get() : nullptr, status_response(error, http_status));
}

void HttpConnection::deny(const api::Request& head, const api::UserInfo* user, api::Response answer) {
  intake_.audit(head, user, answer);
  send_answer(std::move(answer));
}

std::string HttpConnection::head_of(api::Response& response, Framing framing, std::size_t body_bytes) {
  intake_.complete(response);
  return format_response_head(response, {framing, body_bytes, current_.keep_alive, runtime::RealClock::read().wall});
}

void HttpConnection::send_answer(api::Response response) {
  auto body = std::make_shared<const std::string>(std::exchange(response.body, {}));
  send_answer(Answer{std::move(response), std::move(body), {}});
}

void HttpConnection::send_answer(Answer answer) {
  put_answer(std::move(answer));
  flush();
}

void HttpConnection::put_answer(Answer answer) {
  api::Response& response = answer.head;
  const bool pack = current_.gzip_offered && !current_.http_1_0 && current_.method != api::Method::kHead &&
                    answer.body->size() >= owner_.options().limits.gzip_bytes_min &&
                    response.header("content-encoding").empty();
  if (pack) announce_gzip(response);
  const Framing framing = pack ? Framing::kChunked : is_bodyless(response.status) ? Framing::kNone : Framing::kLength;
  output_.add(head_of(response, framing, answer.body->size()));
  if (framing != Framing::kNone && current_.method != api::Method::kHead && !answer.body->empty()) {
    output_.add(OutputQueue::Piece{.data = std::move(answer.body),
                                   .gzip = pack ? std::make_shared<GzipStream>() : nullptr,
                                   .charge = std::move(answer.charge)});
  }
  current_.exchange.reset();
  current_.answered = true;
}

void HttpConnection::on_answer(const std::shared_ptr<HttpExchange>& exchange, Answer answer) {
  if (phase_ == Phase::kClosed || exchange != current_.exchange) return;
  put_answer(std::move(answer));
  flush_at_end();
}

void HttpConnection::on_answer_stream(const std::shared_ptr<HttpExchange>& exchange, api::Response head) {
  if (phase_ == Phase::kClosed || exchange != current_.exchange) return;
  const auto self = shared_from_this();
  if (end_of_input_ && !exchange->in_pieces) return close();
  if (current_.method == api::Method::kHead) {  // HEAD has no body
    drop_exchange();
    send_answer(std::move(head));
    if (phase_ != Phase::kClosed) update_interest();
    return;
  }
  using AnswerBody = CurrentRequest::AnswerBody;
  current_.in_pieces = exchange->in_pieces;
  current_.body = current_.http_1_0 ? AnswerBody::kUntilEnd : AnswerBody::kChunks;
  if (current_.in_pieces && current_.gzip_offered && !current_.http_1_0) {
    current_.gzip = std::make_shared<GzipStream>();
    announce_gzip(head);
  }
  output_.add(head_of(head, current_.http_1_0 ? Framing::kUntilEnd : Framing::kChunked, 0));
  if (current_.streams() && owner_.stopping()) return end_stream();
  flush_at_end();
}

void HttpConnection::on_answer_data(const std::shared_ptr<HttpExchange>& exchange,
                                    std::shared_ptr<const std::string> chunk, ByteLedger::Charge charge) {
  if (phase_ == Phase::kClosed || exchange != current_.exchange || current_.answered) return;
  output_.add(OutputQueue::Piece{.data = std::move(chunk),
                                 .as_chunks = current_.body == CurrentRequest::AnswerBody::kChunks,
                                 .of_stream = true,
                                 .gzip = current_.gzip,
                                 .charge = std::move(charge)});
  if (writer_.waits() == SocketWriter::Wait::kNothing) flush_at_end();
}

void HttpConnection::on_answer_upgrade(const std::shared_ptr<HttpExchange>& exchange, api::Response head) {
  if (phase_ == Phase::kClosed || exchange != current_.exchange) return;
  const auto self = shared_from_this();
  if (end_of_input_) return close();
  current_.body = CurrentRequest::AnswerBody::kUntilEnd;
  current_.keep_alive = false;
  current_.upgraded = true;
  output_.add(format_upgrade_head(head));
  if (!input_.empty()) pass_input(std::exchange(input_, {}));
  update_account();
  flush();
  if (phase_ != Phase::kClosed) receive();  // bytes that TLS has decrypted already are reported by no socket
  if (phase_ != Phase::kClosed) update_interest();
}

void HttpConnection::on_input_room(const std::shared_ptr<HttpExchange>& exchange) {
  if (phase_ == Phase::kClosed || exchange != current_.exchange || !current_.upgraded) return;
  const auto self = shared_from_this();
  receive();
  if (phase_ != Phase::kClosed) update_interest();
}

void HttpConnection::on_answer_end(const std::shared_ptr<HttpExchange>& exchange) {
  if (phase_ == Phase::kClosed || exchange != current_.exchange || current_.answered) return;
  const auto self = shared_from_this();
  if (current_.gzip) {
    output_.add(OutputQueue::Piece{
        .data = std::make_shared<const std::string>(), .of_stream = true, .ends_stream = true, .gzip = current_.gzip});
  } else if (current_.body == CurrentRequest::AnswerBody::kChunks) {
    output_.add(std::string(kLastChunk));
  }
  current_.answered = true;
  flush_at_end();
}

/// Sends at the end of the turn, so that all data of the turn are sent together.
void HttpConnection::flush_at_end() {
  if (std::exchange(flush_due_, true)) return;
  owner_.loop()->at_end_of_turn([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->flush_due_ = false;
    if (self->phase_ == Phase::kClosed) return;
    self->flush();
    if (self->phase_ != Phase::kClosed) self->update_interest();
  });
}

void HttpConnection::on_answer_cut(const std::shared_ptr<HttpExchange>& exchange) {
  if (exchange == current_.exchange) close();
}

void HttpConnection::flush() {
  const SocketWriter::Flushed flushed = writer_.flush();
  const std::size_t sent = output_.take_sent_stream_bytes();
  if (current_.exchange && current_.exchange->take(sent)) owner_.report_room(current_.exchange);
  if (flushed == SocketWriter::Flushed::kFailed) return close();
  if (writer_.waits() != SocketWriter::Wait::kNothing) {
    if (!stall_.due()) stall_.begin(runtime::RealClock::read_mono(), writer_.taken_bytes());
    return arm_timer();
  }
  stall_.end();
  if (current_.answered) on_drained();
}

/// The answer has left completely.
void HttpConnection::on_drained() {
  const CurrentRequest done = std::exchange(current_, {});
  if (!done.keep_alive || end_of_input_)
    return linger(done.refused || done.upgraded ? Unread::kRest : Unread::kNothing);
  enter(Phase::kIdle);
  update_account();
  if (input_.empty()) {
    input_ = {};
  } else {
    requeue();  // for data received meanwhile; not from here, which would nest one level per queued request
  }
}

/// Closes; without a reset, which could take the answer from a client that is still sending.
void HttpConnection::linger(Unread unread) {
  stream_->end_writing();
  if (end_of_input_ || (unread == Unread::kNothing && input_.empty())) return close();
  input_ = {};
  enter(Phase::kLinger);
}

void HttpConnection::wind_down() {
  const auto self = shared_from_this();
  if (phase_ == Phase::kClosed || phase_ == Phase::kLinger) return;
  if (phase_ != Phase::kAnswer) return close();
  current_.keep_alive = false;
  if (current_.streams() && !current_.answered) end_stream();
}

void HttpConnection::end_stream() {
  const std::shared_ptr<HttpExchange> exchange = current_.exchange;
  exchange->gone = true;
  owner_.report_gone(exchange);
  on_answer_end(exchange);
}

void HttpConnection::drop_exchange() {
  if (!current_.exchange) return;
  current_.exchange->gone = true;
  owner_.report_gone(std::move(current_.exchange));
  current_.exchange.reset();
}

void HttpConnection::close() {
  const Phase before = std::exchange(phase_, Phase::kClosed);
  if (before == Phase::kClosed) return;
  if (before == Phase::kAnswer) owner_.count_streams(-1);
  // In HTTP/1.0 the end of the connection is the end of the answer: a cut answer must not look complete.
  if (current_.in_pieces && current_.http_1_0) close_as_failure(stream_->socket());
  const auto self = shared_from_this();
  drop_exchange();
  if (timer_due_) owner_.loop()->cancel(timer_);
  owner_.loop()->unwatch_fd(stream_->socket().fd());
  owner_.account(-static_cast<std::ptrdiff_t>(std::exchange(accounted_, 0)), intake_.rank());
  output_.clear();
  owner_.on_closed(id_);
}

/// Keeps the server's count of request bytes in memory true.
void HttpConnection::update_account() {
  const std::size_t held = input_.size() + current_.body_bytes + parser_.request().body.size();
  const auto change = static_cast<std::ptrdiff_t>(held) - static_cast<std::ptrdiff_t>(accounted_);
  accounted_ = held;
  const bool room = owner_.account(change, intake_.rank());
  if (phase_ != Phase::kBody && phase_ != Phase::kHeader) return;
  if (phase_ == Phase::kBody && intake_.is_too_large(parser_.request().body.size()))
    return refuse(intake_.too_large(), std::nullopt);
  if (room) return;
  intake_.count(Refusal::kRequestBytes);
  refuse(make_error(ErrorCode::kTooManyRequests, "too many requests at once, please try again later"), 429);
}

void HttpConnection::enter(Phase phase) {
  if ((phase == Phase::kIdle) != (phase_ == Phase::kIdle)) owner_.set_idle(id_, phase == Phase::kIdle);
  if (phase == Phase::kAnswer) ++requests_;
  if ((phase == Phase::kAnswer) != (phase_ == Phase::kAnswer)) owner_.count_streams(phase == Phase::kAnswer ? 1 : -1);
  phase_ = phase;
  const HttpLimits& limits = owner_.options().limits;
  const bool unproven = intake_.rank() == ClientRank::kUnproven;
  std::optional<Duration> at_most;
  switch (phase) {
    case Phase::kIdle:
      at_most = unproven ? std::min(limits.unproven_idle_max, limits.idle_max) : limits.idle_max;
      break;
    case Phase::kHeader:
      at_most = limits.header_max;
      break;
    case Phase::kBody:
      at_most = unproven ? std::min(limits.header_max, limits.body_max) : limits.body_max;
      break;
    case Phase::kLinger:
      at_most = kLingerTime;
      break;
    case Phase::kAnswer:
    case Phase::kClosed:
      break;
  }
  phase_deadline_.reset();
  if (!at_most) return;
  phase_deadline_ = runtime::RealClock::read_mono() + *at_most;
  arm_timer();
}

/// Sets one timer for both deadlines. It is moved only to an earlier time; one that fires early is set again, which is
/// cheaper than moving it with every request.
void HttpConnection::arm_timer() {
  std::optional<Instant> due = phase_deadline_;
  if (stall_.due() && (!due || *stall_.due() < *due)) due = stall_.due();
  if (!due || (timer_due_ && *timer_due_ <= *due)) return;
  if (timer_due_) owner_.loop()->cancel(timer_);
  timer_due_ = due;
  timer_ = owner_.loop()->at(*due, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->on_timer();
  });
}

void HttpConnection::on_timer() {
  timer_due_.reset();
  const Instant now = runtime::RealClock::read_mono();
  if (stall_.due() && *stall_.due() <= now &&
      stall_.is_stalled(now, writer_.taken_bytes(), owner_.answer_context()->ledger->pressed())) {
    if (current_.streams()) owner_.count_slow_stream();
    intake_.count(Refusal::kStalled);
    return close();
  }
  if (phase_deadline_ && *phase_deadline_ <= now) {
    const bool asked = phase_ == Phase::kHeader || phase_ == Phase::kBody;
    const bool asks = phase_ == Phase::kIdle && requests_ == 0;
    if (asked || asks) intake_.count(asked ? Refusal::kRequestTime : Refusal::kHandshakeTime);
    return close();
  }
  arm_timer();
}

void HttpConnection::update_interest() {
  short interest = 0;
  if (wants_input() || writer_.waits() == SocketWriter::Wait::kReadable) interest |= POLLIN;
  if (input_wants_write_ || writer_.waits() == SocketWriter::Wait::kWritable) interest |= POLLOUT;
  if (interest == interest_) return;
  interest_ = interest;
  owner_.loop()->rewatch_fd(stream_->socket().fd(), interest);
}

}  // namespace spillway::wire
