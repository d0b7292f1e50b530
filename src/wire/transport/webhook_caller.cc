#include "wire/transport/webhook_caller.h"

#include "wire/client/kubeconfig.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace spillway::wire {

namespace {

using apiserver::WebhookCall;

std::string key_of(const WebhookCall& call) {
  return fmt::format("{}\n{}\n{}", call.origin, call.tls_name, call.authority_pem);
}

api::Request request_of(const WebhookCall& call) {
  return {.method = api::Method::kPost,
          .target = call.target,
          .headers = {{"accept", "application/json"},
                      {"content-type", "application/json"},
                      {"user-agent", "kube-apiserver-admission"}},
          .body = call.body,
          .document = nullptr};
}

Error overrun() {
  return make_error(ErrorCode::kServiceUnavailable, "the answers of webhooks are too large together");
}

}  // namespace

/// The HTTP clients and their open calls. Thread: io; results are posted to the owner's loop.
class HttpsWebhookCaller::Room final : public std::enable_shared_from_this<Room> {
 public:
  Room(runtime::Loop& owner, runtime::Loop& io, std::weak_ptr<Waiting> waiting, Options options)
      : owner_(owner), io_(io), waiting_(std::move(waiting)), options_(options) {}

  void set_own_port(std::uint16_t port) {
    own_port_ = port;
    clients_.clear();
  }

  void start(std::uint64_t id, WebhookCall call) {
    std::string key = key_of(call);
    const Result<HttpClient*> client = client_for(key, call);
    if (!client) return deliver(id, client.error());
    auto ear = std::make_shared<Ear>(*this, id, std::move(key), std::move(call));
    ears_.emplace(id, ear);
    ear->start(**client);
  }

  void cancel(std::uint64_t id) {
    const auto found = ears_.find(id);
    if (found == ears_.end()) return;
    const std::shared_ptr<Ear> ear = found->second;
    if (const auto client = clients_.find(ear->key); client != clients_.end()) client->second.http->cancel(id);
    drop(*ear);
  }

  /// Ends everything.
  void close() {
    ears_.clear();
    clients_.clear();
  }

 private:
  struct Client {
    std::unique_ptr<HttpClient> http;
    std::uint64_t used = 0;
  };

  /// Receives the events of one exchange.
  struct Ear final : HttpClient::Listener, std::enable_shared_from_this<Ear> {
    Ear(Room& owner, std::uint64_t call_id, std::string client_key, WebhookCall asked)
        : room(owner), id(call_id), key(std::move(client_key)), call(std::move(asked)) {}

    void start(HttpClient& client) {
      client.start(id, request_of(call), HttpClient::Kind::kCall, call.timeout, shared_from_this());
    }

    void on_head(const api::Response& head) override {
      answer.status = head.status;
      head_seen = true;
    }

    void on_data(std::string data) override {
      if (cut_off) return;
      answer.body += data;
      room.bytes_ += data.size();
      cut_off = room.bytes_ > room.options_.answers_bytes_max;
      // Deferred, because a call of the HTTP client is still active.
      if (cut_off) {
        room.io_.post([weak = room.weak_from_this(), call_id = id] {
          if (const auto alive = weak.lock()) alive->end_overrun(call_id);
        });
      }
    }

    void on_done(std::optional<Error> error) override { room.on_done(*this, std::move(error)); }

    Room& room;
    std::uint64_t id;
    std::string key;
    WebhookCall call;
    api::Response answer{.status = 0, .headers = {}, .body = {}, .document = nullptr};
    bool head_seen = false;
    bool repeated = false;
    bool cut_off = false;
  };

  Result<HttpClient*> client_for(const std::string& key, const WebhookCall& call) {
    const auto found = clients_.find(key);
    if (found != clients_.end()) {
      found->second.used = ++uses_;
      return found->second.http.get();
    }
    if (clients_.size() >= options_.clients_max && !drop_idle()) {
      return make_error(ErrorCode::kServiceUnavailable, "too many different webhooks are called at a time");
    }
    Kubeconfig config;
    config.server = call.origin;
    config.authority_pem = call.authority_pem;
    config.tls_server_name = call.tls_name;
    auto endpoint = make_endpoint(config, "webhook");
    if (!endpoint) return endpoint.error();
    endpoint->own_port = own_port_;
    Client made{std::make_unique<HttpClient>(io_, *std::move(endpoint), options_.limits), ++uses_};
    return clients_.emplace(key, std::move(made)).first->second.http.get();
  }

