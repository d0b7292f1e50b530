// Completion indexes of a Job as clients write them, validated with upstream's messages. The controller parses them in
// policy/workloads/job_indexes.h. Pure. Source: vectors api/validation_create, api/validation_update, "Job".
#pragma once

#include "base/error.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace spillway::apiserver::kinds {

struct IndexRun {
  std::int64_t first = 0;
  std::int64_t last = 0;  // included
};

/// "0-2,5": ascending, below `completions`; nothing is fine. kInvalid: the first part that is wrong.
Result<std::vector<IndexRun>> parse_runs(std::string_view written, std::int64_t completions);

std::int64_t total_of(const std::vector<IndexRun>& runs);

/// True if two ascending lists overlap; takes as many steps as there are runs.
bool overlap(const std::vector<IndexRun>& a, const std::vector<IndexRun>& b);

}  // namespace spillway::apiserver::kinds
