#include "policy/storage/volume_topology.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

namespace spillway::storage {

namespace {

struct TopologyLabel {
  std::string_view name;
  std::string_view newer;
};

constexpr std::string_view kZone = "topology.kubernetes.io/zone";
constexpr std::string_view kRegion = "topology.kubernetes.io/region";
constexpr std::array<TopologyLabel, 4> kTopologyLabels{{{"failure-domain.beta.kubernetes.io/zone", kZone},
                                                        {"failure-domain.beta.kubernetes.io/region", kRegion},
                                                        {kZone, kZone},
                                                        {kRegion, kRegion}}};
constexpr std::string_view kSeparator = "__";

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// The zones or regions in a label like "a__b"; empty: malformed.
std::set<std::string, std::less<>> places_in(std::string_view text) {
  std::set<std::string, std::less<>> places;
  for (bool more = true; more;) {
    const std::size_t end = text.find(kSeparator);
    const std::string_view place = trimmed(text.substr(0, end));
    if (place.empty()) return {};
    places.emplace(place);
    more = end != std::string_view::npos;
    if (more) text.remove_prefix(end + kSeparator.size());
  }
  return places;
}

const std::string* label_of(const api::ObjectMeta& meta, std::string_view name) {
  const auto found = meta.labels.find(name);
  return found == meta.labels.end() ? nullptr : &found->second;
}

bool names_value(const api::Json& expression, const std::string& value) {
  const api::Json* values = expression.find("values");
  return values != nullptr && values->if_array() != nullptr &&
         std::ranges::any_of(*values->if_array(), [&value](const api::Json& each) {
           return each.if_string() != nullptr && *each.if_string() == value;
         });
}

bool term_matches(const api::Json& term, const api::ObjectMeta& node) {
  const api::Json* expressions = term.find("matchLabelExpressions");
  if (expressions == nullptr || expressions->if_array() == nullptr || expressions->if_array()->empty()) return false;
  return std::ranges::all_of(*expressions->if_array(), [&node](const api::Json& expression) {
    const std::string* value = label_of(node, expression.string_at({"key"}));
    return value != nullptr && names_value(expression, *value);
  });
}

}  // namespace

bool allows_node(const api::StorageClass& storage_class, const api::ObjectMeta& node) {
  const api::Json::Array* terms = storage_class.allowed_topologies.if_array();
  if (terms == nullptr || terms->empty()) return true;
  return std::ranges::any_of(*terms, [&node](const api::Json& term) { return term_matches(term, node); });
}

bool is_in_zone_of(const api::PersistentVolume& volume, const api::ObjectMeta& node) {
  const bool is_somewhere = std::ranges::any_of(
      kTopologyLabels, [&node](const TopologyLabel& label) { return label_of(node, label.name) != nullptr; });
  if (!is_somewhere) return true;
  return std::ranges::all_of(kTopologyLabels, [&](const TopologyLabel& label) {
    const std::string* wanted = label_of(volume.metadata, label.name);
    if (wanted == nullptr) return true;
    const auto places = places_in(*wanted);
    if (places.empty()) return true;
    const std::string* here = label_of(node, label.name);
    if (here == nullptr) here = label_of(node, label.newer);
    return here != nullptr && places.contains(*here);
  });
}

}  // namespace spillway::storage
