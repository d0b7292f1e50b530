// The tree of an expression. Thread: any (pure). Source: CEL language definition, syntax and macros.
#pragma once

#include "policy/cel/lexer.h"
#include "policy/cel/node.h"

#include <cstddef>
#include <optional>
#include <string_view>

namespace spillway::cel {

inline constexpr std::size_t kExpressionBytesMax = 100'000;
/// How deep nodes may lie in one another. A chain of && or || is one node.
inline constexpr std::size_t kDepthMax = 250;

/// nullopt, with `why`: it is no expression, or beyond the bounds.
std::optional<Node> parse(std::string_view text, SyntaxError& why);

}  // namespace spillway::cel
