// Values that the rows of several kinds share: verbs, categories, subresources, checks of metadata, storage.
// Pure. Source: spec "API server contract", 2, 9.5, 22.2.
#pragma once

#include "apiserver/resource/resource_registry.h"

#include <array>
#include <string>
#include <string_view>

namespace spillway::apiserver::kinds {

inline constexpr VerbSet kAllVerbs{Verb::kGet,    Verb::kList,  Verb::kWatch,  Verb::kCreate,
                                   Verb::kUpdate, Verb::kPatch, Verb::kDelete, Verb::kDeleteCollection};
inline constexpr VerbSet kReadWriteVerbs{Verb::kGet, Verb::kPatch, Verb::kUpdate};
inline constexpr VerbSet kCreateOnly{Verb::kCreate};
inline constexpr VerbSet kConnect{Verb::kCreate, Verb::kGet};
inline constexpr VerbSet kProxied{Verb::kCreate, Verb::kDelete, Verb::kGet, Verb::kPatch, Verb::kUpdate};
inline constexpr VerbSet kMeasured{Verb::kGet, Verb::kList};

inline constexpr std::array<std::string_view, 1> kAllCategory{"all"};
inline constexpr std::array<std::string_view, 1> kExtensions{"api-extensions"};

// Kinds whose checks of metadata differ from the usual ones.
inline constexpr MetadataChecks kNoOwnChecks{.create = 0, .update_whole = 0, .update_change = 0, .status_change = 0};
inline constexpr MetadataChecks kChangeOnly{.update_whole = 0};
inline constexpr MetadataChecks kAnyFinalizer{.standard_finalizers = false};
inline constexpr MetadataChecks kWholeOnly{.update_change = 0};

inline constexpr Subresource kStatusSubresource{SubresourceId::kStatus, "status", kReadWriteVerbs, {}, {}, {}};
inline constexpr Subresource kScaleSubresource{SubresourceId::kScale, "scale", kReadWriteVerbs,
                                               "autoscaling",         "v1",    "Scale"};
inline constexpr std::array kStatusOnly{kStatusSubresource};
inline constexpr std::array kScaleAndStatus{kScaleSubresource, kStatusSubresource};

/// The prefix of the keys of a kind's objects: "/registry/pods/".
inline std::string below(std::string_view folder) {
  return "/registry/" + std::string(folder) + "/";
}

}  // namespace spillway::apiserver::kinds
