// The words of an expression. Thread: any (pure). Source: CEL language definition, lexis.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::cel {

enum class TokenKind : std::uint8_t { kEnd, kIdentifier, kInt, kUint, kDouble, kString, kBytes, kSign };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::uint32_t position = 0;  // byte in the text
  std::string_view text;       // as it is written
  std::string value;           // of a string or bytes: what it stands for
};

/// Where in the text, and why it is no expression.
struct SyntaxError {
  std::size_t position = 0;
  std::string message;
};

/// The tokens, the last one kEnd. `why` is told where the text is none.
bool read_tokens(std::string_view text, std::vector<Token>& tokens, SyntaxError& why);

/// Such words are kept for languages around this one.
bool is_reserved(std::string_view word);

}  // namespace spillway::cel
