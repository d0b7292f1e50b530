// Evaluates an expression and gives its outcome as one text. Thread: any.
#pragma once

#include "policy/cel/expression.h"

#include <string>
#include <string_view>

namespace spillway::cel {

/// A pod as `object`, null as `oldObject`, its creation by jane as `request`.
struct Seen {
  api::Json object;
  api::Json old;
  api::Json request;

  static Seen pod();
};

/// "true", "false", or the error; "compile: …" where there is nothing to evaluate.
std::string outcome(std::string_view text, std::uint64_t units = kCallBudget);
std::string outcome(std::string_view text, const Seen& seen, const AccessCheck* check = nullptr,
                    std::uint64_t units = kCallBudget);

}  // namespace spillway::cel
