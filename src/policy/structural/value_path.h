// The path of a value within an object, converted to text only for an error. A step keeps a pointer to the one before
// it, which has to outlive it. Thread: any.
#pragma once

#include "api/exchange/status.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace spillway::structural {

class ValuePath {
 public:
  ValuePath() = default;

  ValuePath member(std::string_view name) const& { return {this, name, 0, Kind::kMember}; }

  /// A map entry: "[name]" in the text of a path.
  ValuePath entry(std::string_view name) const& { return {this, name, 0, Kind::kEntry}; }

  ValuePath element(std::size_t index) const& { return {this, {}, index, Kind::kElement}; }

  ValuePath member(std::string_view name) const&& = delete;
  ValuePath entry(std::string_view name) const&& = delete;
  ValuePath element(std::size_t index) const&& = delete;

  /// "spec.labels[a].list[0]".
  std::string field() const { return text(/*brackets=*/true); }

  /// "spec.labels.a.list[0]", as messages of checks of values have it.
  std::string dotted() const { return text(/*brackets=*/false); }

 private:
  enum class Kind : std::uint8_t { kRoot, kMember, kEntry, kElement };

  ValuePath(const ValuePath* up, std::string_view name, std::size_t index, Kind kind)
      : up_(up), name_(name), index_(index), kind_(kind) {}

  std::string text(bool brackets) const {
    if (kind_ == Kind::kRoot) return {};
    std::string before = up_->text(brackets);
    if (kind_ == Kind::kElement) return api::index_path(before, index_);
    if (kind_ == Kind::kEntry && brackets) return api::key_path(before, name_);
    if (!before.empty()) before += '.';
    return before += name_;
  }

  const ValuePath* up_ = nullptr;
  std::string_view name_;
  std::size_t index_ = 0;
  Kind kind_ = Kind::kRoot;
};

/// "<nil>" for the root, as upstream reports an error without a field.
inline std::string field_or_nil(std::string field) {
  return field.empty() ? "<nil>" : std::move(field);
}

}  // namespace spillway::structural
