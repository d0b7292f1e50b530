// Pod templates compared, and named by a hash. The hash is upstream's to the letter, so that a cluster that is taken
// over keeps the names of its ReplicaSets: FNV-1a of the text that Go prints of the template, for which the layout of
// Go's structures is needed (pod_template_layout.json). Thread: any (pure; the layout is read once). Source: spec
// "Scheduler and workloads", 12; vectors workloads/pod_template_hash.
#pragma once

#include "api/object/workload.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::workloads {

/// The label of a ReplicaSet of a Deployment and of its pods.
inline constexpr std::string_view kPodTemplateHash = "pod-template-hash";

/// The text of {metadata, spec} that is hashed: every field in the order of Go's structures.
std::string template_text(const api::Json& pod_template);

/// The hash of a template: "6f4979687b". `collision_count` changes it when the name is taken.
std::string template_hash(const api::Json& pod_template, std::optional<std::int32_t> collision_count);

/// A decimal number in letters that make no words.
std::string safe_encode(std::string_view number);

/// True if both templates make the same pods: quantities compare by value, empty equals absent, the hash label is
/// ignored.
bool same_template(const api::Json& a, const api::Json& b);

/// Compares one template with several others.
class TemplateMatch {
 public:
  explicit TemplateMatch(const api::Json& wanted);

  bool operator()(const api::Json& other) const;

 private:
  api::Json wanted_;
  std::string meaning_;
};

/// {metadata, spec} unchanged from the object.
api::Json template_document(const api::PodTemplate& pod_template);

}  // namespace spillway::workloads
