#include "wire/server/output/answer_body.h"

#include <utility>

namespace spillway::wire {
namespace {

constexpr std::size_t kPackAtOnce = std::size_t{64} * 1024;

}  // namespace

AnswerBody::Part AnswerBody::next(std::size_t max) {
  while (packed_taken_ == packed_.size()) {
    if (pieces_.empty()) return {.bytes = {}, .last = true};
    Piece& piece = pieces_.front();
    if (!piece.gzip) {
      const std::string_view bytes = std::string_view(*piece.data).substr(piece.taken, max);
      return {.bytes = bytes, .last = pieces_.size() == 1 && piece.taken + bytes.size() == piece.data->size()};
    }
    const std::string_view slice = std::string_view(*piece.data).substr(piece.taken, kPackAtOnce);
    piece.taken += slice.size();
    const bool used_up = piece.taken == piece.data->size();
    const bool last = piece.of_stream ? piece.ends_stream : used_up;
    if (piece.of_stream) packed_stream_bytes_ += slice.size();
    packed_ = piece.gzip->add(slice, last ? GzipStream::Last::kYes : GzipStream::Last::kNo);
    packed_taken_ = 0;
    if (used_up) pieces_.pop_front();
  }
  const std::string_view bytes = std::string_view(packed_).substr(packed_taken_, max);
  return {.bytes = bytes, .last = pieces_.empty() && packed_taken_ + bytes.size() == packed_.size()};
}

std::size_t AnswerBody::take(std::size_t bytes) {
  if (packed_taken_ < packed_.size()) {
    packed_taken_ += bytes;
    if (packed_taken_ == packed_.size()) {
      packed_ = {};
      packed_taken_ = 0;
    }
    return 0;
  }
  Piece& piece = pieces_.front();
  piece.taken += bytes;
  const std::size_t of_stream = piece.of_stream ? bytes : 0;
  if (piece.taken == piece.data->size()) pieces_.pop_front();
  return of_stream;
}

void AnswerBody::clear() {
  pieces_.clear();
  packed_ = {};
  packed_taken_ = 0;
}

}  // namespace spillway::wire
