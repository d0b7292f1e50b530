#include "wire/client/http_client.h"

#include "wire/client/exchange_carrier.h"
#include "wire/client/http_client_connection.h"
#include "wire/client/server_dial.h"
#include "wire/net/name_lookup.h"

#include <fmt/format.h>

#include <array>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace spillway::wire {

namespace {

constexpr int kUnauthorized = 401;
/// The number of times that a request is sent which the server has not processed.
constexpr int kTriesMax = 6;

}  // namespace

/// The exchanges of a client and the connections that carry them.
class HttpClient::Pool final : public ExchangeCarrier::Owner, public std::enable_shared_from_this<Pool> {
 public:
  Pool(runtime::Loop& loop, HttpEndpoint endpoint, Limits limits)
      : loop_(loop),
        credentials_(loop, endpoint.credentials),
        endpoint_(std::move(endpoint)),
        limits_(limits),
        bounds_{.call_connections_max = limits.connections_max, .http2_connections_max = limits.connections_max},
        names_(loop) {}

  ~Pool() override {
    for (auto& [key, connection] : connections_) {
      cancel_timer(connection.timer);
      if (connection.dial) connection.dial->stop();
      if (connection.carrier) connection.carrier->close();
    }
    for (auto& [id, exchange] : exchanges_) cancel_timer(exchange.timer);
  }

  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void start(std::uint64_t id, api::Request request, Kind kind, Duration answer_max,
             std::shared_ptr<Listener> listener) {
    Exchange& exchange = exchanges_[id];
    exchange.wanted = {.kind = kind, .lane = lane_of(kind, request.method, request.target)};
    exchange.listener = std::move(listener);
    if (!request.body.empty()) exchange.body = std::make_shared<const std::string>(std::exchange(request.body, {}));
    exchange.request = std::move(request);
    exchange.answer_max = answer_max;
    exchange.timer = loop_.at(loop_.now().mono + answer_max, [this, id] { on_late(id); });
    if (credentials_.ready(loop_.now())) return admit(id);
    if (without_credentials_.size() >= limits_.waiting_max) return refuse_soon(id);
    without_credentials_.push_back(id);
    if (without_credentials_.size() > 1) return;  // already requested
    credentials_.obtain([this](const Outcome& outcome) { on_credentials(outcome); });
  }

  void cancel(std::uint64_t id) {
    const auto it = exchanges_.find(id);
    if (it == exchanges_.end()) return;
    cancel_timer(it->second.timer);
    const bool heartbeat = it->second.wanted.lane == Lane::kHeartbeats;
    release(id, it->second);
    exchanges_.erase(it);
    if (heartbeat) retire_heartbeat_connections();  // the sender has given the heartbeat up: its connection may be dead
  }

  void pause(std::uint64_t id, bool paused) {
    if (ExchangeCarrier* carrier = carrier_of(id)) carrier->pause(id, paused);
  }

  void write(std::uint64_t id, std::string_view bytes) {
    if (ExchangeCarrier* carrier = carrier_of(id)) carrier->write(id, bytes);
  }

  void on_written(std::uint64_t id, std::size_t bytes) override {
    const auto it = exchanges_.find(id);
    if (it == exchanges_.end()) return;
    const std::shared_ptr<Listener> listener = it->second.listener;
    listener->on_written(bytes);
  }

  void on_head(std::uint64_t id, const api::Response& head) override {
    const auto it = exchanges_.find(id);
    if (it == exchanges_.end()) return;
    Exchange& exchange = it->second;
    if (head.status == kUnauthorized) credentials_.on_refused(loop_.now().mono);
    if (exchange.wanted.kind != Kind::kCall) cancel_timer(exchange.timer);
    const std::shared_ptr<Listener> listener = exchange.listener;
    listener->on_head(head);
  }

