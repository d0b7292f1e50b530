// The tree of an expression. Thread: any (pure). Source: CEL language definition, syntax and macros.
#pragma once

#include "policy/cel/lexer.h"
#include "policy/cel/node.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace spillway::cel {

inline constexpr std::size_t kExpressionCharactersMax = 100'000;
/// How deep nodes may lie in one another. Chains of && and || are flat.
inline constexpr std::size_t kDepthMax = 250;

/// How deep they may lie with what macros make of them, and the variables that they name.
inline constexpr std::size_t kNestingMax = 300;

/// Macros with two variables are known to expressions that are stored already: a release that is rolled back has to
/// know what new ones say.
enum class Macros : std::uint8_t { kOfNewExpressions, kOfStoredExpressions };

/// This is what is no expression is told in `problems`; the tree has kMissing in its place.
Node parse(std::string_view text, Macros macros, std::vector<SyntaxError>& problems);

}  // namespace spillway::cel
