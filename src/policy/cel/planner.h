// This is what can be done of an expression before it is evaluated: patterns are compiled, and parts whose values are
// known are replaced by them. Thread: any (pure). Source: CEL language definition; Kubernetes docs, "Common Expression
// Language in Kubernetes".
#pragma once

#include "base/error.h"
#include "policy/cel/lexer.h"
#include "policy/cel/node.h"

#include <vector>

namespace spillway::cel {

/// Literals of a checked tree that can be nothing but wrong: times, patterns, mixed lists, format strings.
void check_literals(const Node& root, std::vector<SyntaxError>& problems);

/// kInvalid: a part that is known is an error, with the words of the evaluation.
Result<void> plan(Node& root);

}  // namespace spillway::cel