  void on_data(std::uint64_t id, std::string data) override {
    const auto it = exchanges_.find(id);
    if (it == exchanges_.end()) return;
    Exchange& exchange = it->second;
    exchange.body_bytes += data.size();
    if (exchange.wanted.kind == Kind::kCall && exchange.body_bytes > limits_.body_bytes_max) {
      release(id, exchange);
      return finish(id, unavailable(fmt::format("answer larger than {} bytes", limits_.body_bytes_max)));
    }
    const std::shared_ptr<Listener> listener = exchange.listener;
    listener->on_data(std::move(data));
  }

  void on_end(std::uint64_t key, std::uint64_t id, std::optional<ExchangeCarrier::Failure> failure) override {
    bool was_used = false;
    if (const auto connection = connections_.find(key); connection != connections_.end()) {
      was_used = connection->second.completed > 0;
      connection->second.exchanges.erase(id);
      if (!failure) ++connection->second.completed;
      check_idle(key);
    }
    const auto exchange = exchanges_.find(id);
    if (exchange != exchanges_.end() && exchange->second.connection == key) {
      exchange->second.connection = 0;
      if (failure && may_try_again(exchange->second, *failure, was_used)) {
        enqueue(id, Where::kFront);
      } else {
        finish(id, failure ? std::optional(unavailable(failure->problem)) : std::nullopt);
      }
    }
    serve_waiting();
  }

  void on_change(std::uint64_t key) override {
    check_idle(key);
    serve_waiting();
  }

  /// Connections that show an older certificate end; those at work when their exchanges do.
  void use_certificate(std::shared_ptr<const TlsContext> tls) {
    endpoint_.tls = std::move(tls);
    retire_connections([](const Connection&) { return true; });
  }

 private:
  struct Exchange {
    PlannedExchange wanted;
    std::shared_ptr<Listener> listener;
    api::Request request;
    std::shared_ptr<const std::string> body;
    Duration answer_max{};
    std::optional<runtime::Loop::TimerId> timer;
    std::uint64_t connection = 0;  // 0: none yet
    std::size_t body_bytes = 0;
    int tries = 0;
  };

  /// A connection that is being opened (`dial`) or open (`carrier`), with its exchanges.
  struct Connection {
    std::shared_ptr<ServerDial> dial;
    std::shared_ptr<ExchangeCarrier> carrier;
    Spoken spoken = Spoken::kUndecided;
    Lane lane = Lane::kOrdinary;
    bool single = false;
    bool retired = false;  // shows outdated credentials
    std::set<std::uint64_t> exchanges;
    std::size_t completed = 0;
    std::optional<runtime::Loop::TimerId> timer;  // connecting, or idle
  };

  enum class Where { kFront, kBack };

  /// The server closed a kept connection at the moment we used it: it has not seen a request without effect twice.
  static bool may_try_again(Exchange& exchange, const ExchangeCarrier::Failure& failure, bool was_used) {
    using Trace = ExchangeCarrier::Failure::Trace;
    if (++exchange.tries >= kTriesMax) return false;
    if (failure.trace == Trace::kUntouched) return true;
    const bool repeatable = exchange.request.method == api::Method::kGet && exchange.wanted.kind != Kind::kUpgrade;
    return failure.trace == Trace::kSilent && was_used && repeatable && !std::exchange(exchange.wanted.anew, true);
  }

  ExchangeCarrier* carrier_of(std::uint64_t id) {
    const auto exchange = exchanges_.find(id);
    if (exchange == exchanges_.end()) return nullptr;
    const auto connection = connections_.find(exchange->second.connection);
    return connection == connections_.end() ? nullptr : connection->second.carrier.get();
  }

  void refuse_soon(std::uint64_t id) {
    loop_.post([weak = weak_from_this(), id] {
      if (const auto self = weak.lock()) self->finish(id, self->unavailable("too many calls are waiting"));
    });
  }

  /// The queue of exchanges that wait for the same kind of connection, in order. Heartbeats are first, then streams:
  /// over HTTP/1.1 they have connections of their own.
  std::deque<std::uint64_t>& queue_of(const PlannedExchange& wanted) {
    if (wanted.lane == Lane::kHeartbeats) return queues_[0];
    return queues_[wanted.kind == Kind::kCall ? 2 : 1];
  }

