#include "wire/server/http_server.h"

#include "base/rng.h"
#include "runtime/entropy.h"
#include "runtime/loop_thread.h"
#include "wire/net/socket.h"
#include "wire/server/bounds/byte_ledger.h"
#include "wire/server/bounds/connection_table.h"
#include "wire/server/bounds/refusals.h"
#include "wire/server/bounds/request_line.h"
#include "wire/server/connection_handshake.h"
#include "wire/server/http2_connection.h"
#include "wire/server/http_connection.h"
#include "wire/server/output/outbox.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace spillway::wire {

namespace {

constexpr std::size_t kScratchBytes = std::size_t{64} * 1024;
constexpr int kAcceptsPerTurn = 64;
constexpr Duration kAcceptPause = milliseconds(100);
/// Bodies that are read before the turn of their requests: each, those of one thread and turn, all that are kept.
/// Larger ones, and those beyond, are read when their requests are carried out.
constexpr std::size_t kReadAheadMax = std::size_t{256} * 1024;
constexpr std::size_t kReadAheadPerTurn = std::size_t{1024} * 1024;
constexpr std::size_t kReadAheadInAll = std::size_t{8} * 1024 * 1024;
constexpr std::size_t kServedAtOnce = 64;  // requests executed before the loop handles other events

telemetry::Gauge waiting_gauge(telemetry::Registry* metrics) {
  if (metrics == nullptr) return {};
  return metrics->gauge("spillway_http_waiting_bytes", "Bytes of answers and streams that wait for their clients");
}

}  // namespace

/// A place where connections are accepted.
struct Listener {
  /// True for a client of one of the networks, and of this machine. Their list is empty where all clients are served.
  bool serves(const Socket& accepted) const {
    if (networks.empty()) return true;
    const auto peer = api::parse_ip(peer_address(accepted));
    if (!peer) return false;
    const auto holds = [&](const api::IpRange& range) { return range.contains(*peer); };
    return std::ranges::any_of(networks, holds) || is_from_here(accepted);
  }

  Socket socket;
  std::vector<api::IpRange> networks;
};

/// The server's state on its loop, and the parts that its threads share.
struct HttpServer::Core : public std::enable_shared_from_this<Core> {
  class Shard;

  Core(runtime::Loop& owner_loop, RequestHandler& request_handler, Options server_options);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // Any thread.
  void count_connection(int change);
  void displace(std::optional<ConnectionTable::Id> connection);
  /// The thread with the least to do.
  std::size_t emptiest() const;

  // Loop.
  void serve(std::size_t requests);

  runtime::Loop& loop;
  RequestHandler& handler;
  const Options options;
  std::atomic<int> connections = 0;
  std::atomic<std::ptrdiff_t> request_bytes = 0;
  telemetry::Gauge connections_gauge;
  ConnectionTable table;
  std::shared_ptr<const AnswerContext> answer_context;
  std::shared_ptr<RequestLine> line;
  /// Bytes of bodies that were read and whose requests are not over. Exchanges outlive the server.
  const std::shared_ptr<std::atomic<std::size_t>> read_ahead_bytes = std::make_shared<std::atomic<std::size_t>>(0);
  std::atomic<std::uint64_t> requests = 0;
  std::atomic<std::uint64_t> request_tasks = 0;
  telemetry::Counter refused;
  telemetry::Counter slow_streams;

  /// The thread of a connection follows from its id.
  Shard& shard_of(std::uint64_t connection) { return *shards[connection % shards.size()]; }

  // Loop; the shards themselves do not change while connections are accepted.
  std::vector<std::unique_ptr<Shard>> shards;
  std::uint16_t port = 0;
  std::size_t shards_open = 0;
  runtime::Loop::Task stopped;
  std::optional<runtime::Loop::TimerId> grace_timer;
};

/// One thread with its share of the connections; the first one accepts them. Its messages for the loop are posted at
/// the end of its turn, in one task. Thread: its own, except where said.
class HttpServer::Core::Shard final : public ConnectionOwner {
 public:
  explicit Shard(Core& core)
      : core_(core),
        tls_(core.options.tls),
        rng_(runtime::entropy()),
        thread_("spillway-http"),
        outbox_(std::make_shared<Outbox>(core.loop, thread_.share())) {}

