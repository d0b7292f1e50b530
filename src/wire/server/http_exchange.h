// One open request: the state that the loop, which answers it, and the connection's thread, which sends the answer,
// share.
// Thread: as stated per member.
#pragma once

#include "api/exchange/upgrade.h"
#include "runtime/loop.h"
#include "wire/server/bounds/byte_ledger.h"
#include "wire/server/bounds/refusals.h"
#include "wire/server/bounds/request_line.h"
#include "wire/server/http_server.h"
#include "wire/server/output/outbox.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace spillway::wire {

struct HttpExchange {
  /// Bytes of a body that was read before its turn: released by the destructor.
  class ReadAhead {
   public:
    ReadAhead() = default;

    /// `of`: the bytes of all.
    ReadAhead(std::shared_ptr<std::atomic<std::size_t>> of, std::size_t bytes) : of_(std::move(of)), bytes_(bytes) {
      of_->fetch_add(bytes_);
    }

    ReadAhead(ReadAhead&& other) noexcept = default;

    ReadAhead& operator=(ReadAhead&& other) noexcept {
      std::swap(of_, other.of_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }

    ~ReadAhead() {
      if (of_) of_->fetch_sub(bytes_);
    }

   private:
    std::shared_ptr<std::atomic<std::size_t>> of_;
    std::size_t bytes_ = 0;
  };

  // Set before another thread sees the exchange.
  std::string client;  // name of the user
  ClientRank rank = ClientRank::kUnproven;
  RequestClass of = RequestClass::kOrdinary;
  bool repeatable = false;  // the request changes nothing, so it may be refused even after it was executed
  std::int32_t stream = 0;  // the HTTP/2 stream on its connection
  ReadAhead read_ahead;

  // Members that both threads use.
  std::atomic<bool> gone = false;              // set by the connection: the client no longer reads the answer
  std::atomic<std::size_t> waiting_bytes = 0;  // bytes of a stream: handed over, not yet taken by the socket
  std::atomic<std::size_t> input_bytes = 0;    // bytes of an upgraded connection: read, not yet used by the handler
  std::atomic<std::size_t> room_below = 0;     // the fill level that on_room waits for
  std::atomic<bool> asks_room = false;         // set by the loop; the side that clears it has on_room called

  // Loop only.
  bool handed_over = false;  // the handler has the request
  bool ended = false;        // the answer is complete, or abandoned
  RequestHandler::Ticket ticket = 0;
  std::shared_ptr<api::UpgradedInput> input;  // set from the upgrade until the input ends
  std::function<void()> on_room;

  // Set on the loop before the connection gets the answer.
  bool in_pieces = false;  // the stream carries one whole answer

  /// The socket has accepted so many bytes of the stream. True: on_room is to be called. Thread: the connection's.
  bool take(std::size_t bytes);
};

/// Objects that the answers of a server share.
struct AnswerContext {
  std::shared_ptr<ByteLedger> ledger;
  std::shared_ptr<Refusals> refusals;
  std::size_t stream_bytes_max = 0;
};

/// The handler's side of an answer: puts it into the outbox for its connection. A sink that is destroyed without an
/// answer answers 500, or cuts the stream. Thread: loop.
class HttpSink final : public api::UpgradingSink {
 public:
  /// `context` must be that of the server whose `outbox` it is.
  HttpSink(std::shared_ptr<HttpExchange> exchange, std::weak_ptr<AnswerTaker> taker, std::shared_ptr<Outbox> outbox,
           std::shared_ptr<const AnswerContext> context);
  ~HttpSink() override;
  HttpSink(const HttpSink&) = delete;
  HttpSink& operator=(const HttpSink&) = delete;

  void on_response(api::Response response) override;
  void on_stream(api::Response head) override;
  bool write(std::shared_ptr<const std::string> chunk) override;
  void on_end() override;
  void on_upgrade(api::Response head, std::shared_ptr<api::UpgradedInput> input) override;
  void on_input_used(std::size_t bytes) override;

  std::size_t waiting_bytes() const override { return exchange_->waiting_bytes; }

  void when_below(std::size_t bytes, std::function<void()> act) override;

  bool takes_pieces() const override { return true; }

  void on_pieces(api::Response head) override;
  void on_cut() override;

  /// Given back with the answer, or when a stream begins.
  void take_seat(RequestLine::Seat seat) { seat_ = std::move(seat); }

 private:
  void put(Outbox::What what);

  std::shared_ptr<HttpExchange> exchange_;
  std::weak_ptr<AnswerTaker> taker_;
  std::shared_ptr<Outbox> outbox_;
  std::shared_ptr<const AnswerContext> context_;
  RequestLine::Seat seat_;
  bool streaming_ = false;
};

/// The answer when the bounds leave no room: 429 with Retry-After.
api::Response no_room_response();

/// A failure as an answer: a metav1.Status document. `http_status`: where HTTP has a code that the error has not.
api::Response status_response(const Error& error, std::optional<int> http_status = std::nullopt);

}  // namespace spillway::wire
