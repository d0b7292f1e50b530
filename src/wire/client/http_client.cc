#include "wire/client/http_client.h"

#include "wire/client/http_client_connection.h"
#include "wire/http/http_head.h"
#include "wire/net/name_lookup.h"
#include "wire/net/socket.h"

#include <charconv>
#include <deque>
#include <map>
#include <utility>
#include <vector>

namespace spillway::wire {

namespace {

constexpr std::uint16_t kHttpsPort = 443;
constexpr std::uint16_t kHttpPort = 80;
constexpr int kUnauthorized = 401;

std::string server_text(const HttpEndpoint& endpoint) {
  return (endpoint.tls ? "https://" : "http://") + format_endpoint(endpoint.host, endpoint.port);
}

Result<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (problem != std::errc() || end != text.data() + text.size() || port == 0) {
    return make_error(ErrorCode::kInvalid, "expected a port between 1 and 65535, got \"{}\"", text);
  }
  return port;
}

/// Splits "https://host:port/prefix".
Outcome parse_server(std::string_view url, HttpEndpoint& endpoint) {
  const bool tls = url.starts_with("https://");
  url.remove_prefix(tls ? 8 : 7);
  const std::size_t path = url.find_first_of("/?#");
  std::string_view authority = url.substr(0, path);
  std::string_view prefix = path == std::string_view::npos ? std::string_view() : url.substr(path);
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  if (prefix.find_first_of("?# \r\n") != std::string_view::npos) {
    return make_error(ErrorCode::kInvalid, "expected a path without query, got \"{}\"", prefix);
  }
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return make_error(ErrorCode::kInvalid, "\"[\" without \"]\"");
    const std::string_view rest = authority.substr(end + 1);
    if (!rest.empty() && !rest.starts_with(':')) return make_error(ErrorCode::kInvalid, "expected :PORT after \"]\"");
    port = rest.empty() ? rest : rest.substr(1);
    authority = authority.substr(1, end - 1);
  } else if (const std::size_t colon = authority.rfind(':'); colon != std::string_view::npos) {
    port = authority.substr(colon + 1);
    authority = authority.substr(0, colon);
  }
  constexpr std::string_view kHostCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%";
  if (authority.empty() || authority.find_first_not_of(kHostCharacters) != std::string_view::npos) {
    return make_error(ErrorCode::kInvalid, "expected a host name or address, got \"{}\"", authority);
  }
  endpoint.host = authority;
  endpoint.path_prefix = prefix;
  endpoint.port = tls ? kHttpsPort : kHttpPort;
  if (!port.empty()) {
    SPILLWAY_TRY(number, parse_port(port));
    endpoint.port = number;
  }
  return {};
}

}  // namespace

Result<HttpEndpoint> make_endpoint(const Kubeconfig& config, const std::string& path) {
  HttpEndpoint endpoint;
  if (const Outcome parsed = parse_server(config.server, endpoint); !parsed) {
    return invalid(path + ": server", "{}", parsed.error().message);
  }
  endpoint.tls_name = config.tls_server_name;
  auto token = BearerToken::make(config.token, config.token_file);
  if (!token) return invalid(path + ": " + token.error().at, "{}", token.error().message);
  endpoint.credentials.token = *std::move(token);
  if (!config.username.empty()) endpoint.credentials.basic = config.username + ":" + config.password;
  const bool has_own = !config.token.empty() || !config.username.empty() || !config.certificate_pem.empty();
  if (config.program && !has_own) {
    endpoint.credentials.program = config.program;
    endpoint.credentials.program_info = exec_info(*config.program, config);
  }
  if (!config.server.starts_with("https://")) return endpoint;
  TlsContext::ClientOptions tls{config.authority_pem, config.verify, std::nullopt};
  if (!config.certificate_pem.empty()) tls.identity = KeyPair{config.certificate_pem, config.key_pem};
  auto context = TlsContext::make_client(tls);
  if (!context) return invalid(path + ": " + context.error().at, "{}", context.error().message);
  endpoint.tls = *std::move(context);
  endpoint.credentials.tls = std::move(tls);
  return endpoint;
}

