// The words of an expression. Thread: any (pure). Source: CEL language definition, lexis.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::cel {

/// In the order in which messages list what was expected.
enum class TokenKind : std::uint8_t {
  kEnd,
  kEqual,
  kUnequal,
  kIn,
  kLess,
  kAtMost,
  kAtLeast,
  kGreater,
  kAnd,
  kOr,
  kOpenBracket,
  kCloseBracket,
  kOpenBrace,
  kCloseBrace,
  kOpenParenthesis,
  kCloseParenthesis,
  kDot,
  kComma,
  kMinus,
  kNot,
  kQuestion,
  kColon,
  kPlus,
  kStar,
  kSlash,
  kPercent,
  kTrue,
  kFalse,
  kNull,
  kDouble,
  kInt,
  kUint,
  kString,
  kBytes,
  kIdentifier,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::uint32_t position = 0;  // byte in the text
  std::string_view text;       // as it is written
};

/// Where in the text, and why it is no expression.
struct SyntaxError {
  std::size_t position = 0;
  std::string message;
  bool nowhere = false;  // it has no place: the whole is too deep
};

/// The tokens, the last one kEnd. What is no token is told and left out.
std::vector<Token> read_tokens(std::string_view text, std::vector<SyntaxError>& problems);

/// The value of the literal of a string or of bytes. nullopt: an escape in it stands for no character.
std::optional<std::string> unescaped(const Token& literal);

/// "'('", "NUM_INT", "<EOF>", as messages have it.
std::string_view shown_kind(TokenKind kind);

/// Such words are kept for languages around this one.
bool is_reserved(std::string_view word);

}  // namespace spillway::cel
