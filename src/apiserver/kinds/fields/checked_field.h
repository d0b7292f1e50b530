// A field under validation: its value, its path, and the list that collects errors. A member that is absent is a field
// as well, so that a rule states its condition and no look-up. The path becomes text only for an error. A field keeps a
// pointer to the one around it: hold every step in a variable that outlives the next one (the operators refuse
// temporaries). Thread: any. Source: spec "API server contract", 12.8.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "api/text/quantity.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver::kinds {

class CheckedField {
 public:
  /// The field where the rules begin: "spec", "metadata.annotations". Null: absent.
  CheckedField(const api::Json* value, std::string_view path, api::FieldErrors& errors)
      : value_(value), name_(path), errors_(&errors) {}

  /// The member of an object.
  CheckedField operator[](std::string_view name) const& { return member(name, name); }

  CheckedField operator[](std::string_view name) const&& = delete;
  /// The member, under the name `shown` in errors.
  CheckedField member(std::string_view name, std::string_view shown) const&;
  CheckedField member(std::string_view name, std::string_view shown) const&& = delete;
  /// The same value under another last step: its errors name the parent's `shown`.
  CheckedField at(std::size_t index) const&;
  CheckedField at(std::size_t index) const&& = delete;
  /// "limits[cpu]": a member of a map.
  CheckedField key(std::string_view key) const&;
  CheckedField key(std::string_view key) const&& = delete;

  /// Null if it is absent.
  const api::Json& json() const;

  /// True if the member exists and is not null.
  bool present() const { return value_ != nullptr && !value_->is_null(); }

  explicit operator bool() const { return present(); }

  std::string_view text() const;

  std::optional<std::int64_t> integer() const { return value_ != nullptr ? value_->if_int64() : std::nullopt; }

  bool is_true() const { return value_ != nullptr && value_->if_bool().value_or(false); }

  /// nullopt if the field is absent or malformed; typed decoding refuses malformed values.
  std::optional<api::Quantity> quantity() const;
  /// Number of elements; 0 if the value is not a list.
  std::size_t size() const;

  bool empty() const { return size() == 0; }

  const api::Json::Array& elements() const;

  std::string path() const;

  api::FieldErrors& errors() const { return *errors_; }

  bool full() const { return errors_->full(); }

  // Errors reported at this field.
  void required(std::string_view detail = {}) const { errors_->required(path(), detail); }

  void invalid(std::string_view detail) const { errors_->invalid(path(), json(), detail); }

  void invalid(const api::Json& value, std::string_view detail) const { errors_->invalid(path(), value, detail); }

  void not_supported(std::span<const std::string_view> supported) const {
    errors_->not_supported(path(), json(), supported);
  }

  void duplicate() const { errors_->duplicate(path(), json()); }

  void forbidden(std::string_view detail) const { errors_->forbidden(path(), detail); }

  void not_found() const { errors_->not_found(path(), json()); }

  void too_long(std::size_t bytes_max) const { errors_->too_long(path(), bytes_max); }

  // Rules.
  /// False, with an error, if it is absent or empty.
  bool require_text(std::string_view detail = {}) const;
  /// The value must be one of the texts; an empty value is an error as well.
  void require_one_of(std::span<const std::string_view> supported) const;
  /// Checks as require_one_of does, if the field is present.
  void optional_one_of(std::span<const std::string_view> supported) const;
  void require_between(std::int64_t least, std::int64_t most) const;
  void require_non_negative() const;
  /// One error per problem that api/text/names.h and field_values.h found.
  void require_valid(const std::vector<std::string>& problems) const;

  /// check(element) for every element, until the errors are full.
  template <typename Check>
  void each(Check check) const {
    const api::Json::Array& list = elements();
    for (std::size_t i = 0; i < list.size() && !full(); ++i) check(at(i));
  }

  /// check(key, member at path[key]) for every member of a map, until the errors are full.
  template <typename Check>
  void each_key(Check check) const {
    if (value_ == nullptr || value_->if_object() == nullptr) return;
    for (const auto& member : *value_->if_object()) {
      if (full()) return;
      check(std::string_view(member.key), key(member.key));
    }
  }

 private:
  enum class Step : std::uint8_t { kRoot, kMember, kIndex, kKey };

  CheckedField(const api::Json* value, const CheckedField& around, Step step, std::string_view name, std::size_t index)
      : value_(value), around_(&around), name_(name), index_(index), step_(step), errors_(around.errors_) {}

  void append_path(std::string& out) const;

  const api::Json* value_;
  const CheckedField* around_ = nullptr;
  std::string_view name_;
  std::size_t index_ = 0;
  Step step_ = Step::kRoot;
  api::FieldErrors* errors_;
};

}  // namespace spillway::apiserver::kinds