/// The exchanges of a client and the connections that carry them.
class HttpClient::Pool final : public HttpClientConnection::Owner, public std::enable_shared_from_this<Pool> {
 public:
  Pool(runtime::Loop& loop, HttpEndpoint endpoint, Limits limits)
      : loop_(loop),
        credentials_(loop, endpoint.credentials),
        endpoint_(std::move(endpoint)),
        limits_(limits),
        names_(loop) {}

  ~Pool() override {
    for (auto& [key, carrier] : carriers_) {
      cancel_timer(carrier.timer);
      carrier.connection->close();
    }
    for (auto& [id, exchange] : exchanges_) cancel_timer(exchange.timer);
  }

  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void start(std::uint64_t id, api::Request request, Kind kind, Duration answer_max,
             std::shared_ptr<Listener> listener) {
    Exchange& exchange = exchanges_[id];
    exchange.kind = kind;
    exchange.listener = std::move(listener);
    exchange.request = std::move(request);
    exchange.answer_max = answer_max;
    exchange.timer = loop_.at(loop_.now().mono + answer_max, [this, id] { on_late(id); });
    if (credentials_.ready(loop_.now())) return admit(id);
    if (without_credentials_.size() >= limits_.waiting_max) return refuse_soon(id);
    without_credentials_.push_back(id);
    if (without_credentials_.size() > 1) return;  // they have been asked for
    credentials_.obtain([this](const Outcome& outcome) { on_credentials(outcome); });
  }

  void cancel(std::uint64_t id) {
    const auto it = exchanges_.find(id);
    if (it == exchanges_.end()) return;
    HttpClientConnection* const connection = it->second.connection;
    cancel_timer(it->second.timer);
    exchanges_.erase(it);
    std::erase(waiting_, id);
    std::erase(without_credentials_, id);
    if (connection != nullptr) drop(*connection);
  }

  void pause(std::uint64_t id, bool paused) {
    const auto it = exchanges_.find(id);
    if (it != exchanges_.end() && it->second.connection != nullptr) it->second.connection->pause(paused);
  }

  void write(std::uint64_t id, std::string_view bytes) {
    const auto it = exchanges_.find(id);
    if (it != exchanges_.end() && it->second.connection != nullptr) it->second.connection->write(bytes);
  }

  void on_written(HttpClientConnection& connection, std::size_t bytes) override {
    Exchange* exchange = exchange_on(connection);
    if (exchange == nullptr) return;
    const std::shared_ptr<Listener> listener = exchange->listener;
    listener->on_written(bytes);
  }

  void on_open(HttpClientConnection& connection) override { cancel_timer(carriers_.at(&connection).timer); }

  void on_head(HttpClientConnection& connection, const api::Response& head) override {
    Exchange* exchange = exchange_on(connection);
    if (exchange == nullptr) return;
    exchange->head_seen = true;
    if (head.status == kUnauthorized) credentials_.on_refused(loop_.now().mono);
    if (exchange->kind != Kind::kCall) cancel_timer(exchange->timer);
    const std::shared_ptr<Listener> listener = exchange->listener;
    listener->on_head(head);
  }

  void on_data(HttpClientConnection& connection, std::string data) override {
    Exchange* exchange = exchange_on(connection);
    if (exchange == nullptr) return;
    exchange->body_bytes += data.size();
    if (exchange->kind == Kind::kCall && exchange->body_bytes > limits_.body_bytes_max) {
      return fail(connection, fmt::format("answer larger than {} bytes", limits_.body_bytes_max));
    }
    const std::shared_ptr<Listener> listener = exchange->listener;
    listener->on_data(std::move(data));
  }

