#include "cli/text/value_text.h"

#include "base/bytes_text.h"
#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

namespace spillway::cli {
namespace {

constexpr std::array<std::string_view, 4> kUnits{"_bytes", "_seconds", "_inodes", "_processes"};
constexpr std::string_view kUnpainted = "\x1b[0m";
constexpr std::size_t kGap = 3;        // blanks between two columns
constexpr std::size_t kNarrowGap = 2;  // used if the table would be too wide otherwise

std::string seconds_text(double seconds) {
  if (std::abs(seconds) < 0.9995) return fmt::format("{:.0f}ms", seconds * 1000);
  if (std::abs(seconds) < 120) return short_number(seconds) + "s";
  if (std::abs(seconds) < 7200) return fmt::format("{:.0f}m", seconds / 60);
  return fmt::format("{:.0f}h", seconds / 3600);
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

/// `text` in pieces of at most `width` bytes, cut at blanks; one piece at least.
std::vector<std::string> pieces_of(std::string_view text, std::size_t width) {
  std::vector<std::string> pieces;
  while (text.size() > width) {
    std::size_t cut = text.rfind(' ', width);
    if (cut == std::string_view::npos || cut == 0) cut = text.find(' ', width);
    if (cut == std::string_view::npos) break;
    pieces.emplace_back(text.substr(0, cut));
    text.remove_prefix(cut + 1);
  }
  pieces.emplace_back(text);
  return pieces;
}

/// The unit in which a number of bytes is shown, and its size.
std::pair<std::string_view, double> unit_of(double bytes) {
  static constexpr std::array<std::string_view, 6> kSuffixes{"", "Ki", "Mi", "Gi", "Ti", "Pi"};
  double size = 1;
  std::size_t power = 0;
  for (; std::abs(bytes) / size >= 1024 && power + 1 < kSuffixes.size(); ++power) size *= 1024;
  return {kSuffixes[power], size};
}

}  // namespace

double fact_number(const policy::Fact& fact) {
  if (const auto* whole = std::get_if<std::int64_t>(&fact.value)) return static_cast<double>(*whole);
  const auto* number = std::get_if<double>(&fact.value);
  return number == nullptr ? 0 : *number;
}

std::string wrapped(std::string_view text, std::string_view indent, std::size_t width) {
  std::string lines;
  for (const std::string& piece :
       pieces_of(text, width == 0 ? std::string_view::npos : width - std::min(width, indent.size()))) {
    lines += fmt::format("{}{}\n", indent, std::string_view(piece).substr(0, piece.find_last_not_of(' ') + 1));
  }
  return lines;
}

std::string value_text_apart(const policy::Fact& fact, const policy::Fact& other) {
  const std::string usual = value_text(fact);
  const double value = fact_number(fact);
  const bool is_bytes = fact.name.ends_with("_bytes");
  if (usual != value_text(other) || value == fact_number(other) || (!is_bytes && !fact.name.ends_with("_seconds"))) {
    return usual;
  }
  const bool is_less = value < fact_number(other);
  const auto [unit, size] = is_bytes ? unit_of(value) : std::pair<std::string_view, double>("s", 1);
  double parts = 10;
  for (int decimals = 2; decimals <= 4; ++decimals) {
    parts *= 10;
    const double scaled = value / size * parts;
    const double cut = (is_less ? std::floor(scaled) : std::ceil(scaled)) / parts;
    if (cut != fact_number(other) / size) return fmt::format("{:.{}f}{}", cut, decimals, unit);
  }
  return is_bytes ? fmt::format("{:.0f}", value) : fmt::format("{:.6f}s", value);
}

std::string amount_text(std::string_view resource, const policy::Fact& fact) {
  if (std::holds_alternative<std::string>(fact.value)) return value_text(fact);
  const double amount = fact_number(fact);
  if (resource == "memory" || resource == "ephemeral-storage" || resource.starts_with("hugepages-")) {
    return bytes_text(amount);
  }
  if (resource != "cpu") return value_text(fact);
  const auto milli = static_cast<std::int64_t>(amount);
  return milli % 1000 == 0 ? fmt::format("{}", milli / 1000) : fmt::format("{}m", milli);
}

std::string value_text(const policy::Fact& fact) {
  if (const auto* text = std::get_if<std::string>(&fact.value)) return *text;
  const double number = std::holds_alternative<double>(fact.value)
                            ? std::get<double>(fact.value)
                            : static_cast<double>(std::get<std::int64_t>(fact.value));
  if (fact.name.ends_with("_bytes")) return bytes_text(number);
  if (fact.name.ends_with("_seconds")) return number == 0 ? "0s" : seconds_text(number);
  if (const auto* whole = std::get_if<std::int64_t>(&fact.value)) return fmt::format("{}", *whole);
  return std::abs(number) < 10 ? fmt::format("{:.3g}", number) : short_number(number);
}

const policy::Fact* find_measured(const std::vector<policy::Fact>& facts, std::string_view what) {
  for (const std::string_view unit : {"_bytes", "_inodes", "_processes"}) {
    if (const policy::Fact* fact = policy::find_fact(facts, fmt::format("{}{}", what, unit))) return fact;
  }
  return nullptr;
}

std::string heading_of(std::string_view fact_name) {
  for (const std::string_view unit : kUnits) {
    if (fact_name.ends_with(unit)) fact_name.remove_suffix(unit.size());
  }
  std::string heading(fact_name);
  std::ranges::transform(heading, heading.begin(), [](char c) {
    if (c == '_') return ' ';
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  });
  return heading;
}

Table::Table(std::vector<std::string> headings) : headings_(std::move(headings)) {
  for (std::string& heading : headings_) heading = printable_line(heading);
}

void Table::add(std::vector<std::string> cells, std::string_view paint) {
  cells.resize(headings_.size());
  for (std::string& cell : cells) {
    cell = cell.empty() ? "-" : printable_line(cell);
  }
  rows_.push_back({std::move(cells), std::string(paint)});
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < headings_.size(); ++column) {
    std::size_t width = headings_[column].size();
    for (const Row& row : rows_) width = std::max(width, row.cells[column].size());
    widths.push_back(width);
  }
  return widths;
}

std::vector<std::size_t> Table::shown(std::size_t room) const {
  const std::vector<std::size_t> wide = widths();
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < wide.size(); ++i) columns.push_back(i);
  const auto needed = [&] {
    std::size_t sum = columns.empty() ? 0 : kGap * (columns.size() - 1);
    for (const std::size_t column : columns) sum += wide[column];
    return sum;
  };
  for (const std::string& heading : droppable_) {
    if (needed() <= room) break;
    std::erase_if(columns, [&](std::size_t column) { return headings_[column] == heading; });
  }
  return columns;
}

