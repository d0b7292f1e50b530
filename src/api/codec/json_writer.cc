#include "api/codec/json_writer.h"

#include "api/text/time_text.h"

namespace spillway::api {

void Writer::type_meta(std::string_view api_version, std::string_view kind) {
  kept("apiVersion", std::string(api_version));
  kept("kind", std::string(kind));
}

void Writer::micro_time(std::string_view name, const std::optional<WallTime>& value) {
  if (const Json* old = here_->find(name)) {
    std::optional<WallTime> current;
    if ((old->is_null() || !read_field(*old, current)) && current == value) return;
  }
  if (value) {
    (*here_)[name] = format_micro_time(*value);
  } else {
    here_->erase(name);
  }
}

void Writer::selector(std::string_view name, const LabelSelector& value) {
  const Json* old = here_->find(name);
  if (const auto current = label_selector_from_json(old); current && *current == value) return;
  if (value.nothing) {
    here_->erase(name);
  } else {
    (*here_)[name] = label_selector_to_json(value);
  }
}

void Writer::first_of(std::string_view name, std::string_view key, const std::string& value) {
  const Json* old = here_->find(name);
  const Json::Array* list = old != nullptr ? old->if_array() : nullptr;
  if (list != nullptr && !list->empty() && list->front().string_at({key}) == value) return;
  if (value.empty()) {
    clear_list(name);
  } else {
    (*here_)[name] = Json::array({Json::object({{key, value}})});
  }
}

void Writer::write(std::string_view name, const ResourceList& value, Zero zero) {
  const Json* old = here_->find(name);
  const bool was_empty = old == nullptr || old->is_null() || (old->is_object() && old->if_object()->empty());
  if (value.empty()) {
    if (zero == Zero::kKept && old == nullptr) (*here_)[name] = Json::object();
    if (!was_empty) here_->erase(name);
    return;
  }
  Json::Object written;
  for (const auto& [resource, amount] : value) {
    const Json* spelled = old != nullptr ? old->find(resource) : nullptr;
    Quantity current;
    const bool same = spelled != nullptr && !spelled->is_null() && !read_field(*spelled, current) && current == amount;
    written[resource] = same ? *spelled : field_to_json(amount);
  }
  (*here_)[name] = Json(std::move(written));
}

void Writer::drop(std::string_view name) {
  const Json* old = here_->find(name);
  if (old != nullptr && !old->is_null()) here_->erase(name);
}

void Writer::clear_list(std::string_view name) {
  const Json* old = here_->find(name);
  if (old == nullptr || old->is_null()) return;
  if (old->is_array() && old->if_array()->empty()) return;
  here_->erase(name);
}

Json::Array Writer::take_list(std::string_view name) {
  Json* old = here_->find(name);
  if (old == nullptr || !old->is_array()) return {};
  return std::move(*old->if_array());
}

Json Writer::take_element(Json::Array& old, std::vector<bool>& used, std::size_t position, std::string_view key,
                          const std::string* wanted) {
  const auto fits = [&](std::size_t i) {
    return i < old.size() && !used[i] && old[i].is_object() &&
           (wanted == nullptr || old[i].string_at({key}) == *wanted);
  };
  std::size_t found = position;
  if (!fits(found)) {
    found = 0;
    while (found < old.size() && (wanted == nullptr || !fits(found))) ++found;
  }
  if (found >= old.size()) return Json::object();
  used[found] = true;
  return std::move(old[found]);
}

template <typename T>
void Writer::write(std::string_view name, const T& value, Zero zero) {
  if (const Json* old = here_->find(name)) {
    T current{};
    if ((old->is_null() || !read_field(*old, current)) && current == value) return;
  }
  if (zero == Zero::kOmitted && is_zero_field(value)) {
    here_->erase(name);
  } else {
    (*here_)[name] = field_to_json(value);
  }
}

template void Writer::write(std::string_view name, const std::string& value, Zero zero);
template void Writer::write(std::string_view name, const bool& value, Zero zero);
template void Writer::write(std::string_view name, const std::int32_t& value, Zero zero);
template void Writer::write(std::string_view name, const std::int64_t& value, Zero zero);
template void Writer::write(std::string_view name, const std::uint64_t& value, Zero zero);
template void Writer::write(std::string_view name, const WallTime& value, Zero zero);
template void Writer::write(std::string_view name, const Quantity& value, Zero zero);
template void Writer::write(std::string_view name, const std::vector<std::string>& value, Zero zero);
template void Writer::write(std::string_view name, const std::vector<std::int64_t>& value, Zero zero);
template void Writer::write(std::string_view name, const StringMap& value, Zero zero);
template void Writer::write(std::string_view name, const Json& value, Zero zero);
template void Writer::write(std::string_view name, const std::optional<std::string>& value, Zero zero);
template void Writer::write(std::string_view name, const std::optional<bool>& value, Zero zero);
template void Writer::write(std::string_view name, const std::optional<std::int32_t>& value, Zero zero);
template void Writer::write(std::string_view name, const std::optional<std::int64_t>& value, Zero zero);
template void Writer::write(std::string_view name, const std::optional<std::uint64_t>& value, Zero zero);
template void Writer::write(std::string_view name, const std::optional<WallTime>& value, Zero zero);
template void Writer::write(std::string_view name, const std::optional<Quantity>& value, Zero zero);
template void Writer::write(std::string_view name, const std::optional<std::vector<std::string>>& value, Zero zero);
template void Writer::write(std::string_view name, const std::optional<StringMap>& value, Zero zero);
template void Writer::write(std::string_view name, const std::optional<ResourceList>& value, Zero zero);

}  // namespace spillway::api
