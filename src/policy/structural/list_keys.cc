#include "policy/structural/list_keys.h"

namespace spillway::structural {

api::Json keys_of(const Node& list, const api::Json& element) {
  api::Json keys = api::Json::object();
  for (const std::string& key : list.list_keys) {
    if (const api::Json* value = element.find(key)) {
      keys[key] = *value;
    } else if (list.items != nullptr) {
      const Node* property = list.items->property(key);
      if (property != nullptr && !property->default_value.is_null()) keys[key] = property->default_value;
    }
  }
  return keys;
}

OldElements::OldElements(const Node& list, const api::Json* old)
    : list_(list), old_(old == nullptr ? nullptr : old->if_array()) {
  if (old_ == nullptr || list.list_type != ListType::kMap) return;
  for (const api::Json& element : *old_) by_keys_.emplace(api::to_text(keys_of(list, element)), &element);
}

const api::Json* OldElements::of(const api::Json& element, std::size_t index) const {
  if (old_ == nullptr) return nullptr;
  if (list_.list_type == ListType::kUnset) return index < old_->size() ? &(*old_)[index] : nullptr;
  if (list_.list_type != ListType::kMap || !element.is_object()) return nullptr;
  const auto found = by_keys_.find(api::to_text(keys_of(list_, element)));
  return found == by_keys_.end() ? nullptr : found->second;
}

}  // namespace spillway::structural