  ~Shard() override { core_.count_connection(-static_cast<int>(connections_.size())); }

  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  /// Thread: owner's. No connection is served afterwards.
  void halt() {
    thread_.stop();
    outbox_->close();
  }

  /// Thread: any. Number of open streams and connections of this thread.
  int load() const { return load_; }

  /// Thread: any.
  void count_streams(int change) override { load_ += change; }

  /// Thread: loop's.
  std::uint64_t batches() const { return outbox_->batches(); }

  const std::shared_ptr<runtime::Loop>& loop() const override { return thread_.share(); }

  const Options& options() const override { return core_.options; }

  std::span<char> scratch() override { return scratch_; }

  bool prove(std::uint64_t connection, ClientRank rank) override {
    const ConnectionTable::Decision decision = core_.table.prove(connection, rank);
    core_.displace(decision.displaced);
    return decision.admitted;
  }

  void set_idle(std::uint64_t connection, bool idle) override { core_.table.set_idle(connection, idle); }

  const std::shared_ptr<const AnswerContext>& answer_context() const override { return core_.answer_context; }

  bool stopping() const override { return stopping_; }

  bool draw_goaway() override { return core_.options.goaway_chance > 0 && rng_.unit() < core_.options.goaway_chance; }

  std::optional<Refusal> deliver(std::shared_ptr<HttpExchange> exchange, Incoming incoming,
                                 std::weak_ptr<AnswerTaker> taker) override {
    const RequestClass of = exchange->of;
    const bool may_be_large = of == RequestClass::kOrdinary || (of == RequestClass::kVital && exchange->repeatable);
    if (may_be_large && !core_.answer_context->ledger->has_room(exchange->client, exchange->rank))
      return Refusal::kWaitingBytes;
    read(*exchange, incoming);
    const HttpExchange& known = *exchange;
    // The sink is made and destroyed on the loop; requests that the line refuses are answered here.
    const bool entered = core_.line->enter(
        of, known.client,
        [weak = core_.weak_from_this(), exchange = std::move(exchange), incoming = std::move(incoming),
         taker = std::move(taker), outbox = outbox_](RequestLine::Seat seat) mutable {
          const auto core = weak.lock();
          if (!core || exchange->gone) {
            exchange->ended = true;
            return;
          }
          auto sink = std::make_shared<HttpSink>(exchange, std::move(taker), std::move(outbox), core->answer_context);
          sink->take_seat(std::move(seat));
          exchange->handed_over = true;
          exchange->ticket = core->handler.on_request(std::move(incoming), std::move(sink));
        });
    if (!entered) return Refusal::kQueue;
    ++core_.requests;
    ++entered_;
    call_loop();
    return std::nullopt;
  }

  void pass_input(std::shared_ptr<HttpExchange> exchange, std::string bytes) override {
    post_to_loop([exchange = std::move(exchange), bytes = std::move(bytes)]() mutable {
      if (const auto input = exchange->input) input->on_input(std::move(bytes));
    });
  }

  void report_room(std::shared_ptr<HttpExchange> exchange) override {
    post_to_loop([exchange = std::move(exchange)] {
      if (const auto act = std::exchange(exchange->on_room, nullptr)) act();
    });
  }

  void report_gone(std::shared_ptr<HttpExchange> exchange) override {
    post_to_loop([weak = core_.weak_from_this(), exchange = std::move(exchange)] {
      exchange->on_room = nullptr;
      const auto core = weak.lock();
      if (!core || std::exchange(exchange->ended, true) || !exchange->handed_over) return;
      if (const auto input = std::exchange(exchange->input, nullptr)) input->on_input_end();
      core->handler.on_abandoned(exchange->ticket);
    });
  }

  bool account(std::ptrdiff_t change, ClientRank rank) override {
    const HttpLimits& limits = options().limits;
    const std::size_t most = rank == ClientRank::kVital ? limits.request_bytes_max : limits.ordinary_request_bytes_max;
    const std::ptrdiff_t before = core_.request_bytes.fetch_add(change);
    return change <= 0 || before + change <= static_cast<std::ptrdiff_t>(most);
  }

  void count_slow_stream() override { core_.slow_streams.add(); }

