#include "support/field_errors.h"

#include "base/utf8.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::support {

namespace {

using api::Json;

/// An error as a row has it: the whole message where the row has one, else the end of it.
struct RowError {
  std::string field;
  std::string type;
  std::string message;

  friend auto operator<=>(const RowError&, const RowError&) = default;
};

Json text_of(const std::vector<RowError>& errors) {
  Json list = Json::array();
  for (const RowError& error : errors) {
    list.if_array()->push_back(Json(error.field + " " + error.type + ": " + error.message));
  }
  return list;
}

}  // namespace

std::optional<Mismatch> compare_errors(const Json& wanted, const api::FieldErrors& errors) {
  std::vector<RowError> got;
  for (const api::FieldError& error : errors.errors()) {
    std::string type(api::to_string(error.reason));
    got.push_back({.field = error.field, .type = std::move(type), .message = error.message});
  }
  std::vector<RowError> want;
  for (const Json& error : *wanted.if_array()) {
    RowError row{.field = std::string(error.string_at({"field"})), .type = std::string(error.string_at({"type"}))};
    const std::string_view detail = error.string_at({"detail"});
    const std::string_view body = error.string_at({"body"});
    row.message = body.empty() ? detail : body;
    const auto found = std::ranges::find_if(got, [&](const RowError& one) {
      return one.field == row.field && one.type == row.type && body.empty() && one.message.ends_with(detail);
    });
    if (found != got.end()) row.message = found->message;
    row.message = shortened(row.message, api::kCauseTextMax);  // as every message of a field is
    want.push_back(std::move(row));
  }
  std::ranges::sort(got);
  std::ranges::sort(want);
  return compare(text_of(want), text_of(got));
}

}  // namespace spillway::support
