#include "yaml/place.h"

#include "base/edit_distance.h"

#include <algorithm>
#include <utility>

namespace spillway::yaml {

using api::Json;

Error Place::wrong(std::string_view what) const {
  const Origin* origin = document_->origins.find(path_);
  for (std::string around = path_; origin == nullptr && !around.empty();) {
    around.resize(around.ends_with(']') ? around.rfind('[') : 0);
    origin = document_->origins.find(around);
  }
  std::string at = *file_;
  if (origin != nullptr) at += fmt::format(":{}", origin->line);
  if (origin != nullptr && precision_ == Precision::kColumn) at += fmt::format(":{}", origin->column);
  return invalid(at, "{}{}{}", path_, path_.empty() ? "" : ": ", what);
}

Outcome Place::check_members(std::initializer_list<std::string_view> known) const {
  if (!value_->is_object()) return wrong("expected a mapping");
  for (const auto& [name, member] : *value_->if_object()) {
    if (std::ranges::find(known, name) == known.end())
      return inside(name, member).wrong("unknown" + nearest_word(name, known).suggestion());
  }
  return {};
}

Outcome Place::expect(std::string_view name, std::string_view text) const {
  const Json* found = value_->find(name);
  if (found == nullptr) return wrong(fmt::format("{} is missing; expected {}", name, text));
  if (found->string_at({}) != text) return inside(name, *found).wrong(fmt::format("expected {}", text));
  return {};
}

Outcome Place::for_each(std::string_view name, const std::function<Outcome(const Place&)>& take) const {
  const Json* found = given(name);
  if (found == nullptr) return {};
  const Place list = inside(name, *found);
  if (!found->is_array()) return list.wrong("expected a list");
  for (std::size_t i = 0; i < found->if_array()->size(); ++i) {
    SPILLWAY_TRY_VOID(take(Place(list, fmt::format("{}[{}]", list.path_, i), (*found->if_array())[i])));
  }
  return {};
}

Result<std::vector<std::string>> Place::words(std::string_view name) const {
  std::vector<std::string> out;
  SPILLWAY_TRY_VOID(for_each(name, [&](const Place& each) -> Outcome {
    SPILLWAY_TRY(word, each.text());
    out.push_back(std::move(word));
    return {};
  }));
  return out;
}

Result<std::string> Place::text() const {
  if (!value_->is_string()) return wrong("expected a string");
  return *value_->if_string();
}

Result<std::string> Place::optional_text(std::string_view name) const {
  const Json* found = given(name);
  if (found == nullptr) return std::string();
  return inside(name, *found).text();
}

Result<std::optional<bool>> Place::flag(std::string_view name) const {
  const Json* found = given(name);
  if (found == nullptr) return std::optional<bool>();
  if (!found->is_bool()) return inside(name, *found).wrong("expected true or false");
  return found->if_bool();
}

Result<std::optional<std::int64_t>> Place::number(std::string_view name, std::int64_t least, std::int64_t most) const {
  const Json* found = given(name);
  if (found == nullptr) return std::optional<std::int64_t>();
  const std::optional<std::int64_t> number = found->if_int64();
  if (!number || *number < least || *number > most) {
    return inside(name, *found).wrong(fmt::format("expected a whole number from {} to {}", least, most));
  }
  return number;
}

std::vector<std::pair<std::string, Place>> Place::members() const {
  std::vector<std::pair<std::string, Place>> out;
  if (!value_->is_object()) return out;
  for (const auto& [name, member] : *value_->if_object()) out.emplace_back(name, inside(name, member));
  return out;
}

bool Place::has(std::string_view name) const {
  return given(name) != nullptr;
}

const Json* Place::given(std::string_view name) const {
  const Json* found = value_->find(name);
  return found == nullptr || found->is_null() ? nullptr : found;
}

Place Place::member(std::string_view name) const {
  static const Json kMissing;
  const Json* found = value_->find(name);
  return inside(name, found == nullptr ? kMissing : *found);
}

Place Place::inside(std::string_view name, const Json& value) const {
  return {*this, path_.empty() ? std::string(name) : fmt::format("{}[{}]", path_, name), value};
}

}  // namespace spillway::yaml
