#include "wire/transport/relays.h"

#include "api/exchange/upgrade.h"
#include "wire/http/http_head.h"
#include "wire/server/http_exchange.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace spillway::wire {

namespace {

constexpr std::size_t kRefusalBytesMax = std::size_t{1024} * 1024;
/// Bytes in transit from the node to the sink; with more, no more is read from the node.
constexpr std::size_t kTransitBytesMax = std::size_t{256} * 1024;
/// Bytes waiting in the sink above which the transit is held up.
constexpr std::size_t kSinkBytesHigh = std::size_t{256} * 1024;
constexpr Duration kPaceInterval = milliseconds(10);
/// The interval at which a silent answer is checked for a client that has left.
constexpr Duration kProbeInterval = seconds(15);

constexpr std::uint64_t kOnlyExchange = 1;

bool belongs_to_connection(std::string_view name) {
  return name == "Connection" || name == "Transfer-Encoding" || name == "Content-Length" || name == "Keep-Alive" ||
         name == "Date";
}

}  // namespace

/// An answer that is relayed to a sink. Thread: loop, except Ear.
class Relays::Relay final : public std::enable_shared_from_this<Relay> {
 public:
  /// Gets the events of the exchange on the thread of the relays and posts them to the loop.
  struct Ear final : HttpClient::Listener {
    Ear(runtime::Loop& owner_loop, std::weak_ptr<Relay> owner) : loop(owner_loop), relay(std::move(owner)) {}

    template <typename Act>
    void post(Act act) {
      loop.post([weak = relay, act = std::move(act)]() mutable {
        const auto alive = weak.lock();
        if (alive && alive->sink_) act(*alive);
      });
    }

    void on_head(const api::Response& head) override {
      post([head](Relay& to) mutable { to.on_head(std::move(head)); });
    }

    void on_data(std::string data) override {
      in_transit += data.size();
      if (in_transit > kTransitBytesMax && !std::exchange(paused, true)) client->pause(kOnlyExchange);
      post([chunk = std::make_shared<const std::string>(std::move(data))](Relay& to) mutable {
        to.on_data(std::move(chunk));
      });
    }

    void on_written(std::size_t bytes) override {
      post([bytes](Relay& to) { to.on_written(bytes); });
    }

    void on_done(std::optional<Error> error) override {
      post([error = std::move(error)](Relay& to) { to.on_done(error); });
    }

    void on_taken(std::size_t bytes) {
      in_transit -= bytes;
      if (client && in_transit <= kTransitBytesMax / 2 && std::exchange(paused, false)) client->resume(kOnlyExchange);
    }

    runtime::Loop& loop;
    std::weak_ptr<Relay> relay;
    std::optional<HttpClient> client;
    std::size_t in_transit = 0;
    bool paused = false;
  };

  Relay(Relays& relays, std::uint64_t id, std::string problem, std::shared_ptr<api::ResponseSink> sink)
      : relays_(relays), id_(id), problem_(std::move(problem)), sink_(std::move(sink)) {}

  void start(HttpEndpoint endpoint, api::Request request) {
    asks_body_ = request.method != api::Method::kHead;
    ear_ = std::make_shared<Ear>(relays_.loop_, weak_from_this());
    relays_.io_->loop().post([ear = ear_, io = &relays_.io_->loop(), limits = relays_.bounds_.limits,
                              answer_max = relays_.bounds_.answer_max, endpoint = std::move(endpoint),
                              request = std::move(request)]() mutable {
      ear->client.emplace(*io, std::move(endpoint), limits);
      const auto kind = request.header("upgrade").empty() ? HttpClient::Kind::kStream : HttpClient::Kind::kUpgrade;
      ear->client->start(kOnlyExchange, std::move(request), kind, answer_max, ear);
    });
    arm(kProbeInterval);
  }

  /// Ends the relay without another call of the sink.
  std::shared_ptr<Ear> stop() {
    if (timer_) relays_.loop_.cancel(*timer_);
    timer_.reset();
    sink_.reset();
    if (!ear_) return nullptr;  // the end of the answer has ended it already
    std::shared_ptr<Ear> ear = std::move(ear_);
    relays_.io_->loop().post([ear] { ear->client.reset(); });
    relays_.open_.erase(id_);  // may be the end of this
    return ear;
  }

  /// Sends bytes of the client once its connection is upgraded.
  void send(std::string bytes) {
    if (!ear_) return;
    relays_.io_->loop().post([ear = ear_, bytes = std::move(bytes)] {
      if (ear->client) ear->client->write(kOnlyExchange, bytes);
    });
  }

 private:
  struct Input final : api::UpgradedInput {
    explicit Input(std::weak_ptr<Relay> to) : relay(std::move(to)) {}

    void on_input(std::string bytes) override {
      if (const auto alive = relay.lock()) alive->send(std::move(bytes));
    }

    void on_input_end() override {
      const auto alive = relay.lock();
      if (alive && alive->sink_) alive->stop();
    }

    std::weak_ptr<Relay> relay;
  };

