// Macros: calls that are expanded to other trees, as all(x, …) to a loop over a list. Thread: any (pure).
// Source: CEL language definition, macros; Kubernetes docs, "Common Expression Language in Kubernetes", two-variable
// comprehensions.
#pragma once

#include "policy/cel/lexer.h"
#include "policy/cel/node.h"
#include "policy/cel/parser.h"

#include <vector>

namespace spillway::cel {

/// Expands a call of a macro; any other call is unchanged. A macro with wrong arguments is reported in `problems` and
/// becomes kMissing.
void expand_macro(Node& call, Macros macros, std::vector<SyntaxError>& problems);

}  // namespace spillway::cel
