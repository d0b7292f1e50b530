// The string form of label selectors: a scanner and a recursive-descent parser with upstream's messages.
#include "api/object/selector.h"
#include "api/text/names.h"
#include "base/json_string.h"

#include <algorithm>
#include <array>
#include <set>

namespace spillway::api {
namespace {

using Op = LabelRequirement::Op;

enum class Symbol {
  kEnd,
  kIdentifier,
  kIn,
  kNotIn,
  kComma,
  kOpen,
  kClose,
  kNot,
  kEquals,
  kDoubleEquals,
  kNotEquals,
  kGreater,
  kLess,
};

struct Token {
  Symbol symbol = Symbol::kEnd;
  std::string_view text;
};

/// The place of a token, which decides whether "in" and "notin" are operators or ordinary words.
enum class Place { kWord, kOperator };

class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) { step(); }

  Token peek() const { return next_; }

  Token take(Place place = Place::kWord) {
    Token token = next_;
    if (place == Place::kOperator && token.symbol == Symbol::kIdentifier) {
      if (token.text == "in") token.symbol = Symbol::kIn;
      if (token.text == "notin") token.symbol = Symbol::kNotIn;
    }
    step();
    return token;
  }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

  static bool is_special(char c) { return std::string_view("=!(),><").find(c) != std::string_view::npos; }

  void step() {
    while (!rest_.empty() && is_blank(rest_.front())) rest_.remove_prefix(1);
    next_ = {};
    if (rest_.empty()) return;
    static constexpr std::array<std::pair<std::string_view, Symbol>, 9> kSymbols = {{
        {"==", Symbol::kDoubleEquals},
        {"!=", Symbol::kNotEquals},
        {"=", Symbol::kEquals},
        {"!", Symbol::kNot},
        {"(", Symbol::kOpen},
        {")", Symbol::kClose},
        {",", Symbol::kComma},
        {">", Symbol::kGreater},
        {"<", Symbol::kLess},
    }};
    for (const auto& [text, symbol] : kSymbols) {
      if (!rest_.starts_with(text)) continue;
      next_ = {symbol, rest_.substr(0, text.size())};
      rest_.remove_prefix(text.size());
      return;
    }
    std::size_t end = 0;
    while (end < rest_.size() && !is_blank(rest_[end]) && !is_special(rest_[end])) ++end;
    next_ = {Symbol::kIdentifier, rest_.substr(0, end)};
    rest_.remove_prefix(end);
  }

  std::string_view rest_;
  Token next_;
};

Error unexpected(const Token& found, std::string_view expected) {
  return make_error(ErrorCode::kBadRequest, "found '{}', expected: {}", found.text, expected);
}

using Values = std::set<std::string, std::less<>>;

/// The rest of "(a,b)" behind its parenthesis, up to the other one. An empty place is the empty value; as in upstream's
/// parser, two commas are one step, so that "(,,)" ends where a value is expected.
Result<Values> parse_values(Scanner& in) {
  Values values;
  for (;;) {
    const Token token = in.take();
    if (token.symbol == Symbol::kIdentifier) {
      values.emplace(token.text);
      const Token next = in.peek();
      if (next.symbol == Symbol::kClose) return values;
      if (next.symbol != Symbol::kComma) return unexpected(next, "',' or ')'");
    } else if (token.symbol == Symbol::kComma) {
      if (values.empty()) values.emplace();
      if (in.peek().symbol == Symbol::kClose || in.peek().symbol == Symbol::kComma) values.emplace();
      if (in.peek().symbol == Symbol::kClose) return values;
      if (in.peek().symbol == Symbol::kComma) in.take();
    } else {
      return unexpected(token, "',', or identifier");
    }
  }
}

