// Macros: calls that stand for other trees, as all(x, …) for a loop over a list. Thread: any (pure).
// Source: CEL language definition, macros; Kubernetes docs, "Common Expression Language in Kubernetes", two-variable
// comprehensions.
#pragma once

#include "policy/cel/lexer.h"
#include "policy/cel/node.h"
#include "policy/cel/parser.h"

#include <vector>

namespace spillway::cel {

/// Turns a call of a macro into what it stands for; any other call stays. A macro with wrong arguments is told in
/// `problems` and becomes kMissing.
void expand_macro(Node& call, Macros macros, std::vector<SyntaxError>& problems);

}  // namespace spillway::cel
