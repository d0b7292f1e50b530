#include "recording/frame.h"

#include "base/rng.h"

#include <cstdint>

namespace spillway::recording {
namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kSumBytes = 8;
constexpr std::size_t kHeadBytes = kLengthBytes + kSumBytes;

void append_number(std::string& text, std::uint64_t number, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i) & 0xffU);
}

std::uint64_t number_at(std::string_view text, std::size_t at, std::size_t bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    number |= std::uint64_t{static_cast<unsigned char>(text[at + i])} << (8 * i);
  }
  return number;
}

}  // namespace

bool append_frame(std::string& file, std::string_view record) {
  if (record.size() > kRecordBytesMax) return false;
  append_number(file, record.size(), kLengthBytes);
  append_number(file, fnv1a64(record), kSumBytes);
  file += record;
  return true;
}

Result<Frames> read_frames(std::string_view file, const Kind& kind) {
  if (!file.starts_with(kind.header)) {
    return make_error(ErrorCode::kInvalid, "not a recording of {}, or one of another version", kind.of);
  }
  Frames frames;
  std::size_t at = kind.header.size();
  while (file.size() - at >= kHeadBytes) {
    const std::uint64_t length = number_at(file, at, kLengthBytes);
    if (length > kRecordBytesMax) {
      return make_error(ErrorCode::kInvalid, "the recording is damaged at byte {}: a record of {} bytes", at, length);
    }
    if (file.size() - at - kHeadBytes < length) break;
    const std::string_view record = file.substr(at + kHeadBytes, length);
    const std::size_t next = at + kHeadBytes + length;
    if (number_at(file, at + kLengthBytes, kSumBytes) != fnv1a64(record)) {
      if (next == file.size()) break;
      return make_error(ErrorCode::kInvalid, "the recording is damaged at byte {}: wrong checksum", at);
    }
    frames.records.push_back(record);
    at = next;
  }
  frames.torn_bytes = file.size() - at;
  return frames;
}

Outcome append_segment(std::string& file, std::string_view segment, const Kind& kind) {
  SPILLWAY_TRY(frames, read_frames(segment, kind));
  const std::string_view whole = segment.substr(0, segment.size() - frames.torn_bytes);
  file += file.empty() ? whole : whole.substr(kind.header.size());
  return {};
}

}  // namespace spillway::recording
