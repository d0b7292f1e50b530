#include "wire/dashboard/api_relay.h"

#include "api/exchange/paced_sink.h"
#include "wire/server/http_exchange.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace spillway::wire {

namespace {

constexpr std::size_t kRefusalMax = std::size_t{64} * 1024;  // bytes of a refusal that are passed on
/// Bytes of one answer on their way from the server to the sink; above, the server is not read on.
constexpr std::size_t kUnderWayMax = std::size_t{256} * 1024;
/// Bytes waiting in the sink above which the exchange is paused.
constexpr std::size_t kSinkFull = std::size_t{1024} * 1024;

}  // namespace

/// The members that live on the relay's thread.
struct ApiRelay::Far {
  std::optional<HttpClient> client;
};

/// An answer that is being relayed. Thread: loop, except Ear.
class ApiRelay::Exchange final : public std::enable_shared_from_this<Exchange> {
 public:
  /// Gets the events of the exchange on the relay's thread and posts them to its owner.
  struct Ear final : HttpClient::Listener {
    Ear(runtime::Loop& owner, std::shared_ptr<Far> at, std::uint64_t exchange, std::weak_ptr<Exchange> to)
        : loop(owner), far(std::move(at)), id(exchange), exchange_at(std::move(to)) {}

    template <typename Act>
    void post(Act act) {
      loop.post([weak = exchange_at, act = std::move(act)]() mutable {
        const auto alive = weak.lock();
        if (alive && alive->sink_) act(*alive);
      });
    }

    void on_head(const api::Response& head) override {
      post([head](Exchange& to) mutable { to.on_head(std::move(head)); });
    }

    void on_data(std::string data) override {
      under_way += data.size();
      if (under_way > kUnderWayMax && far->client && !std::exchange(paused, true)) far->client->pause(id);
      post([chunk = std::make_shared<const std::string>(std::move(data))](Exchange& to) mutable {
        to.on_data(std::move(chunk));
      });
    }

    void on_done(std::optional<Error> error) override {
      post([error = std::move(error)](Exchange& to) { to.on_done(error); });
    }

    void on_taken(std::size_t bytes) {
      under_way -= std::min(bytes, under_way);
      if (under_way <= kUnderWayMax / 2 && far->client && std::exchange(paused, false)) far->client->resume(id);
    }

    runtime::Loop& loop;
    std::shared_ptr<Far> far;
    std::uint64_t id;
    std::weak_ptr<Exchange> exchange_at;
    std::size_t under_way = 0;
    bool paused = false;
  };

  Exchange(ApiRelay& relay, std::uint64_t id, HttpClient::Kind kind, std::shared_ptr<api::ResponseSink> sink)
      : relay_(relay), id_(id), kind_(kind), sink_(std::move(sink)) {}

  void start(api::Request request) {
    ear_ = std::make_shared<Ear>(relay_.loop_, relay_.far_, id_, weak_from_this());
    relay_.io_.loop().post([far = relay_.far_, ear = ear_, id = id_, kind = kind_, max = relay_.options_.answer_max,
                            request = std::move(request)]() mutable {
      if (far->client) far->client->start(id, std::move(request), kind, max, std::move(ear));
    });
  }

  /// Ends the exchange without another call of the sink, which is destroyed.
  void stop() {
    sink_.reset();
    relay_.io_.loop().post([far = relay_.far_, id = id_] {
      if (far->client) far->client->cancel(id);
    });
    relay_.exchanges_.erase(id_);  // may be the end of this
  }

 private:
  void on_head(api::Response head) {
    const std::string type(head.header("content-type"));
    head_ = api::Response{.status = head.status, .headers = {{"Content-Type", type}}, .body = {}, .document = {}};
    head_->headers.emplace_back("X-Content-Type-Options", "nosniff");
    head_->headers.emplace_back("Cache-Control", "no-store");
    if (!head_->ok()) return;
    api::PacedSink* paced = api::paced(*sink_);
    kind_ == HttpClient::Kind::kCall&& paced != nullptr ? paced->on_pieces(*head_) : sink_->on_stream(*head_);
  }

  void on_data(std::shared_ptr<const std::string> chunk) {
    const std::size_t size = chunk->size();
    if (!head_->ok()) {
      head_->body.append(*chunk, 0, kRefusalMax - std::min(kRefusalMax, head_->body.size()));
      return taken(size);
    }
    if (const auto sink = sink_; !sink->write(std::move(chunk))) {
      cut(*sink);
      return stop();
    }
    api::PacedSink* paced = api::paced(*sink_);
    if (paced == nullptr || paced->waiting_bytes() <= kSinkFull) return taken(size + std::exchange(held_, 0));
    held_ += size;
    paced->when_below(kSinkFull / 2, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->taken(std::exchange(self->held_, 0));
    });
  }

  void taken(std::size_t bytes) {
    relay_.io_.loop().post([ear = ear_, bytes] { ear->on_taken(bytes); });
  }

  void on_done(const std::optional<Error>& error) {
    const auto sink = sink_;  // ending the answer may destroy this object
    if (!head_) {
      const Error problem = error ? *error : make_error(ErrorCode::kServiceUnavailable, "no answer");
      sink->on_response(status_response(
          make_error(ErrorCode::kServiceUnavailable, "the API server does not answer: {}", problem.text())));
    } else if (!head_->ok()) {
      sink->on_response(*std::move(head_));
    } else if (error) {
      cut(*sink);
    } else {
      sink->on_end();
    }
    stop();
  }

  static void cut(api::ResponseSink& sink) {
    api::PacedSink* paced = api::paced(sink);
    paced != nullptr ? paced->on_cut() : sink.on_end();
  }

  ApiRelay& relay_;
  std::uint64_t id_;
  HttpClient::Kind kind_;
  std::shared_ptr<api::ResponseSink> sink_;
  std::shared_ptr<Ear> ear_;
  std::optional<api::Response> head_;
  std::size_t held_ = 0;  // bytes not yet reported as taken
};

ApiRelay::ApiRelay(runtime::Loop& loop, Options options)
    : loop_(loop), options_(std::move(options)), io_("spillway-relay"), far_(std::make_shared<Far>()) {
  io_.loop().post([far = far_, io = &io_.loop(), endpoint = options_.endpoint, limits = options_.limits]() mutable {
    far->client.emplace(*io, std::move(endpoint), limits);
  });
}

ApiRelay::~ApiRelay() {
  const auto open = exchanges_;
  for (const auto& [id, exchange] : open) exchange->stop();
  io_.stop();
  far_->client.reset();
}

void ApiRelay::open(std::uint64_t id, api::Request request, HttpClient::Kind kind,
                    std::shared_ptr<api::ResponseSink> sink) {
  if (exchanges_.size() >= options_.exchanges_max) {
    return sink->on_response(status_response(make_error(
        ErrorCode::kTooManyRequests, "too many requests at a time pass through the dashboard, try again later")));
  }
  const auto exchange = std::make_shared<Exchange>(*this, id, kind, std::move(sink));
  exchanges_.emplace(id, exchange);
  exchange->start(std::move(request));
}

void ApiRelay::abandon(std::uint64_t id) {
  const auto found = exchanges_.find(id);
  if (found == exchanges_.end()) return;
  const auto exchange = found->second;
  exchange->stop();
}

}  // namespace spillway::wire
