// The text of an expression to a checked tree. Thread: any (pure). Source: CEL language definition.
#pragma once

#include "base/error.h"
#include "policy/cel/environment.h"
#include "policy/cel/node.h"
#include "policy/cel/type.h"

#include <cstddef>
#include <string_view>

namespace spillway::cel {

struct CheckedText {
  Node root;
  Type type;
  std::size_t depth = 0;  // the tree's; a variable counts with its own depth; at most kDepthMax
};

/// kInvalid: it does not compile, with upstream's words: each problem with its line and a mark below it.
Result<CheckedText> check_text(std::string_view text, const Environment& environment);

/// Checks like check_text(), plans the tree, and counts the work (count_compilation()). kInvalid: "compilation
/// failed: …", or the error of the plan.
Result<CheckedText> compile_text(std::string_view text, const Environment& environment);

/// Counts the work of checking `text`, in the units of Budget: in a fiber, the next slice may begin here.
void count_compilation(std::string_view text);

}  // namespace spillway::cel
