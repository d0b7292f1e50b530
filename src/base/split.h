// A text cut into parts, which are views into it. Thread: any.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace spillway {

/// Cut at each `separator`; an empty text is one empty part.
inline std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// The words between any of the `separators`; empty ones are left out.
inline std::vector<std::string_view> words_in(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> words;
  for (std::size_t begin = text.find_first_not_of(separators); begin != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(separators, end);
  }
  return words;
}

}  // namespace spillway
