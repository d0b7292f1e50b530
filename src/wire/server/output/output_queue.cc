#include "wire/server/output/output_queue.h"

#include "wire/http/http_head.h"

#include <algorithm>
#include <string_view>

namespace spillway::wire {

namespace {

constexpr std::size_t kEncodedMax = 4 * SocketWriter::kReadyMax;  // room for a body that compresses well

}  // namespace

std::size_t OutputQueue::fill(std::string& ready) {
  std::size_t encoded = 0;
  while (!pieces_.empty() && ready.size() < SocketWriter::kReadyMax && encoded < kEncodedMax) {
    Piece& piece = pieces_.front();
    const std::size_t before = piece.taken;
    encode_slice(piece, ready);
    encoded += piece.taken - before;
    if (piece.taken == piece.data->size()) pieces_.pop_front();
  }
  return std::max(encoded, ready.size());
}

void OutputQueue::encode_slice(Piece& piece, std::string& ready) {
  const std::string_view slice = std::string_view(*piece.data).substr(piece.taken, SocketWriter::kReadyMax);
  piece.taken += slice.size();
  // Bytes that the compression has consumed count as sent: it may keep megabytes of text before it gives a byte.
  if (piece.of_stream) (piece.gzip ? sent_stream_bytes_ : ready_stream_bytes_) += slice.size();
  if (piece.gzip) {
    const bool last = piece.of_stream ? piece.ends_stream : piece.taken == piece.data->size();
    const std::string packed = piece.gzip->add(slice, last ? GzipStream::Last::kYes : GzipStream::Last::kNo);
    if (!packed.empty()) append_chunk(packed, ready);
    if (last) ready += kLastChunk;
  } else if (piece.as_chunks) {
    append_chunk(slice, ready);
  } else {
    ready += slice;
  }
}

}  // namespace spillway::wire
