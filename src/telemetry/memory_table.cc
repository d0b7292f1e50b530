#include "telemetry/memory_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace spillway::telemetry {

std::string memory_table(std::span<const MemoryRow> rows) {
  constexpr std::string_view kOwner = "OWNER";
  constexpr std::string_view kCount = "COUNT";
  constexpr std::string_view kBytes = "BYTES";
  std::size_t owner_width = kOwner.size();
  std::size_t count_width = kCount.size();
  std::size_t bytes_width = kBytes.size();
  for (const MemoryRow& row : rows) {
    owner_width = std::max(owner_width, row.owner.size());
    count_width = std::max(count_width, std::to_string(row.count).size());
    bytes_width = std::max(bytes_width, std::to_string(row.bytes).size());
  }
  std::string text =
      fmt::format("{:<{}}  {:>{}}  {:>{}}\n", kOwner, owner_width, kCount, count_width, kBytes, bytes_width);
  for (const MemoryRow& row : rows) {
    text +=
        fmt::format("{:<{}}  {:>{}}  {:>{}}\n", row.owner, owner_width, row.count, count_width, row.bytes, bytes_width);
  }
  return text;
}

}  // namespace spillway::telemetry