  std::string make_audit_id() override {
    const std::uint64_t high = (rng_.next() & ~0xf000ULL) | 0x4000ULL;       // version 4
    const std::uint64_t low = (rng_.next() & ~(3ULL << 62)) | (2ULL << 62);  // variant 1
    return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff, high & 0xffff,
                       low >> 48, low & 0xffffffffffffULL);
  }

  void on_established(std::uint64_t id, std::unique_ptr<ByteStream> stream, std::string address) override {
    std::shared_ptr<ClientConnection> connection;
    if (stream->protocol() == kHttp2)
      connection = std::make_shared<Http2Connection>(id, *this, std::move(stream), std::move(address));
    else
      connection = std::make_shared<HttpConnection>(id, *this, std::move(stream), std::move(address));
    connections_.insert_or_assign(id, connection);
    connection->start();
  }

  void on_closed(std::uint64_t connection) override {
    connections_.erase(connection);
    count_streams(-1);
    core_.table.remove(connection);
    core_.count_connection(-1);
    report_if_empty();
  }

  void add(std::uint64_t id, Socket socket, std::string address) {
    if (stopping_) {
      count_streams(-1);
      core_.table.remove(id);
      core_.count_connection(-1);
      return;
    }
    auto stream = tls_ ? tls_->accept_stream(std::move(socket)) : make_plain_stream(std::move(socket));
    const auto connection = std::make_shared<ConnectionHandshake>(id, *this, std::move(stream), std::move(address));
    connections_.emplace(id, connection);
    connection->start();
  }

  void set_tls(std::shared_ptr<const TlsContext> tls) { tls_ = std::move(tls); }

  void listen(std::unique_ptr<Listener> made) {
    Listener& listener = *listeners_.emplace_back(std::move(made));
    loop()->watch_fd(listener.socket.fd(), POLLIN, [this, &listener] { accept(listener); });
  }

  /// Closes a connection whose place another one has taken.
  void give_up(std::uint64_t id) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    const std::shared_ptr<ClientConnection> connection = found->second;
    core_.answer_context->refusals->count(Refusal::kDisplaced, connection->client(), loop()->now().mono);
    connection->close();
  }

  void wind_down() {
    stopping_ = true;
    for (const auto& each : listeners_) {
      if (!each->socket.open()) continue;
      loop()->unwatch_fd(each->socket.fd());
      each->socket.close();
    }
    const auto open = connections_;  // winding down closes some
    for (const auto& [id, connection] : open) connection->wind_down();
    report_if_empty();
  }

  void close_all() {
    const auto open = connections_;
    for (const auto& [id, connection] : open) connection->close();
  }

 private:
  void accept(Listener& listener) {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      auto accepted = accept_from(listener.socket);
      if (!accepted) return pause(listener, accepted.error());
      if (!*accepted) {
        paused_ = false;
        return;
      }
      if (!listener.serves(**accepted)) continue;
      const std::uint64_t id = ++last_connection_ * core_.shards.size() + core_.emptiest();
      std::string address = peer_network(**accepted);
      const ConnectionTable::Decision decision = core_.table.admit(id, address);
      core_.displace(decision.displaced);
      if (!decision.admitted) {
        core_.refused.add();
        core_.answer_context->refusals->count(Refusal::kConnections, address, loop()->now().mono);
        continue;  // closed at once, with an answer: better for a client than waiting
      }
      core_.count_connection(1);
      hand_on(id, **std::move(accepted), std::move(address));
    }
  }

  void hand_on(std::uint64_t id, Socket socket, std::string address) {
    Shard& shard = core_.shard_of(id);
    shard.count_streams(+1);  // a connection without any is one as well
    if (&shard == this) return add(id, std::move(socket), std::move(address));
    shard.loop()->post([&shard, id, socket = std::move(socket), address = std::move(address)]() mutable {
      shard.add(id, std::move(socket), std::move(address));
    });
  }

  /// Stops accepting when no descriptors are left; tries again when some may have been given back.
  void pause(Listener& listener, const Error& error) {
    if (!std::exchange(paused_, true)) core_.options.log.warning("cannot accept connections", {{"err", error.text()}});
    loop()->rewatch_fd(listener.socket.fd(), 0);
    loop()->at(loop()->now().mono + kAcceptPause, [this, &listener] {
      if (listener.socket.open()) loop()->rewatch_fd(listener.socket.fd(), POLLIN);
    });
  }

  /// Reports the end after all messages for the loop about the connections.
  void report_if_empty() {
    if (!stopping_ || !connections_.empty() || std::exchange(reported_, true)) return;
    post_to_loop([weak = core_.weak_from_this()] {
      const auto core = weak.lock();
      if (!core || --core->shards_open > 0) return;
      if (core->grace_timer) core->loop.cancel(*core->grace_timer);
      core->grace_timer.reset();
      if (core->stopped) std::exchange(core->stopped, {})();
    });
  }

  /// Reads bodies ahead where that is allowed: not from unknown clients, and no more than a turn and memory have room
  /// for.
  void read(HttpExchange& exchange, Incoming& incoming) {
    const std::size_t size = incoming.request.body.size();
    ReadBody body = ReadBody::kNo;
    if (size > 0 && size <= kReadAheadMax && read_bytes_ + size <= kReadAheadPerTurn &&
        exchange.rank != ClientRank::kUnproven) {
      HttpExchange::ReadAhead held(core_.read_ahead_bytes, size);
      if (*core_.read_ahead_bytes <= kReadAheadInAll) {
        body = ReadBody::kYes;
        read_bytes_ += size;
        exchange.read_ahead = std::move(held);
      }
    }
    incoming.read = core_.handler.read(incoming, body);
    call_loop();  // the next turn of the loop resets the counts
  }

  /// Requests a call of the loop at the end of the turn, once.
  void call_loop() {
    if (std::exchange(called_, true)) return;
    loop()->at_end_of_turn([this] {
      called_ = false;
      read_bytes_ = 0;
      if (entered_ == 0 && for_loop_.empty()) return;
      ++core_.request_tasks;
      core_.loop.post([weak = core_.weak_from_this(), requests = std::exchange(entered_, 0),
                       tasks = std::exchange(for_loop_, {})]() mutable {
        for (runtime::Loop::Task& task : tasks) task();
        if (const auto core = weak.lock()) core->serve(requests);
      });
    });
  }

  void post_to_loop(runtime::Loop::Task task) {
    for_loop_.push_back(std::move(task));
    call_loop();
  }

  Core& core_;
  std::shared_ptr<const TlsContext> tls_;
  Rng rng_;
  std::vector<char> scratch_ = std::vector<char>(kScratchBytes);
  std::vector<std::unique_ptr<Listener>> listeners_;  // kept until the end, closed at the latest then
  bool paused_ = false;
  bool stopping_ = false;
  bool reported_ = false;
  std::uint64_t last_connection_ = 0;
  std::map<std::uint64_t, std::shared_ptr<ClientConnection>> connections_;
  std::atomic<int> load_ = 0;
  bool called_ = false;         // the end of the turn was requested
  std::size_t entered_ = 0;     // requests in this turn
  std::size_t read_bytes_ = 0;  // bytes of their bodies
  std::vector<runtime::Loop::Task> for_loop_;
  runtime::LoopThread thread_;  // last: its tasks use the other members
  const std::shared_ptr<Outbox> outbox_;
};

