// The columns of a kind in a Table, and the two that every kind has. Pure. Source: spec "API server contract", 15.
#pragma once

#include "api/json/json.h"
#include "apiserver/resource/kind_hooks.h"

#include <span>

namespace spillway::apiserver::kinds {

/// The columns of a kind and the function that fills one row.
struct TableDefinition {
  std::span<const TableColumn> columns;
  TableRow (*row)(const api::Json& object, WallTime now) = nullptr;
};

inline constexpr TableColumn kNameColumn{"Name", "string", "name", 0, "Name of the object"};
inline constexpr TableColumn kAgeColumn{"Age", "string", "", 0, "Time since creation"};

}  // namespace spillway::apiserver::kinds