  /// Forgets the client that was used longest ago and has nothing to do. False: all are at work.
  bool drop_idle() {
    auto oldest = clients_.end();
    for (auto at = clients_.begin(); at != clients_.end(); ++at) {
      const bool busy = std::ranges::any_of(ears_, [&](const auto& entry) { return entry.second->key == at->first; });
      if (!busy && (oldest == clients_.end() || at->second.used < oldest->second.used)) oldest = at;
    }
    if (oldest == clients_.end()) return false;
    clients_.erase(oldest);
    return true;
  }

  void drop(const Ear& ear) {
    bytes_ -= ear.answer.body.size();
    ears_.erase(ear.id);
  }

  void on_done(Ear& ear, std::optional<Error> error) {
    // A kept connection that the webhook has closed meanwhile is no failure of the webhook.
    if (error && !ear.head_seen && !std::exchange(ear.repeated, true)) {
      io_.post([weak = weak_from_this(), id = ear.id] {
        if (const auto alive = weak.lock()) alive->repeat(id);
      });
      return;
    }
    bytes_ -= ear.answer.body.size();
    Result<api::Response> result = std::move(ear.answer);
    if (error) result = *std::move(error);
    if (ear.cut_off) result = overrun();
    const std::uint64_t id = ear.id;
    ears_.erase(id);
    deliver(id, std::move(result));
  }

  void repeat(std::uint64_t id) {
    const auto found = ears_.find(id);
    if (found == ears_.end()) return;
    const std::shared_ptr<Ear> ear = found->second;
    const Result<HttpClient*> client = client_for(ear->key, ear->call);
    if (client) return ear->start(**client);
    drop(*ear);
    deliver(id, client.error());
  }

  void end_overrun(std::uint64_t id) {
    if (!ears_.contains(id)) return;
    cancel(id);
    deliver(id, overrun());
  }

  void deliver(std::uint64_t id, Result<api::Response> result) {
    owner_.post([weak = waiting_, &owner = owner_, id, result = std::move(result)]() mutable {
      const auto waiting = weak.lock();
      if (waiting == nullptr) return;
      auto found = waiting->calls.extract(id);
      if (!found.empty()) found.mapped()(std::move(result), owner.now());
    });
  }

  runtime::Loop& owner_;
  runtime::Loop& io_;
  std::weak_ptr<Waiting> waiting_;
  Options options_;
  std::uint16_t own_port_ = 0;
  std::uint64_t uses_ = 0;
  std::size_t bytes_ = 0;
  std::map<std::string, Client> clients_;
  std::map<std::uint64_t, std::shared_ptr<Ear>> ears_;
};

HttpsWebhookCaller::HttpsWebhookCaller(runtime::Loop& loop, Options options)
    : loop_(loop), io_("spillway-hooks"), room_(std::make_shared<Room>(loop_, io_.loop(), waiting_, options)) {}

HttpsWebhookCaller::~HttpsWebhookCaller() {
  io_.stop();
  room_->close();
}

void HttpsWebhookCaller::set_own_port(std::uint16_t port) {
  io_.loop().post([room = room_, port] { room->set_own_port(port); });
}

void HttpsWebhookCaller::call(std::uint64_t id, WebhookCall call, Done done) {
  waiting_->calls.emplace(id, std::move(done));
  io_.loop().post([room = room_, id, call = std::move(call)]() mutable { room->start(id, std::move(call)); });
}

void HttpsWebhookCaller::cancel(std::uint64_t id) {
  if (waiting_->calls.erase(id) == 0) return;
  io_.loop().post([room = room_, id] { room->cancel(id); });
}

}  // namespace spillway::wire
