// The approval of CustomResourceDefinitions of protected groups (k8s.io, kubernetes.io and groups below them), which an
// annotation of the definition names. Thread: any (pure). Source: KEP-1111; API reference, CustomResourceDefinition.
#pragma once

#include "api/json/json.h"
#include "base/time.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace spillway::apiserver {

inline constexpr std::string_view kApprovalAnnotation = "api-approved.kubernetes.io";

enum class Approval : std::uint8_t { kMissing, kInvalid, kApproved, kBypassed };

bool is_protected_group(std::string_view group);

Approval approval_of(const api::Json& definition);

/// One sentence about the approval, in upstream's words.
std::string approval_text(const api::Json& definition);

/// Sets the condition KubernetesAPIApprovalPolicyConformant of a definition of a protected group; does not change any
/// other definition.
void set_approval_condition(api::Json& definition, WallTime now);

}  // namespace spillway::apiserver
