// Errors of fields as rows of vectors have them: `field`, `type`, and `body` (the message) or `detail` (its end),
// sorted.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "support/vectors.h"

#include <optional>

namespace spillway::support {

/// Compares the errors in any order; a row without `body` requires a message that ends with `detail`.
std::optional<Mismatch> compare_errors(const api::Json& wanted, const api::FieldErrors& errors);

}  // namespace spillway::support
