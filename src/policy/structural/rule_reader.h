// The rules of a schema, compiled. Thread: any (pure). Source: Kubernetes docs, "Extend the Kubernetes API with
// CustomResourceDefinitions", validation rules.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "policy/cel/environment.h"
#include "policy/structural/node.h"

#include <cstddef>
#include <string_view>

namespace spillway::structural {

inline constexpr std::size_t kRulesMax = 1'000;                // rules in one schema
inline constexpr std::size_t kRuleTextBytesMax = 256U << 10U;  // bytes of all texts together

/// Compiles x-kubernetes-validations of the document into `root`, which was read from it. Adds their errors; a rule
/// that does not compile keeps its place and returns the error when it is evaluated.
/// Costs are limited, and macros of later releases refused, where the schema is new.
void read_rules(const api::Json& document, std::string_view path, cel::Age age, Node& root, api::FieldErrors& errors);

}  // namespace spillway::structural
