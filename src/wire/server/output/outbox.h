// Messages of the loop to the connections of one thread: collected during a turn, handed over at its end in one piece.
// So a turn in which a thousand watches of a thread got an event costs that thread one wake-up, not a thousand.
// Order: as added. Bounds: kBatchMax pieces are handed over at once. Thread: the loop's, but for the connections' side.
#pragma once

#include "api/exchange/exchange.h"
#include "runtime/loop.h"
#include "wire/server/bounds/byte_ledger.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace spillway::wire {

struct HttpExchange;

/// An answer without its body. `charge` is held until the body is sent.
struct Answer {
  api::Response head;
  std::shared_ptr<const std::string> body;
  ByteLedger::Charge charge;
};

/// Port: the connection's side of an answer. Thread: the connection's.
class AnswerTaker {
 public:
  virtual ~AnswerTaker() = default;
  virtual void on_answer(const std::shared_ptr<HttpExchange>& exchange, Answer answer) = 0;
  virtual void on_answer_stream(const std::shared_ptr<HttpExchange>& exchange, api::Response head) = 0;
  virtual void on_answer_data(const std::shared_ptr<HttpExchange>& exchange, std::shared_ptr<const std::string> chunk,
                              ByteLedger::Charge charge) = 0;
  /// The connection is upgraded.
  virtual void on_answer_upgrade(const std::shared_ptr<HttpExchange>& exchange, api::Response head) = 0;
  /// The handler has used up input.
  virtual void on_input_room(const std::shared_ptr<HttpExchange>& exchange) = 0;
  virtual void on_answer_end(const std::shared_ptr<HttpExchange>& exchange) = 0;
  /// The rest of the stream is lost, and the client must be able to see that.
  virtual void on_answer_cut(const std::shared_ptr<HttpExchange>& exchange) = 0;
};

class Outbox : public std::enable_shared_from_this<Outbox> {
 public:
  static constexpr std::size_t kBatchMax = 1024;

  struct StreamHead {
    api::Response head;
  };

  struct UpgradeHead {
    api::Response head;
  };

  struct Chunk {
    std::shared_ptr<const std::string> data;
    ByteLedger::Charge charge;
  };

  struct InputRoom {};

  struct End {};

  struct Cut {};

  using What = std::variant<Answer, StreamHead, UpgradeHead, Chunk, InputRoom, End, Cut>;

  struct Piece {
    std::weak_ptr<AnswerTaker> taker;
    std::shared_ptr<HttpExchange> exchange;
    What what;
  };

  /// `loop`: where pieces are added; must outlive the outbox or its close(). `taker_loop`: of the connections.
  Outbox(runtime::Loop& loop, std::shared_ptr<runtime::Loop> taker_loop)
      : loop_(loop), taker_loop_(std::move(taker_loop)) {}

  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  void add(Piece piece);
  /// Closes the outbox when the server ends: pieces are dropped from now on.
  void close();

  /// The number of batches that were handed over.
  std::uint64_t batches() const { return batches_; }

 private:
  void hand_over();

  runtime::Loop& loop_;
  const std::shared_ptr<runtime::Loop> taker_loop_;
  std::vector<Piece> pieces_;
  std::uint64_t batches_ = 0;
  bool ending_ = false;  // the end of the turn was requested
  bool closed_ = false;
};

}  // namespace spillway::wire
