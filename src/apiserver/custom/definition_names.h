// The status of a CustomResourceDefinition: accepted names, and conditions for whether the kind is served. Thread: any
// (pure). Source: Kubernetes docs, "Extend the Kubernetes API with CustomResourceDefinitions"; API reference,
// CustomResourceDefinitionStatus.
#pragma once

#include "api/json/json.h"
#include "base/time.h"

#include <set>
#include <string>
#include <string_view>

namespace spillway::apiserver {

inline constexpr std::string_view kDefinitions = "customresourcedefinitions.apiextensions.k8s.io";
inline constexpr std::string_view kCleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io";

/// Names that other definitions of the group hold.
struct TakenNames {
  std::set<std::string, std::less<>> resources;  // plural, singular, short
  std::set<std::string, std::less<>> kinds;      // and kinds of lists

  /// Adds the names that `definition` was accepted with.
  void add(const api::Json& definition);
};

bool is_condition_true(const api::Json& object, std::string_view type);

/// The definition with the accepted names and conditions in its status. `refusal`: why none of its names can be
/// accepted; empty: nothing.
api::Json with_names(api::Json definition, const TakenNames& taken, std::string_view refusal, WallTime now);

}  // namespace spillway::apiserver