  void on_complete(HttpClientConnection& connection, bool reusable) override {
    Carrier& carrier = carriers_.at(&connection);
    const std::uint64_t id = std::exchange(carrier.exchange, 0);
    const bool keep = reusable && carrier.kind == Kind::kCall && !carrier.last_exchange;
    if (keep) {
      carrier.timer = loop_.at(loop_.now().mono + limits_.idle_max, [this, key = &connection] { drop(*key); });
    } else {
      drop(connection);
    }
    finish(id, std::nullopt);
    serve_waiting();
  }

  void on_broken(HttpClientConnection& connection, std::string problem, bool untouched) override {
    const auto it = carriers_.find(&connection);
    if (it == carriers_.end()) return;
    const std::uint64_t id = it->second.exchange;
    const bool idle_before = connection.used();
    drop(connection);
    const auto exchange = exchanges_.find(id);
    if (exchange == exchanges_.end()) return;
    exchange->second.connection = nullptr;
    // The server closed a kept connection at the moment we used it: it has not seen a request without effect twice.
    const bool repeatable = exchange->second.request.method == api::Method::kGet;
    if (untouched && idle_before && repeatable && !std::exchange(exchange->second.repeated, true)) {
      return carry(id, open());
    }
    finish(id, unavailable(problem));
    serve_waiting();
  }

  /// Connections that show an older certificate end; those at work when their exchange does.
  void use_certificate(std::shared_ptr<const TlsContext> tls) {
    endpoint_.tls = std::move(tls);
    std::vector<HttpClientConnection*> idle;
    for (auto& [key, carrier] : carriers_) {
      if (carrier.exchange == 0) idle.push_back(key);
      carrier.last_exchange = true;
    }
    for (HttpClientConnection* connection : idle) drop(*connection);
  }

 private:
  struct Exchange {
    Kind kind = Kind::kCall;
    std::shared_ptr<Listener> listener;
    api::Request request;
    Duration answer_max{};
    std::optional<runtime::Loop::TimerId> timer;
    HttpClientConnection* connection = nullptr;
    std::size_t body_bytes = 0;
    bool head_seen = false;
    bool repeated = false;
  };

  /// A connection and what it is for.
  struct Carrier {
    std::shared_ptr<HttpClientConnection> connection;
    Kind kind = Kind::kCall;
    std::uint64_t exchange = 0;                   // 0: idle
    std::optional<runtime::Loop::TimerId> timer;  // connecting, or idle
    bool last_exchange = false;                   // it shows a certificate that is no longer ours
  };

  void refuse_soon(std::uint64_t id) {
    loop_.post([weak = weak_from_this(), id] {
      if (const auto self = weak.lock()) self->finish(id, self->unavailable("too many calls are waiting"));
    });
  }

  /// Gives an exchange a connection, or a place in the queue for one.
  void admit(std::uint64_t id) {
    if (exchanges_.at(id).kind != Kind::kCall) return carry(id, open());
    if (waiting_.size() >= limits_.waiting_max) return refuse_soon(id);
    waiting_.push_back(id);
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
    return Error{ErrorCode::kServiceUnavailable, std::string(problem), server_text(endpoint_)};
  }

  void cancel_timer(std::optional<runtime::Loop::TimerId>& timer) {
    if (timer) loop_.cancel(*timer);
    timer.reset();
  }

  Exchange* exchange_on(HttpClientConnection& connection) {
    const auto carrier = carriers_.find(&connection);
    if (carrier == carriers_.end()) return nullptr;
    const auto exchange = exchanges_.find(carrier->second.exchange);
    return exchange == exchanges_.end() ? nullptr : &exchange->second;
  }

