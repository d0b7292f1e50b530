#include "base/edit_distance.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace spillway {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, change}));
    }
  }
  return row[b.size()];
}

void NearestWord::offer(std::string_view candidate, std::string_view name) {
  const std::size_t distance = edit_distance(word_, candidate);
  if (distance >= limit_) return;
  limit_ = distance;
  found_ = name;
}

std::string NearestWord::suggestion() const {
  return found_.empty() ? std::string() : fmt::format(" (did you mean {}?)", found_);
}

}  // namespace spillway
