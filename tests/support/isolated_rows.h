// Runs a check over rows in a child process: a row that ends the process, or throws, is a failed row, and the rows
// after it are run all the same.
#pragma once

#include "support/vectors.h"

#include <optional>
#include <span>
#include <vector>

namespace spillway::support {

/// The outcome of every row, in order. What the check keeps between rows lives in the child, and begins anew after a
/// row that ended it.
std::vector<std::optional<Mismatch>> check_rows(const VectorCheck& check, std::span<const VectorRow> rows);

}  // namespace spillway::support