  void enqueue(std::uint64_t id, Where where) {
    std::deque<std::uint64_t>& queue = queue_of(exchanges_.at(id).wanted);
    if (where == Where::kFront)
      queue.push_front(id);
    else
      queue.push_back(id);
  }

  void admit(std::uint64_t id) {
    if (queue_of(exchanges_.at(id).wanted).size() >= limits_.waiting_max) return refuse_soon(id);
    enqueue(id, Where::kBack);
    serve_waiting();
  }

  void on_credentials(const Outcome& outcome) {
    if (generation_ != credentials_.generation()) {
      generation_ = credentials_.generation();
      if (credentials_.tls()) use_certificate(credentials_.tls());
    }
    for (const std::uint64_t id : std::exchange(without_credentials_, {})) {
      if (!exchanges_.contains(id)) continue;
      if (outcome) {
        admit(id);
      } else {
        finish(id, outcome.error());
      }
    }
  }

  Error unavailable(std::string_view problem) const {
    return Error{ErrorCode::kServiceUnavailable, std::string(problem), endpoint_.server_text()};
  }

  void cancel_timer(std::optional<runtime::Loop::TimerId>& timer) {
    if (timer) loop_.cancel(*timer);
    timer.reset();
  }

  /// Ends connections that are idle, and the others when they are.
  template <typename Concerns>
  void retire_connections(Concerns concerns) {
    std::vector<std::uint64_t> keys;
    for (auto& [key, connection] : connections_) {
      if (!concerns(connection)) continue;
      connection.retired = true;
      keys.push_back(key);
    }
    for (const std::uint64_t key : keys) check_idle(key);
  }

  /// A heartbeat that gets no answer may have a connection that a balancer has forgotten, and so may the next one: it
  /// gets a new connection, whatever is open.
  void retire_heartbeat_connections() {
    retire_connections([](const Connection& connection) {
      if (connection.single || !connection.carrier) return false;
      return connection.spoken == Spoken::kHttp2 ? connection.lane == Lane::kHeartbeats : connection.exchanges.empty();
    });
  }

  /// The authorization header of each request. A new token gets a new connection over HTTP/2, where a server or a
  /// balancer may remember the old one.
  const std::string& authorization() {
    const std::string& header = credentials_.header(loop_.now().mono);
    if (header == shown_) return header;
    const bool first = std::exchange(shown_, header).empty();
    if (!first) retire_connections([](const Connection& connection) { return connection.spoken == Spoken::kHttp2; });
    return shown_;
  }

  std::vector<PlannedConnection> plan() const {
    std::vector<PlannedConnection> all;
    all.reserve(connections_.size());
    for (const auto& [key, each] : connections_) {
      const std::size_t most = each.carrier ? each.carrier->exchanges_max() : 0;
      all.push_back({.id = key,
                     .spoken = each.spoken,
                     .lane = each.lane,
                     .single = each.single,
                     .closing = each.retired || (each.carrier && most == 0),
                     .carried = each.exchanges.size(),
                     .streams_max = most});
    }
    return all;
  }

  Spoken expected() const {
    return endpoint_.tls && endpoint_.tls->protocols() != Protocols::kHttp11 ? spoken_ : Spoken::kHttp11;
  }

  /// Gives waiting exchanges a connection each, as far as the bounds permit.
  void serve_waiting() {
    for (std::deque<std::uint64_t>& queue : queues_) {
      while (!queue.empty()) {
        const std::uint64_t id = queue.front();
        static_cast<void>(authorization());
        const Placement placement = place(exchanges_.at(id).wanted, plan(), expected(), bounds_);
        if (placement.what == Placement::What::kWait) break;
        queue.pop_front();
        assign(id, placement.what == Placement::What::kUse ? placement.id : open(placement, exchanges_.at(id).wanted));
      }
    }
  }

  void assign(std::uint64_t id, std::uint64_t key) {
    Connection& connection = connections_.at(key);
    connection.exchanges.insert(id);
    exchanges_.at(id).connection = key;
    if (!connection.carrier) return;
    cancel_timer(connection.timer);
    carry(id, connection);
  }

