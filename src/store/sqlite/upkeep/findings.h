// The problems found in a database: lines for people, up to a readable number.
// Thread: one at a time.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace spillway::store::sqlite {

class Findings {
 public:
  /// Lines that are kept; further findings are only counted.
  static constexpr std::size_t kLinesMax = 200;

  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    ++count_;
    if (lines_.size() < kLinesMax) lines_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  const std::vector<std::string>& lines() const { return lines_; }

  std::uint64_t count() const { return count_; }

 private:
  std::vector<std::string> lines_;
  std::uint64_t count_ = 0;
};

}  // namespace spillway::store::sqlite