HttpServer::Core::Core(runtime::Loop& owner_loop, RequestHandler& request_handler, Options server_options)
    : loop(owner_loop),
      handler(request_handler),
      options(std::move(server_options)),
      table(options.limits.connections),
      answer_context(std::make_shared<const AnswerContext>(
          std::make_shared<ByteLedger>(options.limits.waiting, waiting_gauge(options.metrics)),
          std::make_shared<Refusals>(options.log, options.metrics), options.limits.stream_bytes_max)) {
  if (options.metrics == nullptr) return;
  connections_gauge = options.metrics->gauge("spillway_http_connections", "Open connections of the HTTP server");
  refused = options.metrics->counter("spillway_http_connections_refused_total",
                                     "Connections closed at once because too many were open");
  slow_streams = options.metrics->counter("spillway_http_slow_streams_total",
                                          "Streams cut because the client took nothing for too long");
}

HttpServer::Core::~Core() {
  if (grace_timer) loop.cancel(*grace_timer);
  // Halts all shards before any is destroyed: the first passes connections to the others.
  for (const auto& shard : shards) shard->halt();
  line->clear();
  shards.clear();
}

void HttpServer::Core::displace(std::optional<ConnectionTable::Id> connection) {
  if (!connection) return;
  Shard& shard = shard_of(*connection);
  shard.loop()->post([&shard, id = *connection] { shard.give_up(id); });
}