  void on_written(std::size_t bytes) {
    if (const auto upgraded = api::upgrading(sink_)) upgraded->on_input_used(bytes);
  }

  bool streams() const { return head_ && (streams_ || upgraded_); }

  void on_head(api::Response head) {
    if (head.status == 101) return on_upgrade(std::move(head));
    const bool everything = relays_.passing_ == Passing::kEverything;
    if (!everything) {
      std::erase_if(head.headers, [](const auto& header) { return belongs_to_connection(header.first); });
    }
    head_ = std::move(head);
    streams_ = everything ? asks_body_ && !is_bodyless(head_->status) : head_->ok();
    if (streams_) sink_->on_stream(*head_);
  }

  void on_upgrade(api::Response head) {
    const auto upgraded = api::upgrading(sink_);
    if (upgraded == nullptr) {
      sink_->on_response(status_response(make_error(ErrorCode::kInternalError, "this connection cannot be upgraded")));
      stop();
      return;
    }
    upgraded_ = true;
    head_ = head;
    upgraded->on_upgrade(std::move(head), std::make_shared<Input>(weak_from_this()));
  }

  void on_data(std::shared_ptr<const std::string> chunk) {
    const std::size_t size = chunk->size();
    if (!streams()) {
      head_->body.append(*chunk, 0, kRefusalBytesMax - std::min(kRefusalBytesMax, head_->body.size()));
    } else if (const auto sink = sink_; !sink->write(std::move(chunk))) {
      cut(*sink);  // the answer is incomplete
      stop();
      return;
    }
    if (!sink_) return;
    held_ += size;
    keep_pace();
  }

  /// Cuts the answer; if the sink can show it, the reader notices that it is not complete.
  static void cut(api::ResponseSink& sink) {
    api::PacedSink* paced = api::paced(sink);
    paced != nullptr ? paced->on_cut() : sink.on_end();
  }

  void on_done(const std::optional<Error>& error) {
    const auto sink = sink_;  // ending the answer may destroy this object
    if (!head_) {
      const Error problem = error ? *error : make_error(ErrorCode::kServiceUnavailable, "no answer");
      sink->on_response(
          status_response(make_error(ErrorCode::kServiceUnavailable, "{}: {}", problem_, problem.text())));
    } else if (streams()) {
      error ? cut(*sink) : sink->on_end();
    } else {
      sink->on_response(*std::move(head_));
    }
    stop();
  }

  /// Reports bytes as taken once the sink has room, so that a client that reads slowly slows the node down.
  void keep_pace() {
    const bool full = api::waiting_bytes(*sink_) > kSinkBytesHigh;
    if (!full && held_ > 0) {
      relays_.io_->loop().post([ear = ear_, bytes = std::exchange(held_, 0)] { ear->on_taken(bytes); });
    }
    arm(full ? kPaceInterval : kProbeInterval);
  }

  void arm(Duration wait) {
    if (timer_) relays_.loop_.cancel(*timer_);
    timer_ = relays_.loop_.at(relays_.loop_.now().mono + wait, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->on_timer();
    });
  }

  void on_timer() {
    timer_.reset();
    const bool gone = streams() && !sink_->write(std::make_shared<const std::string>());
    if (!gone) return keep_pace();
    const auto sink = sink_;
    sink->on_end();
    stop();
  }

  Relays& relays_;
  std::uint64_t id_;
  std::string problem_;  // the error text for an answer that is missing
  std::shared_ptr<api::ResponseSink> sink_;
  std::shared_ptr<Ear> ear_;
  std::optional<api::Response> head_;
  bool asks_body_ = true;
  bool streams_ = false;  // the answer is forwarded as it arrives
  bool upgraded_ = false;
  std::size_t held_ = 0;  // bytes not yet reported as taken
  std::optional<runtime::Loop::TimerId> timer_;
};

Relays::Relays(runtime::Loop& loop, std::string thread_name, const Bounds& bounds, Passing passing)
    : loop_(loop), thread_name_(std::move(thread_name)), bounds_(bounds), passing_(passing) {}

Relays::~Relays() {
  const auto open = open_;
  std::vector<std::shared_ptr<Relay::Ear>> ears;
  for (const auto& [id, relay] : open) ears.push_back(relay->stop());
  if (io_) io_->stop();
  for (const auto& ear : ears)
    if (ear) ear->client.reset();  // ear and client hold each other
}

std::uint64_t Relays::open(HttpEndpoint endpoint, api::Request request, std::string problem,
                           std::shared_ptr<api::ResponseSink> sink) {
  if (!io_) io_.emplace(thread_name_);
  const std::uint64_t id = ++last_id_;
  const auto relay = std::make_shared<Relay>(*this, id, std::move(problem), std::move(sink));
  open_.emplace(id, relay);
  relay->start(std::move(endpoint), std::move(request));
  return id;
}

void Relays::cancel(std::uint64_t id) {
  const auto found = open_.find(id);
  if (found == open_.end()) return;
  const std::shared_ptr<Relay> relay = found->second;
  relay->stop();
}

}  // namespace spillway::wire