  void carry(std::uint64_t id, Connection& connection) {
    const Exchange& exchange = exchanges_.at(id);
    ExchangeCarrier::Question question{.head = exchange.request,
                                       .body = exchange.body,
                                       .authority = endpoint_.host_text(),
                                       .upgrades = exchange.wanted.kind == Kind::kUpgrade};
    question.head.target = endpoint_.path_prefix + question.head.target;
    if (!shown_.empty()) question.head.headers.emplace_back("authorization", shown_);
    connection.carrier->carry(id, std::move(question));
  }

  /// Begins to open a connection.
  std::uint64_t open(const Placement& placement, const PlannedExchange& first) {
    const std::uint64_t key = ++last_connection_;
    Connection& connection = connections_[key];
    connection.single = placement.single;
    connection.lane = first.lane;
    connection.dial = std::make_shared<ServerDial>(
        loop_, endpoint_, placement.upgrades ? Protocols::kHttp11 : Protocols::kHttp2AndHttp11);
    connection.timer = loop_.at(loop_.now().mono + limits_.connect_max,
                                [this, key] { on_dialed(key, unavailable("no connection in time")); });
    names_.resolve(endpoint_.host, [weak = std::weak_ptr(connection.dial), pool = weak_from_this(), key](auto found) {
      const auto alive = pool.lock();
      const auto dial = weak.lock();
      if (!alive || !dial || !alive->connections_.contains(key)) return;
      if (!found) return alive->on_dialed(key, found.error());
      dial->start(*std::move(found), [pool, key](Result<std::unique_ptr<ByteStream>> stream) {
        if (const auto self = pool.lock()) self->on_dialed(key, std::move(stream));
      });
    });
    return key;
  }

  void on_dialed(std::uint64_t key, Result<std::unique_ptr<ByteStream>> stream) {
    Connection& connection = connections_.at(key);
    cancel_timer(connection.timer);
    const std::shared_ptr<ServerDial> dial = std::exchange(connection.dial, nullptr);  // may be in a call of its own
    dial->stop();
    loop_.post([dial] {});
    if (!stream) return on_unreachable(key, stream.error().message);
    connection.spoken = (*stream)->protocol() == kHttp2 ? Spoken::kHttp2 : Spoken::kHttp11;
    if (!connection.single) spoken_ = connection.spoken;
    connection.spoken == Spoken::kHttp2 ? use_http2(key, connection, *std::move(stream))
                                        : use_http11(key, connection, *std::move(stream));
    serve_waiting();
  }

  void on_unreachable(std::uint64_t key, const std::string& problem) {
    const auto failed = std::exchange(connections_.at(key).exchanges, {});
    drop(key);
    for (const std::uint64_t id : failed) finish(id, unavailable(problem));
    serve_waiting();
  }

  void use_http2(std::uint64_t key, Connection& connection, std::unique_ptr<ByteStream> stream) {
    const auto carrier =
        std::make_shared<Http2ClientConnection>(loop_, key, *this, std::move(stream), limits_.http2_patience);
    connection.carrier = carrier;
    carrier->start();
    for (const std::uint64_t id : connection.exchanges) carry(id, connection);
  }

  /// Uses the connection for one exchange; the others that waited for it wait for another one.
  void use_http11(std::uint64_t key, Connection& connection, std::unique_ptr<ByteStream> stream) {
    const auto carrier = std::make_shared<HttpClientConnection>(loop_, key, *this, std::move(stream));
    connection.carrier = carrier;
    carrier->start();
    const std::uint64_t first = *connection.exchanges.begin();
    connection.single = exchanges_.at(first).wanted.kind != Kind::kCall;
    while (connection.exchanges.size() > 1) {
      const std::uint64_t last = *connection.exchanges.rbegin();
      connection.exchanges.erase(last);
      exchanges_.at(last).connection = 0;
      enqueue(last, Where::kFront);
    }
    carry(first, connection);
  }

