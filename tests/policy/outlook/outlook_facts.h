// Questions about an outlook that its tests share. Header only; thread: any.
#pragma once

#include "api/text/time_text.h"
#include "policy/outlook/outlook.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace spillway::outlook {

inline WallTime at(std::string_view text) {
  return api::parse_time(text).value();
}

/// The part of that name; nullptr: there is none.
inline const Part* find_part(const Outlook& outlook, std::string_view name) {
  const auto found = std::ranges::find(outlook.parts, name, &Part::name);
  return found == outlook.parts.end() ? nullptr : &*found;
}

inline Code first_code(const Outlook& outlook) {
  return outlook.remarks.at(0).code;
}

inline bool says(const Outlook& outlook, Code code) {
  return find_remark(outlook, code) != nullptr;
}

/// The fact as text: "7", "web-1"; "-": no such remark, or no such fact.
inline std::string fact_of(const Outlook& outlook, Code code, std::string_view name) {
  const Remark* remark = find_remark(outlook, code);
  const policy::Fact* fact = remark != nullptr ? policy::find_fact(remark->facts, name) : nullptr;
  if (fact == nullptr) return "-";
  if (const auto* number = std::get_if<std::int64_t>(&fact->value)) return std::to_string(*number);
  return std::get<std::string>(fact->value);
}

/// "web-1: not ready" of each row.
inline std::vector<std::string> rows_of(const Outlook& outlook, std::string_view part) {
  std::vector<std::string> rows;
  const Part* found = find_part(outlook, part);
  if (found == nullptr) return rows;
  for (const Row& row : found->rows) rows.push_back(row.name + ": " + row.state);
  return rows;
}

inline std::string cell_of(const Outlook& outlook, std::string_view part, std::size_t row, std::string_view name) {
  const policy::Fact* fact = policy::find_fact(find_part(outlook, part)->rows.at(row).facts, name);
  if (fact == nullptr) return "-";
  if (const auto* number = std::get_if<std::int64_t>(&fact->value)) return std::to_string(*number);
  return std::get<std::string>(fact->value);
}

}  // namespace spillway::outlook
