#include "policy/structural/node.h"

#include <algorithm>
#include <array>
#include <functional>

namespace spillway::structural {

namespace {

constexpr std::array<std::string_view, 7> kTypeNames{"", "array", "boolean", "integer", "number", "object", "string"};

}  // namespace

const Node* Node::property(std::string_view name) const {
  const auto found = std::ranges::lower_bound(properties, name, std::ranges::less{},
                                              [](const Property& one) { return std::string_view(one.name); });
  return found == properties.end() || found->name != name ? nullptr : &found->node;
}

const Node* Node::member(std::string_view name) const {
  const Node* own = property(name);
  return own != nullptr ? own : entries.get();
}

std::string_view to_string(ValueType type) {
  return kTypeNames[static_cast<std::size_t>(type)];
}

std::optional<ValueType> parse_value_type(std::string_view text) {
  const auto* found = std::ranges::find(kTypeNames, text);
  if (found == kTypeNames.end()) return std::nullopt;
  return static_cast<ValueType>(found - kTypeNames.begin());
}

}  // namespace spillway::structural
