// Values against the checks of their schema: types, formats, bounds, patterns, lists of values, combinations. Errors in
// unchanged parts of an update are not reported again. The number of compared values is bounded.
// Thread: any (pure). Source: OpenAPI 3.0, schema object; JSON Schema validation (draft wright 00); Kubernetes docs,
// "Extend the Kubernetes API with CustomResourceDefinitions", validation ratcheting.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"

#include <cstdint>
#include <string_view>

namespace spillway::structural {

struct Node;

/// Values times schemas that are compared in one object. A search for a pattern counts as many as its steps, an error,
/// within alternatives too, kProblemSteps times: 50 ms or so.
inline constexpr std::uint64_t kValueStepsMax = 500'000;
inline constexpr std::uint64_t kProblemSteps = 20;

/// Adds the errors of the value. `old`: the previous value; null: there was none. `prefix` precedes the reported
/// fields: "spec.validation.openAPIV3Schema.default" or nothing.
void check_values(const Node& node, const api::Json& value, const api::Json* old, std::string_view prefix,
                  api::FieldErrors& errors);

}  // namespace spillway::structural
