#include "policy/cel/lexer.h"

#include "base/ascii.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace spillway::cel {

namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

std::optional<unsigned> hex_value(char c) {
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

void append_character(std::string& out, std::uint32_t point) {
  const auto tail = [&](unsigned shift) { out += static_cast<char>(0x80U | ((point >> shift) & 0x3fU)); };
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xc0U | (point >> 6U));
    tail(0);
  } else if (point < 0x10000) {
    out += static_cast<char>(0xe0U | (point >> 12U));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0U | (point >> 18U));
    tail(12);
    tail(6);
    tail(0);
  }
}

class Lexer {
 public:
  Lexer(std::string_view text, SyntaxError& why) : text_(text), why_(why) {}

  bool read(std::vector<Token>& tokens) {
    while (true) {
      skip_blanks();
      Token token{.kind = TokenKind::kEnd, .position = static_cast<std::uint32_t>(at_), .text = {}, .value = {}};
      const std::size_t begin = at_;
      if (at_ == text_.size()) {
        tokens.push_back(std::move(token));
        return true;
      }
      if (!take(token)) return false;
      token.text = text_.substr(begin, at_ - begin);
      tokens.push_back(std::move(token));
    }
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  bool fail(std::size_t position, std::string message) {
    why_ = {.position = position, .message = std::move(message)};
    return false;
  }

  void skip_blanks() {
    while (at_ < text_.size()) {
      if (std::string_view(" \t\n\r\f").contains(text_[at_])) {
        ++at_;
      } else if (text_.substr(at_).starts_with("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }

  bool take(Token& token) {
    const char c = peek();
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return take_number(token);
    if (const std::optional<std::size_t> prefix = string_prefix()) return take_string(token, *prefix);
    if (is_letter(c)) {
      token.kind = TokenKind::kIdentifier;
      while (is_letter(peek()) || is_digit(peek())) ++at_;
      return true;
    }
    return take_sign(token);
  }

  bool take_sign(Token& token) {
    static constexpr std::array<std::string_view, 6> kTwo{"&&", "||", "==", "!=", "<=", ">="};
    static constexpr std::string_view kOne = "<>+-*/%!?:.,()[]{}";
    token.kind = TokenKind::kSign;
    if (std::ranges::find(kTwo, text_.substr(at_, 2)) != kTwo.end()) {
      at_ += 2;
      return true;
    }
    if (kOne.contains(peek())) {
      ++at_;
      return true;
    }
    return fail(at_, fmt::format("token recognition error at: '{}'", text_.substr(at_, 1)));
  }

  void skip_digits() {
    while (is_digit(peek())) ++at_;
  }

  bool take_number(Token& token) {
    token.kind = TokenKind::kInt;
    if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X')) {
      at_ += 2;
      if (!hex_value(peek())) return fail(at_, "a digit is missing after 0x");
      while (hex_value(peek())) ++at_;
    } else {
      skip_digits();
      take_fraction(token);
    }
    if (token.kind == TokenKind::kInt && (peek() == 'u' || peek() == 'U')) {
      token.kind = TokenKind::kUint;
      ++at_;
    }
    if (is_letter(peek()) || is_digit(peek())) return fail(at_, "a number ends with a letter");
    return true;
  }

  void take_fraction(Token& token) {
    if (peek() == '.' && is_digit(peek(1))) {
      token.kind = TokenKind::kDouble;
      ++at_;
      skip_digits();
    }
    const bool exponent = peek() == 'e' || peek() == 'E';
    const std::size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
    if (exponent && is_digit(peek(1 + sign))) {
      token.kind = TokenKind::kDouble;
      at_ += 1 + sign;
      skip_digits();
    }
  }

  /// How many letters stand before the quote of a string that begins here.
  std::optional<std::size_t> string_prefix() const {
    for (std::size_t letters = 0; letters <= 2; ++letters) {
      const char c = peek(letters);
      if (c == '"' || c == '\'') return letters;
      if (!std::string_view("rRbB").contains(c) || c == '\0') return std::nullopt;
      if (letters == 1 && to_lower(peek(0)) == to_lower(c)) return std::nullopt;
    }
    return std::nullopt;
  }

  bool take_string(Token& token, std::size_t letters) {
    const std::size_t begin = at_;
    bool raw = false;
    token.kind = TokenKind::kString;
    for (; letters > 0; --letters, ++at_) {
      if (to_lower(peek()) == 'r') raw = true;
      if (to_lower(peek()) == 'b') token.kind = TokenKind::kBytes;
    }
    const char quote = peek();
    const bool lines = peek(1) == quote && peek(2) == quote;
    const std::string end(lines ? 3 : 1, quote);
    at_ += end.size();
    while (!text_.substr(at_).starts_with(end)) {
      if (at_ >= text_.size() || (!lines && (peek() == '\n' || peek() == '\r'))) {
        return fail(begin, fmt::format("token recognition error at: '{}'", text_.substr(begin, at_ - begin)));
      }
      if (peek() == '\\' && !raw) {
        if (!take_escape(token)) return false;
      } else {
        token.value += text_[at_++];
      }
    }
    at_ += end.size();
    return true;
  }

  bool take_escape(Token& token) {
    static constexpr std::string_view kNames = "abfnrtv\\?\"'`";
    static constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\?\"'`";
    const std::size_t begin = at_++;
    const char c = peek();
    if (const std::size_t named = kNames.find(c); c != '\0' && named != std::string_view::npos) {
      token.value += kMeanings[named];
      ++at_;
      return true;
    }
    const bool bytes = token.kind == TokenKind::kBytes;
    std::size_t digits = 0;
    unsigned base = 16;
    if (c == 'x' || c == 'X') digits = 2;
    if (c == 'u' && !bytes) digits = 4;
    if (c == 'U' && !bytes) digits = 8;
    if (c >= '0' && c <= '3') {
      digits = 3;
      base = 8;
    } else {
      ++at_;
    }
    std::uint32_t point = 0;
    for (std::size_t i = 0; i < digits; ++i, ++at_) {
      const std::optional<unsigned> digit = hex_value(peek());
      if (!digit || *digit >= base) return fail(begin, "an escape that is none in a string");
      point = point * base + *digit;
    }
    if (digits == 0) return fail(begin, "an escape that is none in a string");
    if (bytes) {
      token.value += static_cast<char>(point);
      return true;
    }
    if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) return fail(begin, "an escape that is no character");
    append_character(token.value, point);
    return true;
  }

  std::string_view text_;
  SyntaxError& why_;
  std::size_t at_ = 0;
};

}  // namespace

bool read_tokens(std::string_view text, std::vector<Token>& tokens, SyntaxError& why) {
  return Lexer(text, why).read(tokens);
}

bool is_reserved(std::string_view word) {
  static constexpr std::array<std::string_view, 17> kWords{
      "as",  "break", "const",   "continue",  "else",   "for", "function", "if",   "import",
      "let", "loop",  "package", "namespace", "return", "var", "void",     "while"};
  return std::ranges::find(kWords, word) != kWords.end();
}

}  // namespace spillway::cel
