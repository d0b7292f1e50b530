// Format strings: '%s is %d'.format([a, b]). Thread: any (pure). Source: CEL extension library "strings", format.
#pragma once

#include "policy/cel/lexer.h"
#include "policy/cel/node.h"

#include <vector>

namespace spillway::cel {

/// The errors of a checked call of format whose text and list are literals.
std::vector<SyntaxError> check_format(const Node& call);

}  // namespace spillway::cel
