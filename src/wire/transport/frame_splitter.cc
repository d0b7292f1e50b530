#include "wire/transport/frame_splitter.h"

#include <utility>

namespace spillway::wire {

namespace {

bool blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

Result<std::vector<FrameSplitter::Frame>> FrameSplitter::push(std::string_view data) {
  std::vector<Frame> frames;
  while (!data.empty()) {
    const std::size_t end = data.find('\n');
    const std::string_view piece = data.substr(0, end);
    if (partial_.size() + piece.size() > frame_bytes_max_) {
      return make_error(ErrorCode::kRequestEntityTooLarge, "watch event longer than {} bytes", frame_bytes_max_);
    }
    partial_.append(piece);
    if (end == std::string_view::npos) break;
    data.remove_prefix(end + 1);
    if (!blank(partial_)) frames.push_back(std::make_shared<const std::string>(std::move(partial_)));
    partial_.clear();
  }
  return frames;
}

Result<std::vector<FrameSplitter::Frame>> FrameSplitter::push(const Frame& chunk) {
  const bool one_line = !chunk->empty() && chunk->find('\n') == chunk->size() - 1;
  if (!one_line || !partial_.empty() || chunk->size() > frame_bytes_max_ || blank(*chunk)) {
    return push(std::string_view(*chunk));
  }
  return std::vector<Frame>{chunk};
}

FrameSplitter::Frame FrameSplitter::finish() {
  const std::string rest = std::exchange(partial_, {});
  return blank(rest) ? nullptr : std::make_shared<const std::string>(rest);
}

}  // namespace spillway::wire
