#include "policy/structural/printer_columns.h"

#include "api/json/json_values.h"
#include "policy/structural/go_number.h"

#include <cmath>
#include <utility>
#include <vector>

namespace spillway::structural {

namespace {

using api::Json;

/// The value as JSONPath prints it, a text without quotes.
std::string printed_value(const Json& value) {
  if (const std::string* text = value.if_string()) return *text;
  if (value.type() == Json::Type::kDouble) return go_number(value.if_double().value_or(0));
  return api::to_text(value);
}

Json integer_cell(const Json& value) {
  if (const std::optional<std::int64_t> number = value.if_int64()) return {*number};
  const std::optional<double> number = value.if_double();
  constexpr double kMost = 9e18;
  if (!number || !(std::abs(*number) < kMost)) return {};
  return {static_cast<std::int64_t>(*number)};
}

}  // namespace

std::optional<PrinterColumn> read_printer_column(const Json& column) {
  auto path = JsonPath::parse(column.string_at({"jsonPath"}));
  if (!path) return std::nullopt;
  std::string description(column.string_at({"description"}));
  if (description.empty()) {
    description = "Custom resource definition column (in JSONPath format): ";
    description += column.string_at({"jsonPath"});
  }
  return PrinterColumn{.name = std::string(column.string_at({"name"})),
                       .type = std::string(column.string_at({"type"})),
                       .format = std::string(column.string_at({"format"})),
                       .description = std::move(description),
                       .priority = static_cast<std::int32_t>(api::integer_at(column, {"priority"}, 0)),
                       .path = *std::move(path)};
}

Json printer_cell(const PrinterColumn& column, const Json& object) {
  const std::vector<const Json*> found = column.path.find(object);
  if (found.empty() || found.front()->is_null()) return {};
  const Json& value = *found.front();
  if (column.type == "string") return {printed_value(value)};
  if (column.type == "integer") return integer_cell(value);
  if (column.type == "number") return value.is_number() ? Json(value.if_double().value_or(0)) : Json();
  if (column.type == "boolean") return value.is_bool() ? value : Json();
  return value.is_string() ? value : Json();
}

}  // namespace spillway::structural
