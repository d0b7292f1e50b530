#include "apiserver/kinds/fields/fields.h"

#include "api/text/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

namespace spillway::apiserver::kinds {

const api::Json::Array& elements(const api::Json& object, std::string_view key) {
  static const api::Json::Array kEmpty;
  const api::Json* list = object.find(key);
  return list != nullptr && list->if_array() != nullptr ? *list->if_array() : kEmpty;
}

api::Json::Array* elements(api::Json& object, std::string_view key) {
  api::Json* list = object.find(key);
  return list != nullptr ? list->if_array() : nullptr;
}

std::string_view text(const api::Json& object, std::string_view key) {
  return object.string_at({key});
}

std::optional<std::int64_t> integer(const api::Json& object, std::string_view key) {
  const api::Json* value = object.find(key);
  return value != nullptr ? value->if_int64() : std::nullopt;
}

bool is_true(const api::Json& object, std::string_view key) {
  const api::Json* value = object.find(key);
  return value != nullptr && value->if_bool().value_or(false);
}

bool has(const api::Json& object, std::string_view key) {
  const api::Json* value = object.find(key);
  return value != nullptr && !value->is_null();
}

void set_default(api::Json& object, std::string_view key, api::Json value) {
  api::Json& member = object[key];
  const std::string* present = member.if_string();
  if (member.is_null() || (present != nullptr && present->empty())) member = std::move(value);
}

const api::Json& value_of(const api::Json& object, std::string_view key) {
  static const api::Json kNull;
  const api::Json* value = object.find(key);
  return value != nullptr ? *value : kNull;
}

void require_one_of(const api::Json& object, std::string_view key, std::string_view path,
                    std::span<const std::string_view> supported, api::FieldErrors& errors) {
  const std::string_view value = text(object, key);
  if (value.empty() || std::find(supported.begin(), supported.end(), value) != supported.end()) return;
  errors.not_supported(path, value_of(object, key), supported);
}

void require_listed(const api::Json& object, std::string_view key, std::string_view path,
                    std::span<const std::string_view> supported, api::FieldErrors& errors) {
  if (!has(object, key) || std::ranges::find(supported, text(object, key)) != supported.end()) return;
  errors.not_supported(path, value_of(object, key), supported);
}

void validate_labels(const api::Json& labels, std::string_view path, api::FieldErrors& errors) {
  if (labels.if_object() == nullptr) return;
  for (const auto& [key, value] : *labels.if_object()) {
    if (errors.full()) return;
    require_valid(api::qualified_name_errors(key), key, path, errors);
    require_valid(api::label_value_errors(value.string_at({})), value, path, errors);
  }
}

void require_non_negative(const api::Json& object, std::string_view key, std::string_view path,
                          api::FieldErrors& errors) {
  const std::optional<std::int64_t> value = integer(object, key);
  if (value && *value < 0) errors.invalid(path, *value, "must be greater than or equal to 0");
}

void require_valid(const std::vector<std::string>& problems, const api::Json& value, std::string_view path,
                   api::FieldErrors& errors) {
  for (const std::string& problem : problems) errors.invalid(path, value, problem);
}

namespace {

void validate_expression(const api::Json& expression, const std::string& path, api::FieldErrors& errors) {
  const std::string_view op = text(expression, "operator");
  const bool has_values = !elements(expression, "values").empty();
  if (op == "In" || op == "NotIn") {
    if (!has_values) errors.required(path + ".values", "must be specified when `operator` is 'In' or 'NotIn'");
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (has_values) {
      errors.forbidden(path + ".values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    }
  } else {
    errors.invalid(path + ".operator", value_of(expression, "operator"), "not a valid selector operator");
  }
  require_valid(api::qualified_name_errors(text(expression, "key")), value_of(expression, "key"), path + ".key",
                errors);
  for (std::size_t i = 0; i < elements(expression, "values").size() && !errors.full(); ++i) {
    const api::Json& value = elements(expression, "values")[i];
    require_valid(api::label_value_errors(value.string_at({})), value, api::index_path(path + ".values", i), errors);
  }
}

}  // namespace

bool validate_label_selector(const api::Json& selector, std::string_view path, api::FieldErrors& errors) {
  const std::size_t before = errors.errors().size();
  if (has(selector, "matchLabels")) {
    validate_labels(value_of(selector, "matchLabels"), fmt::format("{}.matchLabels", path), errors);
  }
  const api::Json::Array& expressions = elements(selector, "matchExpressions");
  for (std::size_t i = 0; i < expressions.size() && !errors.full(); ++i) {
    validate_expression(expressions[i], api::index_path(fmt::format("{}.matchExpressions", path), i), errors);
  }
  return errors.errors().size() == before;
}

std::optional<IntOrPercent> int_or_percent(const api::Json& value) {
  if (const auto number = value.if_int64()) return IntOrPercent{*number, false};
  const std::string* written = value.if_string();
  if (written == nullptr || !written->ends_with('%')) return std::nullopt;
  IntOrPercent parsed{0, true};
  const char* end = written->data() + written->size() - 1;
  const auto [stopped, ec] = std::from_chars(written->data(), end, parsed.value);
  if (ec != std::errc{} || stopped != end || end == written->data()) return std::nullopt;
  return parsed;
}

void validate_int_or_percent(const api::Json& object, std::string_view key, std::string_view path, AboveFull above_full,
                             api::FieldErrors& errors) {
  if (!has(object, key)) return;
  const api::Json& value = value_of(object, key);
  const std::optional<IntOrPercent> parsed = int_or_percent(value);
  if (!parsed) {
    errors.invalid(path, value, "a valid percent string must be a numeric string followed by an ending '%'");
  } else if (parsed->value < 0) {
    errors.invalid(path, value, "must be greater than or equal to 0");
  } else if (parsed->percent && parsed->value > 100 && above_full == AboveFull::kRefused) {
    errors.invalid(path, value, "must not be greater than 100%");
  }
}

namespace {

constexpr std::array<std::string_view, 3> kConditionStatuses{"False", "True", "Unknown"};
constexpr std::size_t kReasonBytesMax = 1024;
constexpr std::size_t kMessageBytesMax = std::size_t{32} * 1024;

bool is_reason_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// [A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?
bool is_reason(std::string_view reason) {
  const auto is_word = [](char c) { return is_reason_letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  return is_reason_letter(reason.front()) && is_word(reason.back()) &&
         std::ranges::all_of(reason, [&is_word](char c) { return is_word(c) || c == ',' || c == ':'; });
}

void validate_condition(const api::Json& condition, const std::string& path, api::FieldErrors& errors) {
  require_valid(api::qualified_name_errors(text(condition, "type")), value_of(condition, "type"), path + ".type",
                errors);
  if (std::ranges::find(kConditionStatuses, text(condition, "status")) == kConditionStatuses.end()) {
    errors.not_supported(path + ".status", value_of(condition, "status"), kConditionStatuses);
  }
  if (integer(condition, "observedGeneration").value_or(0) < 0) {
    errors.invalid(path + ".observedGeneration", value_of(condition, "observedGeneration"),
                   "must be greater than or equal to zero");
  }
  if (!has(condition, "lastTransitionTime")) errors.required(path + ".lastTransitionTime", "must be set");
  const std::string_view reason = text(condition, "reason");
  if (reason.empty()) {
    errors.required(path + ".reason", "must be set");
  } else {
    if (!is_reason(reason)) {
      errors.invalid(path + ".reason", reason,
                     "a condition reason must start with alphabetic character, optionally followed by a string of "
                     "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'");
    }
    if (reason.size() > kReasonBytesMax) errors.too_long(path + ".reason", kReasonBytesMax);
  }
  if (text(condition, "message").size() > kMessageBytesMax) errors.too_long(path + ".message", kMessageBytesMax);
}

}  // namespace

void validate_conditions(const api::Json& status, std::string_view path, api::FieldErrors& errors) {
  std::set<std::string_view> seen;
  const api::Json::Array& conditions = elements(status, "conditions");
  for (std::size_t i = 0; i < conditions.size() && !errors.full(); ++i) {
    const std::string where = api::index_path(path, i);
    if (!seen.insert(text(conditions[i], "type")).second) {
      errors.duplicate(where + ".type", value_of(conditions[i], "type"));
    }
    validate_condition(conditions[i], where, errors);
  }
}

}  // namespace spillway::apiserver::kinds
