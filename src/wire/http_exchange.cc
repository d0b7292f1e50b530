#include "wire/http_exchange.h"

#include "api/status.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace spillway::wire {

HttpSink::HttpSink(std::shared_ptr<HttpExchange> exchange, std::weak_ptr<AnswerTaker> taker,
                   std::shared_ptr<runtime::Loop> taker_loop, std::size_t stream_bytes_max)
    : exchange_(std::move(exchange)),
      taker_(std::move(taker)),
      taker_loop_(std::move(taker_loop)),
      stream_bytes_max_(stream_bytes_max) {}

HttpSink::~HttpSink() {
  if (exchange_->ended) return;
  if (streaming_) {
    on_end();
  } else {
    on_response(status_response(make_error(ErrorCode::kInternalError, "the request was dropped without an answer")));
  }
}

template <typename Act>
void HttpSink::post(Act act) {
  taker_loop_->post([taker = taker_, exchange = exchange_, act = std::move(act)]() mutable {
    if (const auto alive = taker.lock()) act(*alive, exchange);
  });
}

void HttpSink::on_response(api::Response response) {
  if (std::exchange(exchange_->ended, true)) return;
  post([response = std::move(response)](AnswerTaker& taker, const std::shared_ptr<HttpExchange>& exchange) mutable {
    taker.on_answer(exchange, std::move(response));
  });
}

void HttpSink::on_stream(api::Response head) {
  if (exchange_->ended || std::exchange(streaming_, true)) return;
  post([head = std::move(head)](AnswerTaker& taker, const std::shared_ptr<HttpExchange>& exchange) mutable {
    taker.on_answer_stream(exchange, std::move(head));
  });
}

bool HttpSink::write(std::shared_ptr<const std::string> chunk) {
  if (exchange_->ended || exchange_->gone) return false;
  if (chunk->empty()) return true;
  const std::size_t waiting = exchange_->waiting_bytes.fetch_add(chunk->size()) + chunk->size();
  if (waiting > stream_bytes_max_) {
    exchange_->waiting_bytes.fetch_sub(chunk->size());
    return false;
  }
  post([chunk = std::move(chunk)](AnswerTaker& taker, const std::shared_ptr<HttpExchange>& exchange) mutable {
    taker.on_answer_data(exchange, std::move(chunk));
  });
  return true;
}

void HttpSink::on_end() {
  if (std::exchange(exchange_->ended, true)) return;
  post([](AnswerTaker& taker, const std::shared_ptr<HttpExchange>& exchange) { taker.on_answer_end(exchange); });
}

api::Response status_response(const Error& error) {
  api::Status status(error);
  if (error.code == ErrorCode::kTooManyRequests) status = api::retry_status(error.code, error.text(), 1);
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
