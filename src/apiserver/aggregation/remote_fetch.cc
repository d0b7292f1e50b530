#include "apiserver/aggregation/remote_fetch.h"

#include "api/exchange/paced_sink.h"
#include "api/json/json.h"
#include "apiserver/aggregation/identity_headers.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::apiserver {

struct RemoteFetch::Call {
  Done done;
  TimerQueue::Id timer;
  std::optional<AggregatedGateway::Ticket> ticket;
  std::size_t bytes_max = 0;
  api::Response answer;
};

/// Collects an answer. It may outlive the call, whose number it has.
class RemoteFetch::Sink final : public api::PacedSink {
 public:
  Sink(RemoteFetch& fetch, std::uint64_t id) : fetch_(fetch), id_(id) {}

  /// Called only for a failure of the gateway and for an answer without a body.
  void on_response(api::Response response) override {
    if (response.ok()) return fetch_.finish(id_, std::move(response));
    const Result<api::Json> status = api::parse_json(response.body);
    const std::string why = status ? std::string(status->string_at({"message"})) : std::string();
    if (why.empty()) return fetch_.finish(id_, std::move(response));
    fetch_.finish(id_, make_error(ErrorCode::kServiceUnavailable, "{}", why));
  }

  void on_stream(api::Response head) override {
    if (Call* call = find()) call->answer = std::move(head);
  }

  bool write(std::shared_ptr<const std::string> chunk) override {
    Call* call = find();
    if (call == nullptr) return false;
    if (call->answer.body.size() + chunk->size() > call->bytes_max) {
      fetch_.finish(
          id_, make_error(ErrorCode::kRequestEntityTooLarge, "the answer has more than {} bytes", call->bytes_max));
      return false;
    }
    call->answer.body += *chunk;
    return true;
  }

  void on_end() override {
    if (Call* call = find()) fetch_.finish(id_, std::move(call->answer));
  }

  void on_cut() override { fetch_.finish(id_, make_error(ErrorCode::kServiceUnavailable, "the answer is cut off")); }

  std::size_t waiting_bytes() const override { return 0; }

 private:
  Call* find() {
    const auto found = fetch_.calls_.find(id_);
    return found == fetch_.calls_.end() ? nullptr : found->second.get();
  }

  RemoteFetch& fetch_;
  std::uint64_t id_;
};

RemoteFetch::~RemoteFetch() {
  for (const auto& [id, call] : calls_) {
    core_.timers.cancel(call->timer);
    if (call->ticket) gateway_->cancel(*call->ticket);
  }
}

void RemoteFetch::get(Question question, Done done) {
  const std::uint64_t id = ++last_;
  auto call = std::make_shared<Call>();
  call->done = std::move(done);
  call->bytes_max = question.bytes_max;
  call->timer = core_.timers.at(core_.now.mono + question.time_max, [this, id] {
    finish(id, make_error(ErrorCode::kTimeout, "context deadline exceeded"));
  });
  const bool is_full = calls_.size() >= kOpenMax;
  Call& kept = *calls_.emplace(id, std::move(call)).first->second;
  if (gateway_ == nullptr || is_full) {
    return finish(
        id, make_error(ErrorCode::kServiceUnavailable, "{}",
                       is_full ? "too many requests to API services are open" : "this server reaches no API services"));
  }
  api::Request request{.method = api::Method::kGet,
                       .target = std::move(question.target),
                       .headers = identity_headers(aggregator_user()),
                       .body = {},
                       .document = nullptr};
  request.headers.emplace_back("accept", "application/json");
  request.headers.emplace_back("user-agent", "kube-aggregator");
  if (!question.known_tag.empty()) request.headers.emplace_back("if-none-match", std::move(question.known_tag));
  request.headers.emplace_back("host", fmt::format("{}:{}", question.server.tls_name, question.server.port));
  const AggregatedGateway::Ticket ticket =
      gateway_->open(question.server, std::move(request), std::make_shared<Sink>(*this, id));
  if (calls_.contains(id)) kept.ticket = ticket;
}

/// `done` is called by a timer, so that it may begin the next call.
void RemoteFetch::finish(std::uint64_t id, Result<api::Response> result) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  const std::shared_ptr<Call> call = std::move(found->second);
  calls_.erase(found);
  core_.timers.cancel(call->timer);
  if (call->ticket && !result) gateway_->cancel(*call->ticket);
  core_.catch_up();
  auto answer = std::make_shared<Result<api::Response>>(std::move(result));
  core_.timers.at(core_.now.mono, [call, answer] { call->done(std::move(*answer)); });
}

}  // namespace spillway::apiserver
