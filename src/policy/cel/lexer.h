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

/// Kinds in the order in which messages list the expected ones.
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
  std::string_view text;       // text as in the source
};

/// The position in the text, and the error.
struct SyntaxError {
  std::size_t position = 0;
  std::string message;
  bool nowhere = false;  // without a position: the whole is too deep
};

/// Splits a text into tokens, the last of which is kEnd. Invalid characters are reported and skipped.
std::vector<Token> read_tokens(std::string_view text, std::vector<SyntaxError>& problems);

/// The value of the literal of a string or of bytes. nullopt: an escape in it denotes no character.
std::optional<std::string> unescaped(const Token& literal);

/// The kind as in error messages: "'('", "NUM_INT", "<EOF>".
std::string_view shown_kind(TokenKind kind);

/// True for words that CEL reserves for host languages.
bool is_reserved(std::string_view word);

}  // namespace spillway::cel
