#include "host/logs/log_source.h"

#include "host/kernel/kernel_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <string_view>
#include <utility>

namespace spillway::host {
namespace {

constexpr int kPartsMax = 100;
constexpr std::size_t kBlockBytes = std::size_t{64} * 1024;

/// Bytes of the file from `at` on; fewer than requested only at its end.
Result<std::string_view> read_at(int fd, const std::string& name, off_t at, std::span<char> into) {
  std::size_t size = 0;
  while (size < into.size()) {
    const ssize_t got = ::pread(fd, into.data() + size, into.size() - size, at + static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(name, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  return std::string_view(into.data(), size);
}

/// The offset behind the `wanted`-th line end before `end`, not before `floor`; `wanted` becomes 0 if there
/// are so many, else it is reduced by those there are.
Result<off_t> seek_back(int fd, const std::string& name, off_t floor, off_t end, std::int64_t& wanted) {
  std::array<char, kBlockBytes> block;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  while (end > floor) {
    const off_t start = std::max(floor, end - static_cast<off_t>(block.size()));
    SPILLWAY_TRY(text, read_at(fd, name, start, std::span(block).first(static_cast<std::size_t>(end - start))));
    for (std::size_t at = text.size(); at > 0; --at) {
      if (text[at - 1] == '\n' && --wanted == 0) return start + static_cast<off_t>(at);
    }
    end = start;
  }
  return floor;
}

/// The start of the first line after `at`; `end` if there is none.
Result<off_t> next_line(int fd, const std::string& name, off_t at, off_t end) {
  std::array<char, kBlockBytes> block;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  while (at < end) {
    const auto size = static_cast<std::size_t>(std::min<off_t>(end - at, static_cast<off_t>(block.size())));
    SPILLWAY_TRY(text, read_at(fd, name, at, std::span(block).first(size)));
    if (const std::size_t found = text.find('\n'); found != std::string_view::npos) {
      return at + static_cast<off_t>(found) + 1;
    }
    if (text.empty()) break;
    at += static_cast<off_t>(text.size());
  }
  return end;
}

}  // namespace

Result<LogSource> LogSource::open(const std::string& path, std::optional<std::int64_t> tail_lines) {
  LogSource source;
  std::size_t bytes = 0;
  // Counts line ends from the end, up to the one before the first wanted line.
  std::int64_t line_ends = tail_lines ? std::max<std::int64_t>(0, *tail_lines) + 1 : 0;
  for (int number = 0; number < kPartsMax && bytes < kBytesMax; ++number) {
    Part part;
    part.name = number == 0 ? path : fmt::format("{}.{}", path, number);
    part.file = UniqueFd(::open(part.name.c_str(), O_RDONLY | O_CLOEXEC));
    if (!part.file && number > 0) break;
    const off_t size = part.file ? ::lseek(part.file.get(), 0, SEEK_END) : -1;
    if (size < 0) return errno_error(part.name, errno);
    const off_t floor = std::max<off_t>(0, size - static_cast<off_t>(kBytesMax - bytes));
    part.at = floor;
    part.end = size;
    if (tail_lines) {
      SPILLWAY_TRY(start, seek_back(part.file.get(), part.name, floor, size, line_ends));
      part.at = start;
    }
    const bool complete = tail_lines && line_ends == 0;
    if (!complete && floor > 0) {
      SPILLWAY_TRY(start, next_line(part.file.get(), part.name, floor, size));
      part.at = start;
    }
    bytes += static_cast<std::size_t>(size - floor);
    source.parts_.push_back(std::move(part));
    if (complete) break;
  }
  return source;
}

Result<std::string> LogSource::read(std::size_t bytes_max) {
  while (!parts_.empty()) {
    Part& oldest = parts_.back();
    std::string text(std::min(bytes_max, static_cast<std::size_t>(oldest.end - oldest.at)), '\0');
    SPILLWAY_TRY(got, read_at(oldest.file.get(), oldest.name, oldest.at, text));
    text.resize(got.size());
    // A file that was cut in the meantime has ended.
    oldest.at = text.empty() ? oldest.end : oldest.at + static_cast<off_t>(text.size());
    if (!text.empty()) return text;
    if (parts_.size() == 1) break;
    parts_.pop_back();
  }
  return std::string();
}

UniqueFd LogSource::take_newest() {
  Part& newest = parts_.front();
  ::lseek(newest.file.get(), newest.end, SEEK_SET);
  return std::move(newest.file);
}

}  // namespace spillway::host
