#include "wire/server/http_connection.h"

#include "api/text/identities.h"
#include "runtime/clock.h"

#include <poll.h>

#include <algorithm>
#include <utility>

namespace spillway::wire {

namespace {

constexpr int kReadsPerTurn = 8;  // then the other connections of the thread have their turn
constexpr std::size_t kLingerMax = std::size_t{4} * 1024 * 1024;
constexpr Duration kLingerTime = seconds(2);

bool is_bodyless(int status) {
  return status == 204 || status == 304;
}

}  // namespace

HttpConnection::HttpConnection(std::uint64_t id, Owner& owner, std::unique_ptr<ByteStream> stream, std::string address)
    : id_(id),
      owner_(owner),
      stream_(std::move(stream)),
      address_(std::move(address)),
      client_(address_),
      parser_(owner.options().limits.request),
      output_(*stream_) {}

HttpConnection::~HttpConnection() {
  if (current_.exchange) current_.exchange->gone = true;
}

void HttpConnection::start() {
  enter(Phase::kHandshake);
  interest_ = POLLIN;
  owner_.loop()->watch_fd(stream_->socket().fd(), interest_, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    if (self->interest_ == 0) return self->close();  // reported although nothing is waited for: the peer is gone
    self->on_ready();
  });
  on_ready();
}

void HttpConnection::on_ready() {
  const auto self = shared_from_this();  // a callback may close the connection
  if (phase_ == Phase::kClosed) return;
  if (phase_ == Phase::kHandshake && !shake_hands()) return;
  flush();
  if (phase_ != Phase::kClosed) receive();
  if (phase_ != Phase::kClosed) update_interest();
}

/// True once data may flow.
bool HttpConnection::shake_hands() {
  const ByteStream::Step step = stream_->handshake();
  if (step == ByteStream::Step::kDone) {
    input_wants_write_ = false;
    peer_ = stream_->peer_certificate();
    if (peer_ && !peer_->problem) {
      client_ = peer_->common_name;
      if (!prove(rank_of({peer_->common_name, "", peer_->organizations}))) {
        close();
        return false;
      }
    }
    enter(Phase::kIdle);
    return true;
  }
  if (step == ByteStream::Step::kEnd || step == ByteStream::Step::kFailed) {
    owner_.options().log.debug("tls handshake failed", {{"err", stream_->problem()}});
    close();
    return false;
  }
  input_wants_write_ = step == ByteStream::Step::kWaitWrite;
  update_interest();
  return false;
}

bool HttpConnection::wants_input() const {
  if (end_of_input_) return false;
  return phase_ != Phase::kAnswer || input_.size() < kPipelinedMax;
}

