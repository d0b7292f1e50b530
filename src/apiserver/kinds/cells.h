// Formats single values of a Table: ages, counts, label selectors, lists of containers.
// Pure. Source: spec "API server contract", 15.3-15.7.
#pragma once

#include "api/json/json.h"
#include "base/time.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::apiserver::kinds {

inline constexpr std::string_view kNone = "<none>";
inline constexpr std::string_view kUnknown = "<unknown>";

/// "5m30s" since the RFC 3339 time; "<unknown>" if it is absent or unreadable.
std::string age_since(const api::Json* time, WallTime now);
/// age_since metadata.creationTimestamp.
std::string age_of(const api::Json& object, WallTime now);
/// The string, or `otherwise` if it is empty.
std::string or_else(std::string_view text, std::string_view otherwise);
/// metadata.name.
std::string_view name_of(const api::Json& object);
/// The number of members or elements of a member; 0 if it is absent or neither an object nor a list.
std::int64_t size_at(const api::Json& object, std::string_view key);
/// The integer below the path; 0 if it is absent, as Kubernetes counts.
std::int64_t count_at(const api::Json& object, std::initializer_list<std::string_view> path);
/// "true" or "false", as a field selector compares a boolean; "false" if it is absent.
std::string false_unless_set(const api::Json& object, std::initializer_list<std::string_view> path);
/// "a=b,c in (d,e)"; "<none>" for an absent selector.
std::string selector_text(const api::Json* selector);
/// "a=b,c=d"; "<none>" if there are none.
std::string label_text(const api::Json* labels);
/// The names, and the images, of the containers of a pod spec, joined by commas.
std::string container_names(const api::Json* pod_spec);
std::string container_images(const api::Json* pod_spec);

}  // namespace spillway::apiserver::kinds
