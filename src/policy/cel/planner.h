// Plans an expression before it is evaluated: compiles patterns, and replaces constant parts by their values. Thread:
// any (pure). Source: CEL language definition; Kubernetes docs, "Common Expression Language in Kubernetes".
#pragma once

#include "base/error.h"
#include "policy/cel/lexer.h"
#include "policy/cel/node.h"

#include <vector>

namespace spillway::cel {

/// Literals of a checked tree that can be nothing but wrong: times, patterns, mixed lists, format strings.
void check_literals(const Node& root, std::vector<SyntaxError>& problems);

/// kInvalid: a constant part is an error, with the words of the evaluation.
Result<void> plan(Node& root);

}  // namespace spillway::cel
