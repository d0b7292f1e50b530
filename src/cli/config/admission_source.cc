#include "cli/config/admission_source.h"

#include "base/edit_distance.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::cli {

using api::Json;

namespace {

/// nullptr: the member is absent or null.
const Json* given_member(const Json& value, std::string_view name) {
  const Json* found = value.find(name);
  return found == nullptr || found->is_null() ? nullptr : found;
}

}  // namespace

AdmissionPlace AdmissionPlace::member(std::string_view name) const {
  if (path.empty()) return {std::string(name), std::string(name)};
  return {fmt::format("{}.{}", path, name), fmt::format("{}[{}]", origin, name)};
}

AdmissionPlace AdmissionPlace::element(std::size_t index) const {
  return {fmt::format("{}[{}]", path, index), fmt::format("{}[{}]", origin, index)};
}

std::string AdmissionSource::at(const AdmissionPlace& place) const {
  const yaml::Origin* origin = document_.origins.find(place.origin);
  return origin == nullptr ? file_ : fmt::format("{}:{}", file_, origin->line);
}

void AdmissionSource::wrong(const AdmissionPlace& place, std::string_view what) {
  errors_.push_back(place.path.empty() ? fmt::format("{}: {}", file_, what)
                                       : fmt::format("{}: {}: {}", at(place), place.path, what));
}

bool AdmissionSource::is_mapping(const Json& value, const AdmissionPlace& place,
                                 std::span<const std::string_view> known) {
  const Json::Object* object = value.if_object();
  if (object == nullptr) {
    wrong(place, "expected a mapping");
    return false;
  }
  for (const auto& [name, member] : *object) {
    if (std::ranges::find(known, name) == known.end()) {
      wrong(place.member(name), "unknown" + nearest_word(name, known).suggestion());
    }
  }
  return true;
}

void AdmissionSource::check_kind(const Json& value, const AdmissionPlace& place, std::string_view kind,
                                 std::span<const std::string_view> versions) {
  if (value.string_at({"kind"}) != kind) wrong(place.member("kind"), fmt::format("expected {}", kind));
  if (std::ranges::find(versions, value.string_at({"apiVersion"})) == versions.end()) {
    wrong(place.member("apiVersion"), fmt::format("expected {}", versions.front()));
  }
}

std::vector<std::string> AdmissionSource::strings(const Json& value, const AdmissionPlace& place,
                                                  std::string_view name) {
  std::vector<std::string> found;
  const auto list = elements(value, place, name);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string* word = list[i].if_string();
    word == nullptr ? wrong(place.member(name).element(i), "expected a string") : found.push_back(*word);
  }
  return found;
}

std::string AdmissionSource::string(const Json& value, const AdmissionPlace& place, std::string_view name) {
  const Json* found = given_member(value, name);
  if (found == nullptr) return "";
  if (const std::string* word = found->if_string()) return *word;
  wrong(place.member(name), "expected a string");
  return "";
}

std::span<const Json> AdmissionSource::elements(const Json& value, const AdmissionPlace& place, std::string_view name) {
  const Json* found = given_member(value, name);
  if (found == nullptr) return {};
  if (const Json::Array* list = found->if_array()) return {list->data(), list->size()};
  wrong(place.member(name), "expected a list");
  return {};
}

}  // namespace spillway::cli
