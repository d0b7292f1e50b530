// Lists that are sets or maps: nothing, or no key, comes twice. Thread: any (pure). Source: Kubernetes docs,
// "Server-Side Apply", merge strategy.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"

namespace spillway::structural {

struct Node;

/// The second of those that are the same is told, whatever follows.
void check_lists(const Node& root, const api::Json& object, api::FieldErrors& errors);

}  // namespace spillway::structural
