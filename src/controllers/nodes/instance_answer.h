// The questions to a cloud plug-in about the machines of nodes, and its answers: JSON both ways.
// Thread: any (pure).
// Source: spec "Node lifecycle", S12.
#pragma once

#include "api/json/json.h"
#include "base/error.h"

#include <optional>
#include <string>
#include <vector>

namespace spillway::controllers {

struct InstanceQuestion {
  std::string node;
  std::string provider_id;  // "aws:///eu-1a/i-0123"; may be empty

  friend bool operator==(const InstanceQuestion&, const InstanceQuestion&) = default;
};

enum class InstanceState { kRunning, kShutDown, kGone };

struct InstanceAnswer {
  std::string node;
  std::optional<InstanceState> state;  // nullopt: the cloud could not determine it

  friend bool operator==(const InstanceAnswer&, const InstanceAnswer&) = default;
};

/// {"apiVersion":"spillway/v1","kind":"InstanceQuery","nodes":[{"name":"n1","providerID":"aws:///…"}]}
api::Json instance_query(const std::vector<InstanceQuestion>& nodes);

/// {"nodes":[{"name":"n1","exists":true,"shutdown":false}]}, in any order; an entry with "error" has no state, nor has
/// a node without an entry. kInvalid: any other text, an entry for a node that was not in the query, or two for one
/// node.
Result<std::vector<InstanceAnswer>> read_instance_answer(std::string_view text,
                                                         const std::vector<InstanceQuestion>& asked);

}  // namespace spillway::controllers
