// Lists that are sets or maps: checks that no element, or no key, occurs twice. Thread: any (pure). Source: Kubernetes
// docs, "Server-Side Apply", merge strategy.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"

namespace spillway::structural {

struct Node;

/// Reports the second of equal elements, and no later one.
void check_lists(const Node& root, const api::Json& object, api::FieldErrors& errors);

}  // namespace spillway::structural
