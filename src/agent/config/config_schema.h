// The fields of KubeletConfiguration v1beta1: type, default, and whether they have an effect here.
// Thread: any (constant data). Source: Kubernetes docs, "Kubelet Configuration (v1beta1)"; spec "Node agent", 21.
#pragma once

#include <span>
#include <string_view>

namespace spillway::agent {

enum class FieldType {
  kBool,
  kInteger,
  kString,
  kDuration,
  kQuantity,
  kTextMap,      // string → string
  kQuantityMap,  // resource → quantity
  kTextList,
  kGates,  // feature → on or off
  kTaints,
  kMapping,   // fields of its own that are not looked at
  kSequence,  // elements that are not looked at
};

enum class Effect { kHere, kNone };

struct ConfigField {
  std::string_view name;
  FieldType type = FieldType::kString;
  Effect effect = Effect::kNone;
  std::string_view fallback;  // JSON text; empty: absent unless given
};

/// In order of name.
std::span<const ConfigField> config_fields();
const ConfigField* find_config_field(std::string_view name);
/// "true or false", "a whole number", …
std::string_view describe(FieldType type);

}  // namespace spillway::agent
