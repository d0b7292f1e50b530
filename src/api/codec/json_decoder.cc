#include "api/codec/json_decoder.h"

#include <cmath>

namespace spillway::api {

void Decoder::type_meta(std::string_view /*api_version*/, std::string_view kind) {
  std::string found(kind);
  field("kind", found);
  if (!error_ && !found.empty() && found != kind) {
    check("kind", FieldProblem{fmt::format("expected {}, got {}", kind, found), {}});
  }
}

void Decoder::selector(std::string_view name, LabelSelector& value) {
  if (error_) return;
  auto selector = label_selector_from_json(member(name));
  if (selector) {
    value = *std::move(selector);
    return;
  }
  std::string below = std::move(selector.error().at);
  if (!below.empty()) below.insert(below.begin(), '.');
  check(name, FieldProblem{std::move(selector.error().message), std::move(below)});
}

void Decoder::hundredths(std::string_view name, std::int32_t& value) {
  const Json* found = member(name);
  if (found == nullptr) return;
  const std::optional<double> number = found->if_double();
  if (!number || !(std::abs(*number) < 10'000'000)) return check(name, unexpected_type("a number", *found));
  value = static_cast<std::int32_t>(std::lround(*number * 100));
}

void Decoder::first_of(std::string_view name, std::string_view key, std::string& value) {
  const Json* found = value.empty() ? member(name) : nullptr;
  const Json::Array* array = found != nullptr ? found->if_array() : nullptr;
  if (array != nullptr && !array->empty()) value = array->front().string_at({key});
}

void Decoder::rest_of(std::string_view name, std::string_view key, std::vector<std::string>& values) {
  const Json* found = member(name);
  const Json::Array* array = found != nullptr ? found->if_array() : nullptr;
  for (std::size_t i = 1; array != nullptr && i < array->size(); ++i) {
    values.emplace_back((*array)[i].string_at({key}));
  }
}

const Json* Decoder::member(std::string_view name) const {
  if (error_) return nullptr;
  const Json* found = here_->find(name);
  return found != nullptr && !found->is_null() ? found : nullptr;
}

void Decoder::check(std::string_view name, FieldOutcome outcome) {
  if (!outcome || error_) return;
  error_ = invalid(path_to(name) + outcome->at, "{}", outcome->message);
}

std::string Decoder::path_to(std::string_view name) const {
  std::string path;
  const auto append = [&path](std::string_view step) {
    if (!path.empty() && !step.empty()) path += '.';
    path += step;
  };
  for (const Step& step : path_) {
    append(step.name);
    if (step.position != 0) path += fmt::format("[{}]", step.position - 1);
  }
  append(name);
  return path;
}

template <typename T>
void Decoder::field(std::string_view name, T& value) {
  if (const Json* found = member(name)) check(name, read_field(*found, value));
}

template void Decoder::field(std::string_view name, std::string& value);
template void Decoder::field(std::string_view name, bool& value);
template void Decoder::field(std::string_view name, std::int32_t& value);
template void Decoder::field(std::string_view name, std::int64_t& value);
template void Decoder::field(std::string_view name, std::uint64_t& value);
template void Decoder::field(std::string_view name, WallTime& value);
template void Decoder::field(std::string_view name, Quantity& value);
template void Decoder::field(std::string_view name, std::vector<std::string>& value);
template void Decoder::field(std::string_view name, std::vector<std::int64_t>& value);
template void Decoder::field(std::string_view name, StringMap& value);
template void Decoder::field(std::string_view name, ResourceList& value);
template void Decoder::field(std::string_view name, Json& value);
template void Decoder::field(std::string_view name, std::optional<std::string>& value);
template void Decoder::field(std::string_view name, std::optional<bool>& value);
template void Decoder::field(std::string_view name, std::optional<std::int32_t>& value);
template void Decoder::field(std::string_view name, std::optional<std::int64_t>& value);
template void Decoder::field(std::string_view name, std::optional<std::uint64_t>& value);
template void Decoder::field(std::string_view name, std::optional<WallTime>& value);
template void Decoder::field(std::string_view name, std::optional<Quantity>& value);
template void Decoder::field(std::string_view name, std::optional<std::vector<std::string>>& value);
template void Decoder::field(std::string_view name, std::optional<StringMap>& value);
template void Decoder::field(std::string_view name, std::optional<ResourceList>& value);

}  // namespace spillway::api
