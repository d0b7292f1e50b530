#include "cli/text/value_text.h"

#include "base/bytes_text.h"
#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace spillway::cli {
namespace {

constexpr std::array<std::string_view, 4> kUnits{"_bytes", "_seconds", "_inodes", "_processes"};
constexpr std::string_view kUnpainted = "\x1b[0m";

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

}  // namespace

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

std::string Table::text(std::string_view indent) const {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < headings_.size(); ++column) {
    std::size_t width = headings_[column].size();
    for (const Row& row : rows_) width = std::max(width, row.cells[column].size());
    widths.push_back(width);
  }
  const auto line_of = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t column = 0; column < cells.size(); ++column) line += padded(cells[column], widths[column] + 3);
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
  };
  std::string text = std::string(indent) + line_of(headings_) + "\n";
  for (const Row& row : rows_) {
    text += std::string(indent) + row.paint + line_of(row.cells);
    text += row.paint.empty() ? "\n" : std::string(kUnpainted) + "\n";
  }
  return text;
}

}  // namespace spillway::cli
