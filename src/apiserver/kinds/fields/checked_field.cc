#include "apiserver/kinds/fields/checked_field.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace spillway::apiserver::kinds {

CheckedField CheckedField::member(std::string_view name, std::string_view shown) const& {
  return {value_ != nullptr ? value_->find(name) : nullptr, *this, Step::kMember, shown, 0};
}

CheckedField CheckedField::at(std::size_t index) const& {
  const api::Json::Array& list = elements();
  return {index < list.size() ? &list[index] : nullptr, *this, Step::kIndex, {}, index};
}

CheckedField CheckedField::key(std::string_view key) const& {
  return {value_ != nullptr ? value_->find(key) : nullptr, *this, Step::kKey, key, 0};
}

const api::Json& CheckedField::json() const {
  static const api::Json kAbsent;
  return value_ != nullptr ? *value_ : kAbsent;
}

std::string_view CheckedField::text() const {
  const std::string* text = value_ != nullptr ? value_->if_string() : nullptr;
  return text != nullptr ? std::string_view(*text) : std::string_view();
}

std::optional<api::Quantity> CheckedField::quantity() const {
  const std::string* written = value_ != nullptr ? value_->if_string() : nullptr;
  if (written == nullptr) return std::nullopt;
  auto parsed = api::parse_quantity(*written);
  return parsed ? std::optional(*std::move(parsed)) : std::nullopt;
}

const api::Json::Array& CheckedField::elements() const {
  static const api::Json::Array kNoElements;
  const api::Json::Array* list = value_ != nullptr ? value_->if_array() : nullptr;
  return list != nullptr ? *list : kNoElements;
}

std::size_t CheckedField::size() const {
  return elements().size();
}

std::string CheckedField::path() const {
  std::string out;
  append_path(out);
  return out;
}

void CheckedField::append_path(std::string& out) const {
  if (around_ != nullptr) around_->append_path(out);
  switch (step_) {
    case Step::kRoot:
      out += name_;
      return;
    case Step::kMember:
      if (!out.empty()) out += '.';
      out += name_;
      return;
    case Step::kIndex:
      fmt::format_to(std::back_inserter(out), "[{}]", index_);
      return;
    case Step::kKey:
      fmt::format_to(std::back_inserter(out), "[{}]", name_);
      return;
  }
}

bool CheckedField::require_text(std::string_view detail) const {
  if (!text().empty()) return true;
  required(detail);
  return false;
}

void CheckedField::require_one_of(std::span<const std::string_view> supported) const {
  if (std::ranges::find(supported, text()) == supported.end()) not_supported(supported);
}

void CheckedField::optional_one_of(std::span<const std::string_view> supported) const {
  if (present()) require_one_of(supported);
}

void CheckedField::require_between(std::int64_t least, std::int64_t most) const {
  const std::int64_t number = integer().value_or(0);
  if (number < least || number > most) {
    invalid(api::Json(number), fmt::format("must be between {} and {}, inclusive", least, most));
  }
}

void CheckedField::require_non_negative() const {
  if (integer().value_or(0) < 0) invalid("must be greater than or equal to 0");
}

void CheckedField::require_valid(const std::vector<std::string>& problems) const {
  for (const std::string& problem : problems) invalid(problem);
}

}  // namespace spillway::apiserver::kinds