  /// Closes an unused connection, or keeps it idle for a while.
  void check_idle(std::uint64_t key) {
    const auto it = connections_.find(key);
    if (it == connections_.end()) return;
    Connection& connection = it->second;
    if (!connection.exchanges.empty()) return;
    if (!connection.carrier || connection.single || connection.retired || connection.carrier->exchanges_max() == 0)
      return drop(key);
    if (!connection.timer) connection.timer = loop_.at(loop_.now().mono + limits_.idle_max, [this, key] { drop(key); });
  }

  /// Closes a connection and forgets it.
  void drop(std::uint64_t key) {
    auto node = connections_.extract(key);
    if (!node) return;
    Connection& connection = node.mapped();
    cancel_timer(connection.timer);
    if (connection.dial) connection.dial->stop();
    if (connection.carrier) connection.carrier->close();
    loop_.post([dial = connection.dial, carrier = connection.carrier] {});  // may be in the middle of a call
    serve_soon();
  }

  void serve_soon() {
    loop_.post([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->serve_waiting();
    });
  }

  /// Releases an exchange's connection, or its place in a queue.
  void release(std::uint64_t id, Exchange& exchange) {
    std::erase(queue_of(exchange.wanted), id);
    std::erase(without_credentials_, id);
    const std::uint64_t key = std::exchange(exchange.connection, 0);
    const auto it = connections_.find(key);
    if (it == connections_.end()) return;
    it->second.exchanges.erase(id);
    if (it->second.carrier) it->second.carrier->cancel(id);
    check_idle(key);
    serve_soon();
  }

  void on_late(std::uint64_t id) {
    const auto it = exchanges_.find(id);
    if (it == exchanges_.end()) return;
    it->second.timer.reset();
    const auto waited = std::chrono::duration_cast<milliseconds>(it->second.answer_max);
    const Lane lane = it->second.wanted.lane;
    release(id, it->second);
    if (lane == Lane::kHeartbeats) retire_heartbeat_connections();
    finish(id, unavailable(fmt::format("no answer within {} ms", waited.count())));
  }

  void finish(std::uint64_t id, std::optional<Error> error) {
    const auto it = exchanges_.find(id);
    if (it == exchanges_.end()) return;
    const std::shared_ptr<Listener> listener = std::move(it->second.listener);
    cancel_timer(it->second.timer);
    exchanges_.erase(it);
    listener->on_done(std::move(error));
  }

  runtime::Loop& loop_;
  ClientCredentials credentials_;
  std::uint64_t generation_ = 0;  // counts changes of the credentials in use
  std::string shown_;             // Authorization header of the last request
  HttpEndpoint endpoint_;
  const Limits limits_;
  const PlanBounds bounds_;
  NameLookup names_;
  Spoken spoken_ = Spoken::kUndecided;  // by the server, last
  std::map<std::uint64_t, Exchange> exchanges_;
  std::map<std::uint64_t, Connection> connections_;
  std::uint64_t last_connection_ = 0;
  std::array<std::deque<std::uint64_t>, 3> queues_;  // exchanges without a connection
  std::vector<std::uint64_t> without_credentials_;   // exchanges that wait for a program
};

HttpClient::HttpClient(runtime::Loop& loop, HttpEndpoint endpoint, Limits limits)
    : pool_(std::make_shared<Pool>(loop, std::move(endpoint), limits)) {}

HttpClient::~HttpClient() = default;

void HttpClient::start(std::uint64_t id, api::Request request, Kind kind, Duration answer_max,
                       std::shared_ptr<Listener> listener) {
  pool_->start(id, std::move(request), kind, answer_max, std::move(listener));
}

void HttpClient::cancel(std::uint64_t id) {
  pool_->cancel(id);
}

void HttpClient::write(std::uint64_t id, std::string_view bytes) {
  pool_->write(id, bytes);
}

void HttpClient::pause(std::uint64_t id) {
  pool_->pause(id, true);
}

void HttpClient::resume(std::uint64_t id) {
  pool_->pause(id, false);
}

void HttpClient::use_certificate(std::shared_ptr<const TlsContext> tls) {
  pool_->use_certificate(std::move(tls));
}

}  // namespace spillway::wire
