#include "wire/server/output_queue.h"

#include "wire/http/http_head.h"

#include <string_view>
#include <utility>

namespace spillway::wire {
namespace {

constexpr std::size_t kSendAtOnce = std::size_t{64} * 1024;  // encoded before it is handed to the socket
constexpr std::size_t kEncodePerFlush = std::size_t{512} * 1024;

}  // namespace

/// Many small events become one write.
void OutputQueue::fill() {
  sending_.clear();
  sent_ = 0;
  while (!pieces_.empty() && sending_.size() < kSendAtOnce && encoded_bytes_ < kEncodePerFlush) {
    Piece& piece = pieces_.front();
    encode_slice(piece);
    if (piece.taken == piece.data->size()) pieces_.pop_front();
  }
}

void OutputQueue::encode_slice(Piece& piece) {
  const std::string_view slice = std::string_view(*piece.data).substr(piece.taken, kSendAtOnce);
  piece.taken += slice.size();
  encoded_bytes_ += slice.size();
  if (piece.of_stream) sending_stream_bytes_ += slice.size();
  if (piece.gzip) {
    const bool last = piece.taken == piece.data->size();
    const std::string packed = piece.gzip->add(slice, last ? GzipStream::Last::kYes : GzipStream::Last::kNo);
    if (!packed.empty()) append_chunk(packed, sending_);
    if (last) sending_ += kLastChunk;
  } else if (piece.as_chunks) {
    append_chunk(slice, sending_);
  } else {
    sending_ += slice;
  }
}

OutputQueue::Flushed OutputQueue::flush() {
  Flushed flushed;
  waits_ = Wait::kNothing;
  encoded_bytes_ = 0;
  while (!empty()) {
    if (sent_ == sending_.size()) {
      if (encoded_bytes_ >= kEncodePerFlush) {
        waits_ = Wait::kWritable;
        return flushed;
      }
      fill();
      continue;
    }
    const ByteStream::Moved moved = stream_.write(std::string_view(sending_).substr(sent_));
    switch (moved.step) {
      case ByteStream::Step::kFailed:
      case ByteStream::Step::kEnd:
        flushed.failed = true;
        return flushed;
      case ByteStream::Step::kWaitRead:
        waits_ = Wait::kReadable;
        return flushed;
      case ByteStream::Step::kWaitWrite:
        waits_ = Wait::kWritable;
        return flushed;
      case ByteStream::Step::kDone:
        break;
    }
    sent_ += moved.bytes;
    written_bytes_ += moved.bytes;
    if (sent_ == sending_.size()) flushed.stream_bytes += std::exchange(sending_stream_bytes_, 0);
  }
  // Nothing waits: give the memory back, a connection may stay idle for long.
  sending_ = {};
  sent_ = 0;
  return flushed;
}

std::int64_t OutputQueue::taken_bytes() const {
  return static_cast<std::int64_t>(written_bytes_) - static_cast<std::int64_t>(untaken_bytes(stream_.socket()));
}

}  // namespace spillway::wire
