#include "policy/cel/lexer.h"

#include "base/ascii.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace spillway::cel {

namespace {

bool begins_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

std::optional<unsigned> hex_value(char c) {
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

bool is_octal(char c) {
  return c >= '0' && c <= '7';
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

struct Sign {
  std::string_view text;
  TokenKind kind;
};

constexpr std::array<Sign, 6> kTwo{{{"==", TokenKind::kEqual},
                                    {"!=", TokenKind::kUnequal},
                                    {"<=", TokenKind::kAtMost},
                                    {">=", TokenKind::kAtLeast},
                                    {"&&", TokenKind::kAnd},
                                    {"||", TokenKind::kOr}}};
constexpr std::array<Sign, 18> kOne{{{"<", TokenKind::kLess},
                                     {">", TokenKind::kGreater},
                                     {"[", TokenKind::kOpenBracket},
                                     {"]", TokenKind::kCloseBracket},
                                     {"{", TokenKind::kOpenBrace},
                                     {"}", TokenKind::kCloseBrace},
                                     {"(", TokenKind::kOpenParenthesis},
                                     {")", TokenKind::kCloseParenthesis},
                                     {".", TokenKind::kDot},
                                     {",", TokenKind::kComma},
                                     {"-", TokenKind::kMinus},
                                     {"!", TokenKind::kNot},
                                     {"?", TokenKind::kQuestion},
                                     {":", TokenKind::kColon},
                                     {"+", TokenKind::kPlus},
                                     {"*", TokenKind::kStar},
                                     {"/", TokenKind::kSlash},
                                     {"%", TokenKind::kPercent}}};
constexpr std::array<Sign, 4> kWords{
    {{"in", TokenKind::kIn}, {"true", TokenKind::kTrue}, {"false", TokenKind::kFalse}, {"null", TokenKind::kNull}}};

template <std::size_t kSize>
const Sign* find_sign(const std::array<Sign, kSize>& signs, std::string_view text) {
  const auto* found = std::ranges::find(signs, text, &Sign::text);
  return found == signs.end() ? nullptr : found;
}

class Lexer {
 public:
  Lexer(std::string_view text, std::vector<SyntaxError>& problems) : text_(text), problems_(problems) {}

  std::vector<Token> read() {
    std::vector<Token> tokens;
    while (true) {
      skip_blanks();
      begin_ = at_;
      if (at_ == text_.size()) break;
      const std::optional<TokenKind> kind = take();
      if (kind) {
        tokens.push_back({.kind = *kind,
                          .position = static_cast<std::uint32_t>(begin_),
                          .text = text_.substr(begin_, at_ - begin_)});
      } else {
        at_ = std::max(at_, begin_ + 1);
      }
    }
    tokens.push_back({.kind = TokenKind::kEnd, .position = static_cast<std::uint32_t>(text_.size()), .text = {}});
    return tokens;
  }

 private:
  char peek(std::size_t at) const { return at < text_.size() ? text_[at] : '\0'; }

  std::size_t next_character(std::size_t at) const {
    if (at >= text_.size()) return text_.size();
    ++at;
    while (at < text_.size() && (static_cast<unsigned char>(text_[at]) & 0xc0U) == 0x80U) ++at;
    return at;
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

  /// Refuses the text because no token that begins here can contain the character at `failed`.
  std::nullopt_t refuse(std::size_t failed) {
    at_ = next_character(failed);
    if (problems_.size() <= kProblemsKept) {
      problems_.push_back({.position = begin_,
                           .message = fmt::format("Syntax error: token recognition error at: '{}'",
                                                  text_.substr(begin_, at_ - begin_))});
    }
    return std::nullopt;
  }

  std::optional<TokenKind> take() {
    const char c = peek(at_);
    if (is_digit(c) || (c == '.' && is_digit(peek(at_ + 1)))) return take_number();
    const std::size_t prefix = prefix_of_string();
    if (const char quote = peek(at_ + prefix); quote == '"' || quote == '\'') {
      std::size_t failed = 0;
      if (const std::optional<TokenKind> kind = take_string(prefix, failed)) return kind;
      if (prefix == 0) return refuse(failed);
    }
    if (begins_word(c)) {
      while (begins_word(peek(at_)) || is_digit(peek(at_))) ++at_;
      const Sign* word = find_sign(kWords, text_.substr(begin_, at_ - begin_));
      return word == nullptr ? TokenKind::kIdentifier : word->kind;
    }
    if (const Sign* sign = find_sign(kTwo, text_.substr(at_, 2))) {
      at_ += 2;
      return sign->kind;
    }
    if (const Sign* sign = find_sign(kOne, text_.substr(at_, 1))) {
      ++at_;
      return sign->kind;
    }
    const bool begins_sign = c == '=' || c == '&' || c == '|';
    return refuse(begins_sign ? at_ + 1 : at_);
  }

  void skip_digits() {
    while (is_digit(peek(at_))) ++at_;
  }

  TokenKind take_number() {
    TokenKind kind = TokenKind::kInt;
    if (peek(at_) == '0' && peek(at_ + 1) == 'x' && hex_value(peek(at_ + 2))) {
      at_ += 2;
      while (hex_value(peek(at_))) ++at_;
    } else {
      skip_digits();
      if (take_fraction()) kind = TokenKind::kDouble;
    }
    if (kind == TokenKind::kInt && (peek(at_) == 'u' || peek(at_) == 'U')) {
      ++at_;
      return TokenKind::kUint;
    }
    return kind;
  }

  bool take_fraction() {
    bool found = false;
    if (peek(at_) == '.' && is_digit(peek(at_ + 1))) {
      found = true;
      ++at_;
      skip_digits();
    }
    const bool exponent = peek(at_) == 'e' || peek(at_) == 'E';
    const std::size_t sign = peek(at_ + 1) == '+' || peek(at_ + 1) == '-' ? 1 : 0;
    if (exponent && is_digit(peek(at_ + 1 + sign))) {
      found = true;
      at_ += 1 + sign;
      skip_digits();
    }
    return found;
  }

  /// The number of letters before the quote of a string here: b, r, or br.
  std::size_t prefix_of_string() const {
    const char first = to_lower(peek(at_));
    if (first == 'b') return to_lower(peek(at_ + 1)) == 'r' ? 2 : 1;
    return first == 'r' ? 1 : 0;
  }

  /// nullopt: the string has no end; `failed`: the position of the error.
  std::optional<TokenKind> take_string(std::size_t prefix, std::size_t& failed) {
    const TokenKind kind = to_lower(peek(at_)) == 'b' ? TokenKind::kBytes : TokenKind::kString;
    const bool raw = prefix > 0 && to_lower(peek(at_ + prefix - 1)) == 'r';
    const char quote = peek(at_ + prefix);
    const std::size_t inside = at_ + prefix + 1;
    if (peek(inside) == quote) {
      // An empty string, unless it is the beginning of three quotes.
      if (peek(inside + 1) == quote && end_of(inside + 2, std::string(3, quote), raw, failed)) return kind;
      at_ = inside + 1;
      return kind;
    }
    return end_of(inside, std::string(1, quote), raw, failed) ? std::optional(kind) : std::nullopt;
  }

  /// Advances behind the end of a string that continues at `at`. False: it has none; `failed`: the position of the
  /// error.
  bool end_of(std::size_t at, const std::string& end, bool raw, std::size_t& failed) {
    const bool lines = end.size() == 3;
    while (at < text_.size()) {
      if (text_.substr(at).starts_with(end)) {
        at_ = at + end.size();
        return true;
      }
      if (!lines && (text_[at] == '\n' || text_[at] == '\r')) break;
      if (text_[at] == '\\' && !raw) {
        if (!skip_escape(at)) break;
      } else {
        ++at;
      }
    }
    failed = at;
    return false;
  }

  /// Skips an escape. False: it is malformed, and `at` is its position.
  bool skip_escape(std::size_t& at) const {
    const char c = peek(++at);
    if (c != '\0' && std::string_view("abfnrtv\\?\"'`").contains(c)) {
      ++at;
      return true;
    }
    if (c >= '0' && c <= '3') {
      for (std::size_t i = 0; i < 3; ++i, ++at) {
        if (!is_octal(peek(at))) return false;
      }
      return true;
    }
    const std::size_t digits = c == 'x' || c == 'X' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0) return false;
    ++at;
    for (std::size_t i = 0; i < digits; ++i, ++at) {
      if (!hex_value(peek(at))) return false;
    }
    return true;
  }

  static constexpr std::size_t kProblemsKept = 100;

  std::string_view text_;
  std::vector<SyntaxError>& problems_;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;
};

/// Decodes the escape at `at` and advances behind it. False: it denotes no character.
bool append_escape(std::string& out, std::string_view text, std::size_t& at, bool bytes) {
  static constexpr std::string_view kNames = "abfnrtv\\?\"'`";
  static constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\?\"'`";
  const char c = text[++at];
  if (const std::size_t named = kNames.find(c); named != std::string_view::npos) {
    out += kMeanings[named];
    ++at;
    return true;
  }
  const bool octal = is_octal(c);
  const std::size_t digits = octal ? 3 : c == 'x' || c == 'X' ? 2 : c == 'u' ? 4 : 8;
  if (!octal) ++at;
  std::uint32_t point = 0;
  for (std::size_t i = 0; i < digits; ++i, ++at) point = point * (octal ? 8 : 16) + hex_value(text[at]).value_or(0);
  if (bytes) {
    if (digits >= 4) return false;
    out += static_cast<char>(point);
    return true;
  }
  if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) return false;
  append_character(out, point);
  return true;
}

}  // namespace

std::vector<Token> read_tokens(std::string_view text, std::vector<SyntaxError>& problems) {
  return Lexer(text, problems).read();
}

std::optional<std::string> unescaped(const Token& literal) {
  std::string_view text = literal.text;
  bool raw = false;
  while (text.front() != '"' && text.front() != '\'') {
    raw = raw || to_lower(text.front()) == 'r';
    text.remove_prefix(1);
  }
  const bool three = text.size() >= 6 && text[1] == text[0] && text[2] == text[0];
  const std::size_t quotes = three ? 3 : 1;
  text = text.substr(quotes, text.size() - 2 * quotes);
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\\' && !raw) {
      if (!append_escape(out, text, at, literal.kind == TokenKind::kBytes)) return std::nullopt;
    } else {
      out += text[at++];
    }
  }
  return out;
}

std::string_view shown_kind(TokenKind kind) {
  static constexpr std::array<std::string_view, 35> kShown{
      "<EOF>",   "'=='",   "'!='",      "'in'",    "'<'",      "'<='",   "'>='",  "'>'",       "'&&'",
      "'||'",    "'['",    "']'",       "'{'",     "'}'",      "'('",    "')'",   "'.'",       "','",
      "'-'",     "'!'",    "'?'",       "':'",     "'+'",      "'*'",    "'/'",   "'%'",       "'true'",
      "'false'", "'null'", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER"};
  return kShown[static_cast<std::size_t>(kind)];
}

bool is_reserved(std::string_view word) {
  static constexpr std::array<std::string_view, 17> kReserved{
      "as",  "break", "const",   "continue",  "else",   "for", "function", "if",   "import",
      "let", "loop",  "package", "namespace", "return", "var", "void",     "while"};
  return std::ranges::find(kReserved, word) != kReserved.end();
}

}  // namespace spillway::cel
