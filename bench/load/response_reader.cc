#include "load/response_reader.h"

#include "base/ascii.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace spillway::load {
namespace {

constexpr std::size_t kHeadBytesMax = std::size_t{64} * 1024;

std::optional<std::uint64_t> number(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (problem != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

/// The value of a header field; empty if there is none.
std::string_view field(std::string_view head, std::string_view name) {
  while (!head.empty()) {
    const std::size_t end = head.find('\n');
    const std::string_view line = head.substr(0, end);
    head = end == std::string_view::npos ? std::string_view() : head.substr(end + 1);
    if (line.size() <= name.size() || line[name.size()] != ':' ||
        !equal_ignoring_case(line.substr(0, name.size()), name)) {
      continue;
    }
    std::string_view value = line.substr(name.size() + 1);
    while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
    return value;
  }
  return {};
}

}  // namespace

bool ResponseReader::take_line(std::string_view& bytes) {
  const std::size_t end = bytes.find('\n');
  line_ += bytes.substr(0, end);
  if (end == std::string_view::npos) {
    bytes = {};
    return false;
  }
  bytes.remove_prefix(end + 1);
  if (line_.ends_with('\r')) line_.pop_back();
  return true;
}

bool ResponseReader::begin(Receiver& receiver) {
  if (!head_.starts_with("HTTP/1.") || head_.size() < 12) return false;
  const auto status = number(std::string_view(head_).substr(9, 3), 10);
  if (!status) return false;
  const auto length = number(field(head_, "content-length"), 10);
  const bool chunked = field(head_, "transfer-encoding") == "chunked";
  head_.clear();
  receiver.on_head(static_cast<int>(*status));
  left_ = length.value_or(0);
  state_ = chunked ? State::kChunkSize : left_ > 0 ? State::kBody : State::kHead;
  if (state_ == State::kHead) receiver.on_end();
  return true;
}

void ResponseReader::take_body(std::string_view& bytes, Receiver& receiver) {
  const std::string_view piece =
      bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size())));
  bytes.remove_prefix(piece.size());
  left_ -= piece.size();
  receiver.on_body(piece);
  if (left_ != 0) return;
  if (state_ == State::kChunk) {
    state_ = State::kChunkEnd;
  } else {
    state_ = State::kHead;
    receiver.on_end();
  }
}

bool ResponseReader::on_line(Receiver& receiver) {
  switch (state_) {
    case State::kHead:
      if (line_.empty()) return begin(receiver);
      head_ += line_;
      head_ += '\n';
      return head_.size() <= kHeadBytesMax;
    case State::kChunkSize: {
      const auto size = number(line_, 16);
      if (!size) return false;
      left_ = *size;
      state_ = left_ == 0 ? State::kTrailer : State::kChunk;
      return true;
    }
    case State::kChunkEnd:
      state_ = State::kChunkSize;
      return line_.empty();
    case State::kTrailer:
      if (!line_.empty()) return true;
      state_ = State::kHead;
      receiver.on_end();
      return true;
    case State::kBody:
    case State::kChunk:
      return false;
  }
  return false;
}

bool ResponseReader::feed(std::string_view bytes, Receiver& receiver) {
  while (!bytes.empty()) {
    if (state_ == State::kBody || state_ == State::kChunk) {
      take_body(bytes, receiver);
      continue;
    }
    if (!take_line(bytes)) return line_.size() <= kHeadBytesMax;
    const bool fine = on_line(receiver);
    line_.clear();
    if (!fine) return false;
  }
  return true;
}

}  // namespace spillway::load
