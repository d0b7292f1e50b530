#include "policy/structural/rule_sizes.h"

#include "policy/structural/rule_values.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace spillway::structural {

namespace {

using cel::Sizes;
using Made = std::shared_ptr<const Sizes>;

constexpr std::uint64_t kNumberBytes = 1;
constexpr std::uint64_t kBoolBytes = 4;
constexpr std::uint64_t kQuotes = 2;       // for a text, a list, an object
constexpr std::uint64_t kMemberBytes = 4;  // the quotes, the colon and the comma of a member
constexpr std::uint64_t kEntryBytes = 6;   // for a map entry, which also has a key

Made simple(std::uint64_t bytes_min, std::uint64_t elements_max = 0) {
  return std::make_shared<const Sizes>(Sizes{.elements_max = elements_max, .bytes_min = bytes_min});
}

std::uint64_t bound(const std::optional<std::int64_t>& given, std::uint64_t otherwise) {
  return given ? static_cast<std::uint64_t>(std::max<std::int64_t>(*given, 0)) : otherwise;
}

const Checks& checks_of(const Node& node) {
  static const Checks kNone;
  return node.checks == nullptr ? kNone : *node.checks;
}

/// A character is of up to four bytes.
std::uint64_t characters_max(const Checks& checks, std::uint64_t otherwise) {
  constexpr std::uint64_t kBytesPerCharacter = 4;
  return checks.max_length ? kBytesPerCharacter * bound(checks.max_length, 0) : otherwise;
}

Made text(const Node& node) {
  constexpr std::uint64_t kAny = cel::kRequestBytesMax - kQuotes;
  const Checks& checks = checks_of(node);
  if (node.format == Format::kByte) return simple(kQuotes, bound(checks.max_length, kAny));
  if (node.format == Format::kDuration) return simple(4, 32);
  if (node.format == Format::kDate) return simple(12, 12);
  if (node.format == Format::kDateTime) return simple(21, 29);
  std::uint64_t longest = kAny;
  if (!checks.values.empty()) {
    longest = 0;
    for (const api::Json& value : checks.values) {
      if (const std::string* one = value.if_string()) longest = std::max<std::uint64_t>(longest, one->size());
    }
  }
  return simple(kQuotes, characters_max(checks, longest));
}

Made list(const Node& node) {
  Made items = node.items == nullptr ? nullptr : rule_sizes(*node.items, node.items->embedded);
  if (items == nullptr) return nullptr;
  const std::uint64_t most = (cel::kRequestBytesMax - kQuotes) / (items->bytes_min + 1);
  return std::make_shared<const Sizes>(Sizes{.elements_max = bound(checks_of(node).max_items, most),
                                             .bytes_min = kQuotes,
                                             .element = std::move(items),
                                             .key = simple(kNumberBytes)});
}

Made map(const Node& node) {
  Made entries = rule_sizes(*node.entries, node.entries->embedded);
  if (entries == nullptr) return nullptr;
  const std::uint64_t most = (cel::kRequestBytesMax - kQuotes) / (entries->bytes_min + kEntryBytes);
  return std::make_shared<const Sizes>(Sizes{.elements_max = bound(checks_of(node).max_properties, most),
                                             .bytes_min = kQuotes,
                                             .element = std::move(entries),
                                             .key = simple(kQuotes)});
}

void add_type_and_metadata(Sizes& made) {
  const Made any = simple(kQuotes, cel::kRequestBytesMax - kQuotes);
  Sizes metadata{.bytes_min = kQuotes};
  metadata.fields.emplace("name", any);
  metadata.fields.emplace("generateName", any);
  made.fields.insert_or_assign("kind", any);
  made.fields.insert_or_assign("apiVersion", any);
  made.fields.insert_or_assign("metadata", std::make_shared<const Sizes>(std::move(metadata)));
}

Made object(const Node& node, bool resource) {
  if (node.entries != nullptr) return map(node);
  Sizes made{.bytes_min = kQuotes};
  const std::vector<std::string>& required = checks_of(node).required;
  for (const Property& property : node.properties) {
    Made member = rule_sizes(property.node, property.node.embedded);
    if (member == nullptr) continue;
    const bool counted =
        property.node.default_value.is_null() && std::ranges::find(required, property.name) != required.end();
    if (counted) made.bytes_min += property.name.size() + member->bytes_min + kMemberBytes;
    const std::string name = escaped_name(property.name);
    if (!name.empty()) made.fields.emplace(name, std::move(member));
  }
  if (resource) add_type_and_metadata(made);
  return std::make_shared<const Sizes>(std::move(made));
}

}  // namespace

Made rule_sizes(const Node& node, bool resource) {
  if (node.int_or_string) {
    return simple(kNumberBytes, characters_max(checks_of(node), cel::kRequestBytesMax - kQuotes));
  }
  switch (node.type) {
    case ValueType::kAny:
      return nullptr;
    case ValueType::kArray:
      return list(node);
    case ValueType::kBoolean:
      return simple(kBoolBytes);
    case ValueType::kInteger:
    case ValueType::kNumber:
      return simple(kNumberBytes);
    case ValueType::kString:
      return text(node);
    case ValueType::kObject:
      return object(node, resource);
  }
  return nullptr;
}

std::uint64_t times_in_request(const Sizes& sizes) {
  return cel::kRequestBytesMax / (sizes.bytes_min + 1);
}

}  // namespace spillway::structural
