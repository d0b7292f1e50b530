// Validation of metadata, for every kind: names, labels, annotations, finalizers, owner references; and immutable
// members. Thread: any (pure). Source: spec "API server contract", 7.1-7.3, 11.4.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/resource/resource_registry.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

/// The errors of a name by that rule, in upstream's words; none if the name is valid.
std::vector<std::string> name_problems(NameRule rule, std::string_view name);
/// Problems of a generateName, the beginning of a name.
std::vector<std::string> prefix_problems(NameRule rule, std::string_view prefix);

/// Qualified by a domain, or one of Kubernetes' own.
bool is_finalizer_of_somebody(std::string_view name);
inline constexpr std::string_view kUnknownFinalizer =
    "name is neither a standard finalizer name nor is it fully qualified";

/// Validates the metadata of a new object by the rules of its kind. Fields start with "metadata".
void validate_metadata(const Resource& resource, const api::Json& object, api::FieldErrors& errors);
/// Validates the metadata of an object of any kind, new and otherwise fine.
void validate_any_metadata(const api::Json& object, api::FieldErrors& errors);

/// The part of an object that an update is about.
enum class UpdatedPart { kMain, kStatus };
/// Adds the errors of changed metadata, as often as the checks of the kind run (MetadataChecks).
void validate_metadata_update(const Resource& resource, UpdatedPart part, const api::Json& object, const api::Json& old,
                              api::FieldErrors& errors);

}  // namespace spillway::apiserver
