// The largest sizes of values of a schema, for estimates of the costs of rules. Thread: any (pure). Source: Kubernetes
// docs, "Extend the Kubernetes API with CustomResourceDefinitions", resource use by validation functions.
#pragma once

#include "policy/cel/estimate.h"
#include "policy/structural/node.h"

#include <cstdint>
#include <memory>

namespace spillway::structural {

/// Null: expressions do not see such values. `resource`: the schema is one of whole objects.
std::shared_ptr<const cel::Sizes> rule_sizes(const Node& node, bool resource);

/// The number of such values that fit into the largest request.
std::uint64_t times_in_request(const cel::Sizes& sizes);

}  // namespace spillway::structural
