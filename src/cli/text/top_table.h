// The distance of nodes to evictions, as the table that `spillway top` prints. The nearest node is first. Thread: any
// (pure).
#pragma once

#include "cli/text/explanation.h"
#include "policy/reason.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace spillway::cli {

/// One node. Without a standing: `silent` is the reason.
struct NodeRow {
  std::string node;
  std::string state;                         // "Ready", "Ready,MemoryPressure", "NotReady,SchedulingDisabled"
  std::optional<policy::Decision> decision;  // every threshold with its numbers, and the next pod
  std::string silent;
};

/// The threshold that is nearest to be met: a forecast within the hour before none, then the smaller share of the
/// capacity that is left above it; met ones first. nullptr: none was measured.
const policy::Reason* nearest_threshold(const policy::Decision& decision);

/// Rows in the order of the table: nodes that are not plainly Ready, then the nearest to a threshold, then those that
/// are silent; ties by name.
std::vector<NodeRow> nearest_first(std::vector<NodeRow> rows);

/// Rows in the order given. Red: a threshold is met; yellow: forecast within a minute, or silent. Ends in a newline.
/// Usual: the threshold of memory, or the one that is met or foreseen. Wide: a row for each threshold of a node, the
/// nearest first. `columns`: of the screen; 0: any number.
std::string top_table(const std::vector<NodeRow>& rows, Paint paint, Width width = Width::kUsual,
                      std::size_t columns = 0);

/// Nodes with the least available memory first.
std::vector<NodeRow> least_memory_first(std::vector<NodeRow> rows);

}  // namespace spillway::cli
