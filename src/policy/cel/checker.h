// Static checks of an expression: names, types, patterns. Thread: any (pure). Source: CEL language definition, gradual
// type checking.
#pragma once

#include "policy/cel/environment.h"
#include "policy/cel/lexer.h"
#include "policy/cel/node.h"
#include "policy/cel/type.h"

#include <cstddef>
#include <vector>

namespace spillway::cel {

inline constexpr std::size_t kProblemsMax = 100;  // reported problems

/// Fills in types, overloads and places of variables in the nodes. `problems` stays empty if there is no error.
void check(Node& root, std::vector<SyntaxError>& problems, const Environment& environment = {});

}  // namespace spillway::cel
