#include "wire/net/socket_writer.h"

#include <string_view>
#include <utility>

namespace spillway::wire {
namespace {

constexpr std::size_t kReadyPerFlush = std::size_t{512} * 1024;

}  // namespace

/// Joins small pieces, so that many events become one write.
SocketWriter::Flushed SocketWriter::flush() {
  waits_ = Wait::kNothing;
  std::size_t made_ready = 0;
  while (true) {
    if (empty()) {
      if (made_ready >= kReadyPerFlush) {
        waits_ = Wait::kWritable;
        return Flushed::kOk;
      }
      ready_.clear();
      sent_ = 0;
      const std::size_t made = source_.fill(ready_);
      if (made == 0) break;
      made_ready += made;
      if (ready_.empty()) continue;
    }
    const ByteStream::Moved moved = stream_.write(std::string_view(ready_).substr(sent_));
    switch (moved.step) {
      case ByteStream::Step::kFailed:
      case ByteStream::Step::kEnd:
        return Flushed::kFailed;
      case ByteStream::Step::kWaitRead:
        waits_ = Wait::kReadable;
        return Flushed::kOk;
      case ByteStream::Step::kWaitWrite:
        waits_ = Wait::kWritable;
        return Flushed::kOk;
      case ByteStream::Step::kDone:
        break;
    }
    sent_ += moved.bytes;
    written_bytes_ += moved.bytes;
    if (empty()) source_.on_sent();
  }
  // Releases the memory of an empty writer, because the connection may stay idle for long.
  ready_ = {};
  sent_ = 0;
  return Flushed::kOk;
}

std::int64_t SocketWriter::taken_bytes() const {
  return static_cast<std::int64_t>(written_bytes_) - static_cast<std::int64_t>(untaken_bytes(stream_.socket()));
}

}  // namespace spillway::wire