  /// A new connection, on its way.
  HttpClientConnection& open() {
    const auto connection = std::make_shared<HttpClientConnection>(loop_, endpoint_, *this);
    Carrier& carrier = carriers_[connection.get()];
    carrier.connection = connection;
    carrier.timer = loop_.at(loop_.now().mono + limits_.connect_max,
                             [this, key = connection.get()] { fail(*key, "no connection in time"); });
    names_.resolve(endpoint_.host, [weak = std::weak_ptr(connection), pool = weak_from_this()](auto addresses) {
      const auto alive = pool.lock();
      const auto target = weak.lock();
      if (!alive || !target || !alive->carriers_.contains(target.get())) return;
      if (addresses) {
        target->connect(*std::move(addresses));
      } else {
        alive->fail(*target, addresses.error().message);
      }
    });
    return *connection;
  }

  void carry(std::uint64_t id, HttpClientConnection& connection) {
    Exchange& exchange = exchanges_.at(id);
    Carrier& carrier = carriers_.at(&connection);
    carrier.kind = exchange.kind;
    carrier.exchange = id;
    exchange.connection = &connection;
    const std::string body = std::exchange(exchange.request.body, {});  // only GET is ever sent again
    api::Request head = exchange.request;
    head.target = endpoint_.path_prefix + head.target;
    if (const std::string& header = credentials_.header(loop_.now().mono); !header.empty()) {
      head.headers.emplace_back("authorization", header);
    }
    std::string text = format_request_head(head, body.size(), host_text());
    text += body;
    using Upgrade = ResponseParser::Upgrade;
    connection.send(std::move(text), head.method,
                    exchange.kind == Kind::kUpgrade ? Upgrade::kAsked : Upgrade::kNotAsked);
  }

  std::string host_text() const {
    const std::uint16_t usual = endpoint_.tls ? kHttpsPort : kHttpPort;
    std::string text = format_endpoint(endpoint_.host, endpoint_.port);
    if (endpoint_.port == usual) text.erase(text.rfind(':'));
    return text;
  }

  void serve_waiting() {
    while (!waiting_.empty()) {
      HttpClientConnection* free = nullptr;
      std::size_t for_calls = 0;
      for (auto& [key, carrier] : carriers_) {
        if (carrier.kind != Kind::kCall) continue;
        ++for_calls;
        if (carrier.exchange == 0) free = key;
      }
      if (free == nullptr && for_calls >= limits_.connections_max) return;
      const std::uint64_t id = waiting_.front();
      waiting_.pop_front();
      if (free != nullptr) {
        cancel_timer(carriers_.at(free).timer);
        carry(id, *free);
      } else {
        carry(id, open());
      }
    }
  }

  /// Closes a connection and forgets it.
  void drop(HttpClientConnection& connection) {
    const auto it = carriers_.find(&connection);
    if (it == carriers_.end()) return;
    const std::shared_ptr<HttpClientConnection> last = std::move(it->second.connection);
    cancel_timer(it->second.timer);
    carriers_.erase(it);
    last->close();
    loop_.post([last] {});  // it may be in the middle of a call
    if (!waiting_.empty()) {
      loop_.post([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->serve_waiting();
      });
    }
  }

  /// Ends a connection and the exchange on it.
  void fail(HttpClientConnection& connection, std::string_view problem) {
    const std::uint64_t id = carriers_.at(&connection).exchange;
    drop(connection);
    finish(id, unavailable(problem));
  }

  void on_late(std::uint64_t id) {
    const auto it = exchanges_.find(id);
    if (it == exchanges_.end()) return;
    it->second.timer.reset();
    HttpClientConnection* const connection = it->second.connection;
    const auto waited = std::chrono::duration_cast<milliseconds>(it->second.answer_max);
    std::erase(waiting_, id);
    std::erase(without_credentials_, id);
    if (connection != nullptr) drop(*connection);
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
  std::uint64_t generation_ = 0;  // of the credentials in use
  HttpEndpoint endpoint_;
  const Limits limits_;
  NameLookup names_;
  std::map<std::uint64_t, Exchange> exchanges_;
  std::map<HttpClientConnection*, Carrier> carriers_;
  std::deque<std::uint64_t> waiting_;               // calls without a connection, in order
  std::vector<std::uint64_t> without_credentials_;  // exchanges that wait for a program
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
