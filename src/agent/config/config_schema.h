// The fields of KubeletConfiguration v1beta1: type, default, and whether they have an effect here.
// Thread: any (constant data). Source: Kubernetes docs, "Kubelet Configuration (v1beta1)"; spec "Node agent", 21.
#pragma once

#include "api/json/json.h"

#include <span>
#include <string_view>

namespace spillway::agent {

enum class FieldType {
  kBool,
  kInteger,
  kNumber,
  kString,
  kDuration,
  kQuantity,
  kTextMap,      // string → string
  kQuantityMap,  // resource → quantity
  kTextList,
  kGates,  // feature → on or off
  kTaints,
  kMapping,   // its fields are not checked
  kSequence,  // its elements are not checked
};

enum class Effect { kHere, kNone };

struct ConfigField {
  std::string_view name;
  FieldType type = FieldType::kString;
  Effect effect = Effect::kNone;
  std::string_view fallback;  // JSON text; empty: absent unless given
};

/// All fields, ordered by name.
std::span<const ConfigField> config_fields();
const ConfigField* find_config_field(std::string_view name);
/// Features that this agent knows. Every other gate of upstream has no effect.
inline constexpr std::string_view kCheckpointGate = "ContainerCheckpoint";
inline constexpr std::string_view kCpuPeriodGate = "CustomCPUCFSQuotaPeriod";
inline constexpr std::string_view kCrashLoopGate = "KubeletCrashLoopBackOffMax";
inline constexpr std::string_view kFineGrainedGate = "KubeletFineGrainedAuthz";
inline constexpr std::string_view kGroupsGate = "SupplementalGroupsPolicy";
inline constexpr std::string_view kMemoryQosGate = "MemoryQoS";
inline constexpr std::string_view kNodeLogQueryGate = "NodeLogQuery";
inline constexpr std::string_view kQosReservedGate = "QOSReserved";
inline constexpr std::string_view kPressureGate = "KubeletPSI";

struct FeatureGate {
  std::string_view name;
  bool by_default = false;
  bool locked = false;  // the default cannot be changed
};

/// Null: this agent does not know the gate.
const FeatureGate* find_gate(std::string_view name);
/// A known gate. `effective`: a checked configuration.
bool is_gate_on(const api::Json& effective, std::string_view name);

/// "true or false", "a whole number", …
std::string_view describe(FieldType type);

}  // namespace spillway::agent
