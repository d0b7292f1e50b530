// One request under way: what the loop, which answers it, and the connection's thread, which carries the answer, share.
// Thread: as said per member.
#pragma once

#include "api/exchange.h"
#include "runtime/loop.h"
#include "wire/http_server.h"

#include <atomic>
#include <cstddef>
#include <memory>

namespace spillway::wire {

struct HttpExchange {
  // Both threads.
  std::atomic<bool> gone = false;              // set by the connection: nobody reads the answer any more
  std::atomic<std::size_t> waiting_bytes = 0;  // of a stream: handed over, not yet taken by the socket

  // Loop only.
  bool handed_over = false;  // the handler has it
  bool ended = false;        // the answer is complete, or abandoned
  RequestHandler::Ticket ticket = 0;
};

/// Port: the connection's side of an answer. Thread: the connection's.
class AnswerTaker {
 public:
  virtual ~AnswerTaker() = default;
  virtual void on_answer(const std::shared_ptr<HttpExchange>& exchange, api::Response response) = 0;
  virtual void on_answer_stream(const std::shared_ptr<HttpExchange>& exchange, api::Response head) = 0;
  virtual void on_answer_data(const std::shared_ptr<HttpExchange>& exchange,
                              std::shared_ptr<const std::string> chunk) = 0;
  virtual void on_answer_end(const std::shared_ptr<HttpExchange>& exchange) = 0;
};

/// A sink that says how much of a stream still waits for its client, so that a source can keep pace. Thread: loop.
class PacedSink : public api::ResponseSink {
 public:
  virtual std::size_t waiting_bytes() const = 0;
};

/// The handler's side of an answer: posts it to the connection. A sink that goes without an answer answers 500, or cuts
/// the stream. Thread: loop.
class HttpSink final : public PacedSink {
 public:
  HttpSink(std::shared_ptr<HttpExchange> exchange, std::weak_ptr<AnswerTaker> taker,
           std::shared_ptr<runtime::Loop> taker_loop, std::size_t stream_bytes_max);
  ~HttpSink() override;
  HttpSink(const HttpSink&) = delete;
  HttpSink& operator=(const HttpSink&) = delete;

  void on_response(api::Response response) override;
  void on_stream(api::Response head) override;
  bool write(std::shared_ptr<const std::string> chunk) override;
  void on_end() override;

  std::size_t waiting_bytes() const override { return exchange_->waiting_bytes; }

 private:
  template <typename Act>
  void post(Act act);

  std::shared_ptr<HttpExchange> exchange_;
  std::weak_ptr<AnswerTaker> taker_;
  std::shared_ptr<runtime::Loop> taker_loop_;
  std::size_t stream_bytes_max_;
  bool streaming_ = false;
};

/// A failure as an answer: a metav1.Status document.
api::Response status_response(const Error& error);

}  // namespace spillway::wire
