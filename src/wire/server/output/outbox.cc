#include "wire/server/output/outbox.h"

#include <utility>

namespace spillway::wire {
namespace {

void deliver(AnswerTaker& taker, const std::shared_ptr<HttpExchange>& exchange, Outbox::What what) {
  if (auto* answer = std::get_if<Answer>(&what)) return taker.on_answer(exchange, std::move(*answer));
  if (auto* stream = std::get_if<Outbox::StreamHead>(&what))
    return taker.on_answer_stream(exchange, std::move(stream->head));
  if (auto* upgrade = std::get_if<Outbox::UpgradeHead>(&what))
    return taker.on_answer_upgrade(exchange, std::move(upgrade->head));
  if (auto* chunk = std::get_if<Outbox::Chunk>(&what))
    return taker.on_answer_data(exchange, std::move(chunk->data), std::move(chunk->charge));
  if (std::holds_alternative<Outbox::Cut>(what)) return taker.on_answer_cut(exchange);
  if (std::holds_alternative<Outbox::InputRoom>(what)) return taker.on_input_room(exchange);
  taker.on_answer_end(exchange);
}

}  // namespace

void Outbox::add(Piece piece) {
  if (closed_) return;
  pieces_.push_back(std::move(piece));
  if (pieces_.size() >= kBatchMax) return hand_over();
  if (std::exchange(ending_, true)) return;
  loop_.at_end_of_turn([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->ending_ = false;
    if (!self->pieces_.empty()) self->hand_over();
  });
}

void Outbox::hand_over() {
  ++batches_;
  std::vector<Piece> pieces = std::exchange(pieces_, {});
  pieces_.reserve(pieces.size());
  taker_loop_->post([pieces = std::move(pieces)]() mutable {
    for (Piece& piece : pieces) {
      if (const auto taker = piece.taker.lock()) deliver(*taker, piece.exchange, std::move(piece.what));
    }
  });
}

void Outbox::close() {
  closed_ = true;
  pieces_.clear();
}

}  // namespace spillway::wire