void HttpConnection::receive() {
  const std::span<char> scratch = owner_.scratch();
  input_wants_write_ = false;
  for (int reads = 0; wants_input(); ++reads) {
    if (reads == kReadsPerTurn) {
      if (stream_->has_buffered()) look_again();  // the socket reports itself again, decrypted bytes do not
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
    input_.append(scratch.data(), moved.bytes);
    if (phase_ != Phase::kAnswer) parse();
    if (phase_ != Phase::kClosed) settle_account();
    if (phase_ == Phase::kClosed) return;
  }
}

void HttpConnection::look_again() {
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
      if (!*current_.user) return refuse(current_.user->error(), std::nullopt);  // whose body is not waited for
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

/// Finds out who sends the request, once its head is complete. False: it has been refused. Who could not be found out
/// is told with the answer.
bool HttpConnection::authenticate() {
  const HttpServer::Options& options = owner_.options();
  current_.user = api::UserInfo{std::string(api::kAnonymousUser), "", {std::string(api::kUnauthenticatedGroup)}};
  if (options.authenticator)
    current_.user = options.authenticator->authenticate(peer_, parser_.request(), runtime::RealClock::read().wall);
  if (!*current_.user) return true;
  const ClientRank rank = rank_of(**current_.user);
  if (rank != ClientRank::kUnproven) client_ = (*current_.user)->name;
  if (prove(rank)) return true;
  owner_.desk().refusals->count(Refusal::kConnections, client_, runtime::RealClock::read_mono());
  refuse(make_error(ErrorCode::kTooManyRequests, "too many connections, please try again later"), 429);
  return false;
}

bool HttpConnection::prove(ClientRank rank) {
  if (rank == ClientRank::kUnproven || rank == rank_) return true;
  rank_ = rank;
  return owner_.prove(id_, rank);
}

void HttpConnection::dispatch() {
  current_.http_1_0 = parser_.http_1_0();
  current_.keep_alive = parser_.keep_alive() && !current_.http_1_0;
  if (!current_.user && !authenticate()) return;
  if (*current_.user && is_too_large(parser_.request().body.size())) return refuse_body();
  Result<api::UserInfo> identified = *std::exchange(current_.user, std::nullopt);
  api::Request request = parser_.take();
  current_.method = request.method;
  current_.gzip_offered = offers_gzip(request.header("accept-encoding"));
  current_.body_bytes = request.body.size();
  enter(Phase::kAnswer);

  if (!identified) return send_answer(status_response(identified.error()));
  api::UserInfo user = *std::move(identified);
  const HttpServer::Options& options = owner_.options();
  const bool keeps_token =
      options.authenticator && options.authenticator->tokens_judged() == Authenticator::Tokens::kHandler;
  if (!keeps_token) std::erase_if(request.headers, [](const auto& header) { return header.first == "authorization"; });

  current_.exchange = std::make_shared<HttpExchange>();
  current_.exchange->client = user.name;
  current_.exchange->rank = rank_of(user);
  current_.exchange->of = class_of(current_.exchange->rank, current_.method, request.target);
  const bool reads = current_.method == api::Method::kGet || current_.method == api::Method::kHead;
  current_.exchange->repeatable = reads && current_.exchange->of != RequestClass::kHeartbeat;
  auto sink = std::make_shared<HttpSink>(current_.exchange, weak_from_this(), owner_.loop(), owner_.desk());
  const auto refusal = owner_.deliver(current_.exchange, std::move(request), std::move(user), std::move(sink));
  if (!refusal) return;
  owner_.desk().refusals->count(*refusal, current_.exchange->client, runtime::RealClock::read_mono());
  current_.exchange->gone = true;  // nothing more comes of it
  current_.exchange.reset();
  send_answer(
      *refusal == Refusal::kWaitingBytes
          ? no_room_response()
          : status_response(make_error(ErrorCode::kTooManyRequests, "too many requests, please try again later")));
}

/// Answers a request that could not be taken in, and closes: where the next one would begin is unknown.
void HttpConnection::refuse(const Error& error, std::optional<int> http_status) {
  current_.refused = true;
  current_.keep_alive = false;
  const api::Request& request = parser_.request();
  current_.method = request.method;
  enter(Phase::kAnswer);
  const HttpServer::Options& options = owner_.options();
  if (error.code == ErrorCode::kRequestEntityTooLarge && options.authenticator && !current_.user) {
    const auto user = options.authenticator->authenticate(peer_, request, runtime::RealClock::read().wall);
    if (!user) return send_answer(status_response(user.error()));
  }
  if (error.code == ErrorCode::kBadRequest)
    owner_.desk().refusals->count(Refusal::kMalformed, client_, runtime::RealClock::read_mono());
  send_answer(status_response(error, http_status));
}

std::string HttpConnection::head_of(api::Response& response, Framing framing, std::size_t body_bytes) {
  if (response.header("audit-id").empty()) response.headers.emplace_back("Audit-Id", owner_.make_audit_id());
  if (response.header("cache-control").empty()) {
    response.headers.emplace_back("Cache-Control", "no-cache, private");
  }
  return format_response_head(response, {framing, body_bytes, current_.keep_alive, runtime::RealClock::read().wall});
}

void HttpConnection::send_answer(api::Response response) {
  auto body = std::make_shared<const std::string>(std::exchange(response.body, {}));
  send_answer(Answer{std::move(response), std::move(body), {}});
}

void HttpConnection::send_answer(Answer answer) {
  api::Response& response = answer.head;
  const bool pack = current_.gzip_offered && !current_.http_1_0 && current_.method != api::Method::kHead &&
                    answer.body->size() >= owner_.options().limits.gzip_bytes_min &&
                    response.header("content-encoding").empty();
  if (pack) {
    response.headers.emplace_back("Content-Encoding", "gzip");
    response.headers.emplace_back("Vary", "Accept-Encoding");
  }
  const Framing framing = pack ? Framing::kChunked : is_bodyless(response.status) ? Framing::kNone : Framing::kLength;
  output_.add(head_of(response, framing, answer.body->size()));
  if (framing != Framing::kNone && current_.method != api::Method::kHead && !answer.body->empty()) {
    output_.add(OutputQueue::Piece{.data = std::move(answer.body),
                                   .gzip = pack ? std::make_unique<GzipStream>() : nullptr,
                                   .charge = std::move(answer.charge)});
  }
  current_.exchange.reset();
  current_.answered = true;
  flush();
}

void HttpConnection::on_answer(const std::shared_ptr<HttpExchange>& exchange, Answer answer) {
  if (phase_ == Phase::kClosed || exchange != current_.exchange) return;
  const auto self = shared_from_this();
  send_answer(std::move(answer));
  if (phase_ != Phase::kClosed) update_interest();
}

void HttpConnection::on_answer_stream(const std::shared_ptr<HttpExchange>& exchange, api::Response head) {
  if (phase_ == Phase::kClosed || exchange != current_.exchange) return;
  const auto self = shared_from_this();
  if (end_of_input_) return close();
  if (current_.method == api::Method::kHead) {  // nobody waits for the body
    drop_exchange();
    send_answer(std::move(head));
    if (phase_ != Phase::kClosed) update_interest();
    return;
  }
  using AnswerBody = CurrentRequest::AnswerBody;
  current_.body = current_.http_1_0 ? AnswerBody::kUntilEnd : AnswerBody::kChunks;
  output_.add(head_of(head, current_.http_1_0 ? Framing::kUntilEnd : Framing::kChunked, 0));
  flush();
  if (phase_ != Phase::kClosed) update_interest();
}

void HttpConnection::on_answer_data(const std::shared_ptr<HttpExchange>& exchange,
                                    std::shared_ptr<const std::string> chunk, ByteLedger::Charge charge) {
  if (phase_ == Phase::kClosed || exchange != current_.exchange) return;
  const auto self = shared_from_this();
  output_.add(OutputQueue::Piece{.data = std::move(chunk),
                                 .as_chunks = current_.body == CurrentRequest::AnswerBody::kChunks,
                                 .of_stream = true,
                                 .gzip = nullptr,
                                 .charge = std::move(charge)});
  if (output_.waits() == OutputQueue::Wait::kNothing) flush();
  if (phase_ != Phase::kClosed) update_interest();
}

void HttpConnection::on_answer_end(const std::shared_ptr<HttpExchange>& exchange) {
  if (phase_ == Phase::kClosed || exchange != current_.exchange) return;
  const auto self = shared_from_this();
  if (current_.body == CurrentRequest::AnswerBody::kChunks) output_.add(std::string(kLastChunk));
  current_.answered = true;
  flush();
  if (phase_ != Phase::kClosed) update_interest();
}

void HttpConnection::flush() {
  const OutputQueue::Flushed flushed = output_.flush();
  if (current_.exchange) current_.exchange->waiting_bytes.fetch_sub(flushed.stream_bytes);
  if (flushed.failed) return close();
  if (output_.waits() != OutputQueue::Wait::kNothing) {
    if (!write_deadline_) watch_progress();
    return;
  }
  write_deadline_.reset();
  if (current_.answered) on_drained();
}

/// Begins to look whether the client takes what waits for it.
void HttpConnection::watch_progress() {
  const HttpLimits& limits = owner_.options().limits;
  watched_since_ = runtime::RealClock::read_mono();
  taken_before_ = output_.taken_bytes();
  write_deadline_ = watched_since_ + std::min(limits.stalled_pressed_max, limits.stalled_max);
  arm_timer();
}

bool HttpConnection::is_stalled(Instant now) {
  const HttpLimits& limits = owner_.options().limits;
  if (output_.taken_bytes() - taken_before_ >= static_cast<std::int64_t>(limits.taken_bytes_min)) {
    watch_progress();
    return false;
  }
  const Instant last = watched_since_ + limits.stalled_max;
  if (now >= last || owner_.desk().ledger->pressed()) return true;
  write_deadline_ = std::min(now + limits.stalled_pressed_max, last);
  arm_timer();
  return false;
}

/// The answer has left completely.
void HttpConnection::on_drained() {
  const CurrentRequest done = std::exchange(current_, {});
  if (!done.keep_alive || end_of_input_) return linger(done.refused ? Unread::kRest : Unread::kNothing);
  enter(Phase::kIdle);
  settle_account();
  if (input_.empty()) {
    input_ = {};
  } else {
    look_again();  // at what came in the meantime; not from here, which would nest as deep as requests are queued
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
  if (!current_.streams() || current_.answered) return;
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
  if (std::exchange(phase_, Phase::kClosed) == Phase::kClosed) return;
  const auto self = shared_from_this();
  drop_exchange();
  if (timer_due_) owner_.loop()->cancel(timer_);
  owner_.loop()->unwatch_fd(stream_->socket().fd());
  owner_.account(-static_cast<std::ptrdiff_t>(std::exchange(accounted_, 0)), rank_);
  output_.clear();
  owner_.on_closed(id_);
}

/// For a client that has not shown who it is.
bool HttpConnection::is_too_large(std::size_t body_bytes) const {
  const HttpServer::Options& options = owner_.options();
  return rank_ == ClientRank::kUnproven && options.authenticator && body_bytes > options.limits.unproven_body_bytes_max;
}

void HttpConnection::refuse_body() {
  refuse(make_error(ErrorCode::kRequestEntityTooLarge, "Request entity too large: limit is {} without credentials",
                    owner_.options().limits.unproven_body_bytes_max),
         std::nullopt);
}

/// Keeps the server's count of request bytes in memory true.
void HttpConnection::settle_account() {
  const std::size_t held = input_.size() + current_.body_bytes + parser_.request().body.size();
  const auto change = static_cast<std::ptrdiff_t>(held) - static_cast<std::ptrdiff_t>(accounted_);
  accounted_ = held;
  const bool room = owner_.account(change, rank_);
  if (phase_ != Phase::kBody && phase_ != Phase::kHeader) return;
  if (phase_ == Phase::kBody && is_too_large(parser_.request().body.size())) return refuse_body();
  if (room) return;
  owner_.desk().refusals->count(Refusal::kRequestBytes, client_, runtime::RealClock::read_mono());
  refuse(make_error(ErrorCode::kTooManyRequests, "too many requests at once, please try again later"), 429);
}

void HttpConnection::enter(Phase phase) {
  if ((phase == Phase::kIdle) != (phase_ == Phase::kIdle)) owner_.set_idle(id_, phase == Phase::kIdle);
  if (phase == Phase::kAnswer) ++requests_;
  phase_ = phase;
  const HttpLimits& limits = owner_.options().limits;
  const bool unproven = rank_ == ClientRank::kUnproven;
  std::optional<Duration> at_most;
  switch (phase) {
    case Phase::kHandshake:
      at_most = limits.handshake_max;
      break;
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

/// One timer for both deadlines. It is moved only to come earlier; one that fires early is set again, which is cheaper
/// than moving it with every request.
void HttpConnection::arm_timer() {
  std::optional<Instant> due = phase_deadline_;
  if (write_deadline_ && (!due || *write_deadline_ < *due)) due = write_deadline_;
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
  if (write_deadline_ && *write_deadline_ <= now && is_stalled(now)) {
    if (current_.streams()) owner_.count_slow_stream();
    owner_.desk().refusals->count(Refusal::kStalled, client_, now);
    return close();
  }
  if (phase_deadline_ && *phase_deadline_ <= now) {
    const bool asked = phase_ == Phase::kHeader || phase_ == Phase::kBody;
    const bool asks = phase_ == Phase::kHandshake || (phase_ == Phase::kIdle && requests_ == 0);
    if (asked || asks)
      owner_.desk().refusals->count(asked ? Refusal::kRequestTime : Refusal::kHandshakeTime, client_, now);
    return close();
  }
  arm_timer();
}

void HttpConnection::update_interest() {
  short interest = 0;
  if (wants_input() || output_.waits() == OutputQueue::Wait::kReadable) interest |= POLLIN;
  if (input_wants_write_ || output_.waits() == OutputQueue::Wait::kWritable) interest |= POLLOUT;
  if (interest == interest_) return;
  interest_ = interest;
  owner_.loop()->rewatch_fd(stream_->socket().fd(), interest);
}

}  // namespace spillway::wire
