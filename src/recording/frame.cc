#include "recording/frame.h"

#include "base/rng.h"

#include <cstdint>
#include <optional>

namespace spillway::recording {
namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kSumBytes = 8;
constexpr std::size_t kHeadBytes = kLengthBytes + kSumBytes;

// A length has a checksum of its own in its upper bits: a damaged length would look like an incomplete last frame, and
// hide every frame behind it. Frames of earlier programs have zeros there.
constexpr unsigned kLengthBits = 23;
constexpr unsigned kLengthSumBits = 7;
constexpr std::uint64_t kHasLengthSum = std::uint64_t{3} << (kLengthBits + kLengthSumBits);
static_assert(kRecordBytesMax < std::size_t{1} << kLengthBits);

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

/// CRC-7 (polynomial x^7 + x^3 + 1) of a length: finds each change of one or two bits.
std::uint64_t length_sum(std::uint64_t length) {
  constexpr std::uint64_t kPolynomial = 0x89;
  std::uint64_t rest = length << kLengthSumBits;
  for (unsigned bit = kLengthBits + kLengthSumBits; bit-- > kLengthSumBits;) {
    if ((rest >> bit & 1U) != 0) rest ^= kPolynomial << (bit - kLengthSumBits);
  }
  return rest;
}

std::uint64_t length_field(std::uint64_t length) {
  return kHasLengthSum | length_sum(length) << kLengthBits | length;
}

/// The length of a record; nullopt: damaged.
std::optional<std::uint64_t> length_from(std::uint64_t field) {
  const std::uint64_t length = (field & kHasLengthSum) == 0 ? field : field & ((std::uint64_t{1} << kLengthBits) - 1);
  if (length > kRecordBytesMax || (field != length && field != length_field(length))) return std::nullopt;
  return length;
}

}  // namespace

bool append_frame(std::string& file, std::string_view record) {
  if (record.size() > kRecordBytesMax) return false;
  append_number(file, length_field(record.size()), kLengthBytes);
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
    const auto length = length_from(number_at(file, at, kLengthBytes));
    if (!length) return make_error(ErrorCode::kInvalid, "the recording is damaged at byte {}: wrong length", at);
    if (file.size() - at - kHeadBytes < *length) break;
    const std::string_view record = file.substr(at + kHeadBytes, *length);
    const std::size_t next = at + kHeadBytes + *length;
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