std::string Table::text(std::string_view indent, std::size_t width) const {
  constexpr std::size_t kLastMin = 16;  // a narrower last cell would be a column of single words
  const std::size_t room = width == 0 ? std::string::npos : width - std::min(width, indent.size());
  const std::vector<std::size_t> columns = shown(room);
  const std::vector<std::size_t> wide = widths();
  std::size_t all = 0;
  for (const std::size_t column : columns) all += wide[column] + kGap;
  const std::size_t gap = all - kGap > room ? kNarrowGap : kGap;
  std::size_t before_last = 0;
  for (std::size_t i = 0; i + 1 < columns.size(); ++i) before_last += wide[columns[i]] + gap;
  const std::size_t last = room == std::string::npos ? room : std::max(room - std::min(room, before_last), kLastMin);
  const auto lines_of = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t i = 0; i + 1 < columns.size(); ++i) {
      line += padded(cells[columns[i]], wide[columns[i]] + gap);
    }
    std::vector<std::string> lines;
    for (const std::string& piece : pieces_of(cells[columns.back()], last)) {
      line += piece;
      line.erase(line.find_last_not_of(' ') + 1);
      lines.push_back(std::move(line));
      line.assign(before_last, ' ');
    }
    return lines;
  };
  std::string text;
  for (const std::string& line : lines_of(headings_)) text += std::string(indent) + line + "\n";
  for (const Row& row : rows_) {
    for (const std::string& line : lines_of(row.cells)) {
      text += std::string(indent) + row.paint + line;
      text += row.paint.empty() ? "\n" : std::string(kUnpainted) + "\n";
    }
  }
  return text;
}

}  // namespace spillway::cli
