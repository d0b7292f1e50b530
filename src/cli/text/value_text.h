// Facts and tables as people read them. The unit of a fact is the end of its name, so this code does not depend on the
// fact's source. Thread: any (pure).
#pragma once

#include "policy/reason.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::cli {

/// "61.8Mi" of a fact ending in _bytes, "1.5s" or "5m" of one ending in _seconds, else the value as it is.
std::string value_text(const policy::Fact& fact);

/// The value of the fact; 0 for a text.
double fact_number(const policy::Fact& fact);

/// value_text() with enough decimals to distinguish the value from `other`, whose text is value_text(other): "24.96Mi"
/// beside 25Mi, "50.04s" beside 50s. A smaller value is rounded down and a larger one up, so that the texts have the
/// order of the values. Both facts have the same unit.
std::string value_text_apart(const policy::Fact& fact, const policy::Fact& other);

/// Forecasts of later times are not shown: beyond an hour an extrapolation of the last seconds means nothing.
inline constexpr double kForeseenSeconds = 3600;

/// value_text() of an amount of `resource`, whatever the name of the fact: "100Mi" of memory and storage, "500m" or "2"
/// of milli-CPUs.
std::string amount_text(std::string_view resource, const policy::Fact& fact);

/// The fact "available_bytes", "available_inodes" or "available_processes", of "available"; nullptr: none of them.
const policy::Fact* find_measured(const std::vector<policy::Fact>& facts, std::string_view what);

/// "ABOVE REQUEST" of "above_request_bytes".
std::string heading_of(std::string_view fact_name);

/// The text on lines of at most `width` bytes, cut at blanks, each with the indent before it and a newline behind it.
/// 0: one line.
std::string wrapped(std::string_view text, std::string_view indent, std::size_t width);

/// Rows of cells under headings, each column as wide as its widest cell. Numbers are not distinguished: all cells are
/// set flush left, which reads well for amounts with units.
class Table {
 public:
  explicit Table(std::vector<std::string> headings);

  /// Missing cells are "-". Each is one line of printable text, whatever it was. `paint`: an escape sequence the row
  /// begins with; empty: none.
  void add(std::vector<std::string> cells, std::string_view paint = {});

  bool empty() const { return rows_.empty(); }

  /// Columns that text() leaves out if the table is too wide, in this order.
  void may_drop(std::vector<std::string> headings) { droppable_ = std::move(headings); }

  /// Every line starts with `indent` and ends in a newline, without blanks before it. `width`: columns of the screen;
  /// 0: any number. Where the table is wider, it drops columns, then continues the last cell on lines of its own.
  std::string text(std::string_view indent, std::size_t width = 0) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::string paint;
  };

  std::vector<std::size_t> widths() const;
  /// The indices of the columns that fit.
  std::vector<std::size_t> shown(std::size_t room) const;

  std::vector<std::string> headings_;
  std::vector<Row> rows_;
  std::vector<std::string> droppable_;
};

}  // namespace spillway::cli
