#include "host/observation/net_dev.h"

#include "host/kernel/kernel_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace spillway::host {
namespace {

constexpr std::string_view kPrimary = "eth0";
constexpr std::array<std::string_view, 4> kLeftOut = {"lo", "veth", "docker", "nerdctl"};
constexpr std::size_t kColumns = 16;
// Positions in a line: eight counters of received data, then eight of sent data.
constexpr std::size_t kRxBytes = 0;
constexpr std::size_t kRxErrors = 2;
constexpr std::size_t kTxBytes = 8;
constexpr std::size_t kTxErrors = 10;

std::string_view take_column(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

Result<std::array<std::uint64_t, kColumns>> parse_columns(std::string_view text) {
  std::array<std::uint64_t, kColumns> columns{};
  for (std::uint64_t& column : columns) {
    const std::string_view word = take_column(text);
    const std::optional<std::uint64_t> number = parse_number(word);
    if (!number) return invalid("/proc/net/dev", "\"{}\" is not a counter", word.substr(0, 32));
    column = *number;
  }
  return columns;
}

}  // namespace

Result<api::NetworkStats> parse_net_dev(std::string_view text, WallTime at) {
  api::NetworkStats stats;
  stats.time = at;
  take_line(text);  // two lines of headings
  take_line(text);
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return invalid("/proc/net/dev", "malformed line \"{}\"", line.substr(0, 96));
    std::string_view head = line.substr(0, colon);
    const std::string_view name = take_column(head);
    if (std::ranges::any_of(kLeftOut, [&](std::string_view prefix) { return name.starts_with(prefix); })) continue;
    SPILLWAY_TRY(columns, parse_columns(line.substr(colon + 1)));
    stats.interfaces.push_back({.name = std::string(name),
                                .rx_bytes = columns[kRxBytes],
                                .rx_errors = columns[kRxErrors],
                                .tx_bytes = columns[kTxBytes],
                                .tx_errors = columns[kTxErrors]});
    if (name == kPrimary) stats.primary = stats.interfaces.back();
  }
  return stats;
}

}  // namespace spillway::host