Result<Values> parse_value_list(Scanner& in) {
  if (const Token open = in.take(); open.symbol != Symbol::kOpen) {
    return make_error(ErrorCode::kBadRequest, "found '{}' expected: '('", open.text);
  }
  const Token first = in.peek();
  Values values;
  if (first.symbol == Symbol::kIdentifier || first.symbol == Symbol::kComma) {
    SPILLWAY_TRY(parsed, parse_values(in));
    values = std::move(parsed);
  } else if (first.symbol == Symbol::kClose) {
    values.emplace();
  } else {
    return unexpected(first, "',', ')' or identifier");
  }
  in.take();
  return values;
}

Result<Values> parse_single_value(Scanner& in) {
  if (const Symbol next = in.peek().symbol; next == Symbol::kEnd || next == Symbol::kComma) return Values{""};
  const Token token = in.take();
  if (token.symbol != Symbol::kIdentifier) return unexpected(token, "identifier");
  return Values{std::string(token.text)};
}

Result<Op> parse_operator(const Token& token) {
  static constexpr std::array<std::pair<Symbol, Op>, 7> kOperators = {{{Symbol::kIn, Op::kIn},
                                                                       {Symbol::kNotIn, Op::kNotIn},
                                                                       {Symbol::kEquals, Op::kEquals},
                                                                       {Symbol::kDoubleEquals, Op::kDoubleEquals},
                                                                       {Symbol::kNotEquals, Op::kNotEquals},
                                                                       {Symbol::kGreater, Op::kGt},
                                                                       {Symbol::kLess, Op::kLt}}};
  for (const auto& [symbol, op] : kOperators) {
    if (symbol == token.symbol) return op;
  }
  return unexpected(token, "in, notin, =, ==, !=, gt, lt");
}

Result<LabelRequirement> parse_requirement(Scanner& in) {
  LabelRequirement requirement;
  const bool negated = in.peek().symbol == Symbol::kNot;
  if (negated) in.take();
  const Token key = in.take();
  if (key.symbol != Symbol::kIdentifier) return unexpected(key, "identifier");
  requirement.key = std::string(key.text);
  if (const auto problems = qualified_name_errors(key.text); !problems.empty()) {
    std::string quoted;
    append_json_string(key.text, quoted);
    return make_error(ErrorCode::kBadRequest, "<nil>: Invalid value: {}: {}", quoted, join_problems(problems));
  }
  const Symbol next = in.peek().symbol;
  if (negated || next == Symbol::kEnd || next == Symbol::kComma) {
    requirement.op = negated ? Op::kDoesNotExist : Op::kExists;
    return requirement;
  }
  SPILLWAY_TRY(op, parse_operator(in.take(Place::kOperator)));
  requirement.op = op;
  const bool takes_list = op == Op::kIn || op == Op::kNotIn;
  SPILLWAY_TRY(values, takes_list ? parse_value_list(in) : parse_single_value(in));
  requirement.values.assign(values.begin(), values.end());
  if (const auto errors = requirement_errors(requirement, ""); !errors.empty()) {
    return make_error(ErrorCode::kBadRequest, "{}", join_errors(errors));
  }
  return requirement;
}

}  // namespace

Result<LabelSelector> parse_label_selector(std::string_view text) {
  LabelSelector selector;
  Scanner in(text);
  const auto starts_requirement = [&in] {
    return in.peek().symbol == Symbol::kIdentifier || in.peek().symbol == Symbol::kNot;
  };
  if (in.peek().symbol == Symbol::kEnd) return selector;
  if (!starts_requirement()) return unexpected(in.peek(), "!, identifier, or 'end of string'");
  for (;;) {
    auto requirement = parse_requirement(in);
    if (!requirement) {
      return make_error(ErrorCode::kBadRequest, "unable to parse requirement: {}", requirement.error().message);
    }
    selector.requirements.push_back(*std::move(requirement));
    const Token after = in.take();
    if (after.symbol == Symbol::kEnd) break;
    if (after.symbol != Symbol::kComma) return unexpected(after, "',' or 'end of string'");
    if (!starts_requirement()) return unexpected(in.peek(), "identifier after ','");
  }
  std::ranges::stable_sort(selector.requirements, {}, &LabelRequirement::key);
  return selector;
}

}  // namespace spillway::api