std::size_t HttpServer::Core::emptiest() const {
  std::size_t best = 0;
  for (std::size_t at = 1; at < shards.size(); ++at) {
    if (shards[at]->load() < shards[best]->load()) best = at;
  }
  return best;
}

/// Serves the requests that a turn has brought; a large batch in several pieces, between which the loop does its other
/// work.
void HttpServer::Core::serve(std::size_t count) {
  for (std::size_t i = 0; i < std::min(count, kServedAtOnce); ++i) line->serve_one();
  if (count <= kServedAtOnce) return;
  loop.post([weak = weak_from_this(), left = count - kServedAtOnce] {
    if (const auto core = weak.lock()) core->serve(left);
  });
}

void HttpServer::Core::count_connection(int change) {
  connections_gauge.set(connections.fetch_add(change) + change);
}

std::shared_ptr<const apiserver::ReadRequest> RequestHandler::read(const Incoming&, ReadBody) const {
  return nullptr;
}

HttpServer::HttpServer(runtime::Loop& loop, RequestHandler& handler, Options options)
    : core_(std::make_shared<Core>(loop, handler, std::move(options))) {
  core_->line = std::make_shared<RequestLine>(core_->options.limits.queue, [weak = std::weak_ptr(core_)] {
    const auto core = weak.lock();
    if (!core) return;
    core->loop.post([weak] {
      if (const auto alive = weak.lock()) alive->line->serve_one();
    });
  });
}

/// A shard that has just put a request in line holds the core for a moment: it must not be the last to let go of it.
HttpServer::~HttpServer() {
  for (const auto& shard : core_->shards) shard->halt();
}

Outcome HttpServer::start() {
  SPILLWAY_TRY(listener, listen_on(core_->options.address, core_->options.port));
  core_->port = local_port(listener);
  for (int i = 0; i < std::max(core_->options.threads, 1); ++i) {
    core_->shards.push_back(std::make_unique<Core::Shard>(*core_));
  }
  core_->shards_open = core_->shards.size();
  Core::Shard& first = *core_->shards.front();
  auto all = std::make_unique<Listener>(std::move(listener), std::vector<api::IpRange>());
  first.loop()->post([&first, all = std::move(all)]() mutable { first.listen(std::move(all)); });
  return {};
}

Outcome HttpServer::serve_at(const std::string& address, std::vector<api::IpRange> networks) {
  if (networks.empty()) return invalid(address, "no network may connect");
  SPILLWAY_TRY(socket, listen_ahead_on(address, core_->port));
  auto some = std::make_unique<Listener>(std::move(socket), std::move(networks));
  Core::Shard& first = *core_->shards.front();
  first.loop()->post([&first, some = std::move(some)]() mutable { first.listen(std::move(some)); });
  return {};
}

std::uint16_t HttpServer::port() const {
  return core_->port;
}

void HttpServer::set_tls(std::shared_ptr<const TlsContext> tls) {
  for (const auto& shard : core_->shards) {
    shard->loop()->post([&shard = *shard, tls] { shard.set_tls(tls); });
  }
}

HttpServer::Crossings HttpServer::crossings() const {
  Crossings all{.requests = core_->requests, .request_tasks = core_->request_tasks};
  for (const auto& shard : core_->shards) all.answer_tasks += shard->batches();
  return all;
}

std::size_t HttpServer::waiting_bytes() const {
  return core_->answer_context->ledger->total_bytes();
}

void HttpServer::stop(Duration grace, runtime::Loop::Task done) {
  core_->stopped = std::move(done);
  for (const auto& shard : core_->shards) {
    shard->loop()->post([&shard = *shard] { shard.wind_down(); });
  }
  core_->grace_timer = core_->loop.at(core_->loop.now().mono + grace, [core = core_.get()] {
    core->grace_timer.reset();
    for (const auto& shard : core->shards) shard->loop()->post([&shard = *shard] { shard.close_all(); });
  });
}

}  // namespace spillway::wire
