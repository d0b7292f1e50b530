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
/// The greatest depth of nested nodes. Chains of && and
/// are flat.
inline constexpr std::size_t kDepthMax = 250;

/// The greatest depth including expanded macros and named variables.
inline constexpr std::size_t kNestingMax = 300;

/// kOfNewExpressions: macros with two variables are refused, so that a release that is rolled back supports all new
/// expressions. kOfStoredExpressions: they are allowed.
enum class Macros : std::uint8_t { kOfNewExpressions, kOfStoredExpressions };

/// Parses the text. Errors are added to `problems`; the tree has kMissing in their place.
Node parse(std::string_view text, Macros macros, std::vector<SyntaxError>& problems);

}  // namespace spillway::cel
