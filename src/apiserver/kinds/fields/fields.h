// Small moves over documents that defaulting and validation are made of: "absent or empty" tests, and loops over lists
// with the path of each element. Pure.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver::kinds {

/// The elements of a list member; empty if it is absent or no list.
const api::Json::Array& elements(const api::Json& object, std::string_view key);
/// The elements for changes; nullptr if the member is absent or not a list.
api::Json::Array* elements(api::Json& object, std::string_view key);

/// The string member; empty if it is absent.
std::string_view text(const api::Json& object, std::string_view key);
std::optional<std::int64_t> integer(const api::Json& object, std::string_view key);
bool is_true(const api::Json& object, std::string_view key);
/// Present and not null.
bool has(const api::Json& object, std::string_view key);

/// Sets the member if it is absent, null or an empty string.
void set_default(api::Json& object, std::string_view key, api::Json value);

/// Adds an error if the value is not empty and not one of the supported ones.
void require_one_of(const api::Json& object, std::string_view key, std::string_view path,
                    std::span<const std::string_view> supported, api::FieldErrors& errors);
/// Adds an error if the integer is present and below zero.
void require_non_negative(const api::Json& object, std::string_view key, std::string_view path,
                          api::FieldErrors& errors);

/// Adds one error per problem that api/text/names.h found.
void require_valid(const std::vector<std::string>& problems, const api::Json& value, std::string_view path,
                   api::FieldErrors& errors);

/// Checks as require_one_of does, if the member is present: an empty text is an error as well.
void require_listed(const api::Json& object, std::string_view key, std::string_view path,
                    std::span<const std::string_view> supported, api::FieldErrors& errors);

/// Adds each error of `check` as many times as upstream's validation reports it.
template <typename Check>
void add_repeatedly(int times, api::FieldErrors& errors, Check check) {
  api::FieldErrors found;
  check(found);
  for (int i = 0; i < times && !found.empty(); ++i) errors.add(found);
}

/// Validates labels, or labels to match: errors of every key and value are reported at `path`.
void validate_labels(const api::Json& labels, std::string_view path, api::FieldErrors& errors);

/// metav1.Condition: types, statuses, reasons and times, each type once.
void validate_conditions(const api::Json& status, std::string_view path, api::FieldErrors& errors);

/// metav1.LabelSelector: keys, values, operators. Returns whether it can be used to select.
bool validate_label_selector(const api::Json& selector, std::string_view path, api::FieldErrors& errors);

/// "50%" or 3, not negative; nullopt if it is malformed. Percentages are marked.
struct IntOrPercent {
  std::int64_t value = 0;
  bool percent = false;
};

std::optional<IntOrPercent> int_or_percent(const api::Json& value);
/// Adds errors for a malformed or negative value, and for more than 100% unless `above_full` allows it.
enum class AboveFull { kAllowed, kRefused };
void validate_int_or_percent(const api::Json& object, std::string_view key, std::string_view path, AboveFull above_full,
                             api::FieldErrors& errors);

/// The member as JSON, null if absent: for error texts.
const api::Json& value_of(const api::Json& object, std::string_view key);

inline constexpr std::string_view kImmutable = "field is immutable";

}  // namespace spillway::apiserver::kinds
