#include "wire/server/http_exchange.h"

#include "api/exchange/status.h"
#include "runtime/clock.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace spillway::wire {

bool HttpExchange::take(std::size_t bytes) {
  if (bytes == 0) return false;
  const std::size_t left = waiting_bytes.fetch_sub(bytes) - bytes;
  return left <= room_below && asks_room.exchange(false);
}

HttpSink::HttpSink(std::shared_ptr<HttpExchange> exchange, std::weak_ptr<AnswerTaker> taker,
                   std::shared_ptr<Outbox> outbox, std::shared_ptr<const AnswerContext> context)
    : exchange_(std::move(exchange)),
      taker_(std::move(taker)),
      outbox_(std::move(outbox)),
      context_(std::move(context)) {}

HttpSink::~HttpSink() {
  if (exchange_->ended) return;
  if (streaming_) {
    exchange_->in_pieces ? on_cut() : on_end();
  } else {
    on_response(status_response(make_error(ErrorCode::kInternalError, "the request was dropped without an answer")));
  }
}

void HttpSink::put(Outbox::What what) {
  outbox_->add({taker_, exchange_, std::move(what)});
}

void HttpSink::on_response(api::Response response) {
  seat_ = {};
  if (std::exchange(exchange_->ended, true)) return;
  const HttpExchange& to = *exchange_;
  auto body = std::make_shared<const std::string>(std::move(response.body));
  std::optional<ByteLedger::Charge> charge;
  if (to.repeatable) charge = context_->ledger->charge(to.client, to.rank, body, 0);
  if (to.repeatable && !charge) {
    context_->refusals->count(Refusal::kWaitingBytes, to.client, runtime::RealClock::read_mono());
    response = no_room_response();
    body = std::make_shared<const std::string>(std::move(response.body));
  }
  if (!charge) charge = context_->ledger->charge_anyway(to.client, body);
  response.body.clear();
  put(Answer{std::move(response), std::move(body), *std::move(charge)});
}

void HttpSink::on_stream(api::Response head) {
  seat_ = {};
  if (exchange_->ended || std::exchange(streaming_, true)) return;
  put(Outbox::StreamHead{std::move(head)});
}

void HttpSink::on_pieces(api::Response head) {
  if (!exchange_->ended && !streaming_) exchange_->in_pieces = true;
  on_stream(std::move(head));
}

void HttpSink::when_below(std::size_t bytes, std::function<void()> act) {
  if (exchange_->ended || exchange_->gone) return;
  exchange_->on_room = std::move(act);
  exchange_->room_below = bytes;
  exchange_->asks_room = true;
  // The connection may have taken bytes before asks_room was set.
  if (exchange_->waiting_bytes > bytes || !exchange_->asks_room.exchange(false)) return;
  std::exchange(exchange_->on_room, nullptr)();
}

void HttpSink::on_upgrade(api::Response head, std::shared_ptr<api::UpgradedInput> input) {
  seat_ = {};
  if (exchange_->ended || exchange_->gone) return input->on_input_end();
  if (std::exchange(streaming_, true)) return;
  exchange_->input = std::move(input);
  put(Outbox::UpgradeHead{std::move(head)});
}

void HttpSink::on_input_used(std::size_t bytes) {
  if (bytes == 0) return;
  exchange_->input_bytes.fetch_sub(bytes);
  put(Outbox::InputRoom{});
}

bool HttpSink::write(std::shared_ptr<const std::string> chunk) {
  if (exchange_->ended || exchange_->gone) return false;
  if (chunk->empty()) return true;
  const std::size_t waiting = exchange_->waiting_bytes.fetch_add(chunk->size()) + chunk->size();
  std::optional<ByteLedger::Charge> charge;
  if (waiting <= context_->stream_bytes_max) {
    charge = context_->ledger->charge(exchange_->client, exchange_->rank, chunk, waiting - chunk->size());
  }
  if (!charge) {
    context_->refusals->count(Refusal::kWaitingBytes, exchange_->client, runtime::RealClock::read_mono());
    exchange_->waiting_bytes.fetch_sub(chunk->size());
    return false;
  }
  put(Outbox::Chunk{std::move(chunk), *std::move(charge)});
  return true;
}

void HttpSink::on_end() {
  if (std::exchange(exchange_->ended, true)) return;
  exchange_->on_room = nullptr;
  const auto input = std::exchange(exchange_->input, nullptr);
  put(Outbox::End{});
  if (input) input->on_input_end();  // last, because the receiver may release this sink
}

void HttpSink::on_cut() {
  if (std::exchange(exchange_->ended, true)) return;
  exchange_->on_room = nullptr;
  put(Outbox::Cut{});
}

api::Response no_room_response() {
  return status_response(
      make_error(ErrorCode::kTooManyRequests, "too many bytes wait for slow clients, try again later"));
}

api::Response status_response(const Error& error, std::optional<int> http_status) {
  api::Status status(error);
  if (error.code == ErrorCode::kTooManyRequests) status = api::retry_status(error.code, error.text(), 1);
  if (http_status && *http_status != status.code) {
    status.code = *http_status;
    status.reason.clear();  // Kubernetes has no word for it
  }
  api::Response response;
  response.status = status.code;
  response.headers = {{"Content-Type", "application/json"}};
  if (status.details && status.details->retry_after_seconds) {
    response.headers.emplace_back("Retry-After", fmt::format("{}", *status.details->retry_after_seconds));
  }
  response.body = api::to_text(api::to_json(status)) + "\n";
  return response;
}

}  // namespace spillway::wire
