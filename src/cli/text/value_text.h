// Facts and tables as people read them. The unit of a fact is the end of its name, so nothing here knows who made it.
// Thread: any (pure).
#pragma once

#include "policy/reason.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::cli {

/// "61.8Mi" of a fact ending in _bytes, "1.5s" or "5m" of one ending in _seconds, else the value as it is.
std::string value_text(const policy::Fact& fact);

/// The fact "available_bytes", "available_inodes" or "available_processes", of "available"; nullptr: none of them.
const policy::Fact* find_measured(const std::vector<policy::Fact>& facts, std::string_view what);

/// "ABOVE REQUEST" of "above_request_bytes".
std::string heading_of(std::string_view fact_name);

/// Rows of cells under headings, each column as wide as its widest cell. Numbers are not told apart: all cells are set
/// flush left, which reads well for amounts with units.
class Table {
 public:
  explicit Table(std::vector<std::string> headings);

  /// Missing cells are "-". Each is one line of printable text, whatever it was. `paint`: an escape sequence the row
  /// begins with; empty: none.
  void add(std::vector<std::string> cells, std::string_view paint = {});

  bool empty() const { return rows_.empty(); }

  /// Every line starts with `indent` and ends in a newline, without blanks before it.
  std::string text(std::string_view indent) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::string paint;
  };

  std::vector<std::string> headings_;
  std::vector<Row> rows_;
};

}  // namespace spillway::cli
