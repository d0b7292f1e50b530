#include "policy/cel/parser.h"

#include "policy/cel/macros.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace spillway::cel {

namespace {

/// A set of kinds of tokens.
using Kinds = std::uint64_t;

constexpr Kinds one(TokenKind kind) {
  return Kinds{1} << static_cast<unsigned>(kind);
}

template <typename... Rest>
constexpr Kinds any_of(Rest... kinds) {
  return (one(kinds) | ...);
}

constexpr Kinds kPrimaryKinds =
    any_of(TokenKind::kOpenBracket, TokenKind::kOpenBrace, TokenKind::kOpenParenthesis, TokenKind::kDot,
           TokenKind::kMinus, TokenKind::kTrue, TokenKind::kFalse, TokenKind::kNull, TokenKind::kDouble,
           TokenKind::kInt, TokenKind::kUint, TokenKind::kString, TokenKind::kBytes, TokenKind::kIdentifier);
constexpr Kinds kExpressionKinds = kPrimaryKinds | one(TokenKind::kNot);
constexpr Kinds kRelationKinds = any_of(TokenKind::kEqual, TokenKind::kUnequal, TokenKind::kIn, TokenKind::kLess,
                                        TokenKind::kAtMost, TokenKind::kAtLeast, TokenKind::kGreater);
constexpr Kinds kSumKinds = any_of(TokenKind::kPlus, TokenKind::kMinus);
constexpr Kinds kProductKinds = any_of(TokenKind::kStar, TokenKind::kSlash, TokenKind::kPercent);

constexpr bool holds(Kinds kinds, TokenKind kind) {
  return (kinds & one(kind)) != 0;
}

/// "':'", or "{']', ','}".
std::string shown(Kinds kinds) {
  std::string text;
  std::size_t count = 0;
  for (unsigned i = 0; i <= static_cast<unsigned>(TokenKind::kIdentifier); ++i) {
    const auto kind = static_cast<TokenKind>(i);
    if (!holds(kinds, kind)) continue;
    if (count++ > 0) text += ", ";
    text += shown_kind(kind);
  }
  return count == 1 ? text : "{" + text + "}";
}

struct Operator {
  TokenKind kind;
  std::string_view function;
};

std::string_view operator_name(TokenKind kind) {
  static constexpr std::array<Operator, 12> kOperators{{{TokenKind::kEqual, "_==_"},
                                                        {TokenKind::kUnequal, "_!=_"},
                                                        {TokenKind::kIn, "@in"},
                                                        {TokenKind::kLess, "_<_"},
                                                        {TokenKind::kAtMost, "_<=_"},
                                                        {TokenKind::kAtLeast, "_>=_"},
                                                        {TokenKind::kGreater, "_>_"},
                                                        {TokenKind::kPlus, "_+_"},
                                                        {TokenKind::kMinus, "_-_"},
                                                        {TokenKind::kStar, "_*_"},
                                                        {TokenKind::kSlash, "_/_"},
                                                        {TokenKind::kPercent, "_%_"}}};
  return std::ranges::find(kOperators, kind, &Operator::kind)->function;
}

/// A tree and how deep it is.
struct Tree {
  Node node = {.kind = NodeKind::kMissing};
  std::size_t depth = 1;
};

/// The tokens that may follow the place from which a rule was entered.
struct Follow {
  Kinds kinds = 0;
  bool ends = false;  // true: the enclosing rule may end here
};

/// One function per rule of the grammar. A rule that fails reports its error, skips tokens that cannot follow it, and
/// returns its partial tree, so that the rule around it continues; no further error is reported until a token fits
/// again.
class Parser {
 public:
  Parser(std::vector<Token> tokens, Macros macros, std::vector<SyntaxError>& problems)
      : tokens_(std::move(tokens)), macros_(macros), problems_(problems) {}

  Node read() {
    Tree tree;
    enter({.kinds = one(TokenKind::kEnd)}, [&] { expression(tree); });
    if (!given_up_) match(TokenKind::kEnd, 0);
    return std::move(tree.node);
  }

 private:
  static constexpr std::size_t kProblemsKept = 100;
  static constexpr std::size_t kRecoveriesMax = 30;

  const Token& peek(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }

  bool is(TokenKind kind, std::size_t ahead = 0) const { return peek(ahead).kind == kind; }

  void consume() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }

  void problem(std::size_t position, std::string message) {
    if (problems_.size() <= kProblemsKept) problems_.push_back({.position = position, .message = std::move(message)});
  }

  void give_up(std::string message) {
    if (given_up_) return;
    given_up_ = true;
    problems_.push_back({.position = 0, .message = std::move(message), .nowhere = true});
  }

  void syntax_problem(std::size_t position, std::string_view message) {
    if (recovering_) return;
    recovering_ = true;
    problem(position, fmt::format("Syntax error: {}", message));
  }

  static std::string shown(const Token& token) {
    return token.kind == TokenKind::kEnd ? "'<EOF>'" : fmt::format("'{}'", token.text);
  }

  void fits() {
    recovering_ = false;
    failed_at_.reset();
  }

  /// Skips one unexpected token, if the one behind it is expected.
  bool skip_one(Kinds wanted) {
    if (!holds(wanted, peek(1).kind) || is(TokenKind::kEnd)) return false;
    syntax_problem(peek().position, fmt::format("extraneous input {} expecting {}", shown(peek()), cel::shown(wanted)));
    consume();
    fits();
    return true;
  }

  /// Called before a choice. False: the rule fails.
  bool sync(Kinds wanted) {
    if (recovering_ || holds(wanted, peek().kind) || skip_one(wanted)) return true;
    syntax_problem(peek().position, fmt::format("mismatched input {} expecting {}", shown(peek()), cel::shown(wanted)));
    recover();
    return false;
  }

  /// `behind`: the tokens that may follow that token within the rule. False: the rule fails.
  bool match(TokenKind kind, Kinds behind, bool ends = true) {
    if (is(kind)) {
      fits();
      consume();
      return true;
    }
    if (skip_one(one(kind))) {
      consume();
      return true;
    }
    if (holds(behind | (ends ? following() : 0), peek().kind)) {
      syntax_problem(peek().position, fmt::format("missing {} at {}", shown_kind(kind), shown(peek())));
      return true;
    }
    syntax_problem(peek().position, fmt::format("mismatched input {} expecting {}", shown(peek()), shown_kind(kind)));
    recover();
    return false;
  }

  void no_alternative(std::size_t begin, const Token& at) {
    std::string text;
    for (std::size_t i = begin; i < tokens_.size() && tokens_[i].position <= at.position; ++i) text += tokens_[i].text;
    syntax_problem(at.position, fmt::format("no viable alternative at input '{}'", text));
    recover();
  }

  /// The tokens that may follow the rule, given the rules around it.
  Kinds following() const {
    Kinds kinds = 0;
    for (std::size_t i = follow_.size(); i > 0; --i) {
      kinds |= follow_[i - 1].kinds;
      if (!follow_[i - 1].ends) break;
    }
    return kinds;
  }

  void recover() {
    if (++recoveries_ > kRecoveriesMax) {
      return give_up(fmt::format("error recovery attempt limit exceeded: {}", kRecoveriesMax));
    }
    if (failed_at_ == at_ && failed_depth_ == follow_.size()) consume();
    failed_at_ = at_;
    failed_depth_ = follow_.size();
    Kinds kinds = one(TokenKind::kEnd);
    for (const Follow& follow : follow_) kinds |= follow.kinds;
    while (!holds(kinds, peek().kind)) consume();
  }

  template <typename Rule>
  void enter(Follow follow, Rule rule) {
    if (given_up_) return;
    follow_.push_back(follow);
    rule();
    follow_.pop_back();
  }

  /// Puts `children` below a new node, which takes the place of `into`.
  void join(Tree& into, Node node, std::vector<Tree> children) {
    std::size_t depth = 0;
    for (Tree& child : children) {
      depth = std::max(depth, child.depth);
      node.children.push_back(std::move(child.node));
    }
    if (depth + 1 > kDepthMax) {
      give_up_depth();
      into = {};
      return;
    }
    into = {.node = std::move(node), .depth = depth + 1};
  }

  /// Reports that the text nests too deeply; parsing continues to the end of the text.
  void give_up_depth() {
    if (too_deep_ || given_up_) return;
    too_deep_ = true;
    problems_.push_back({.position = 0, .message = "max recursion depth exceeded", .nowhere = true});
  }

  static Node call(std::string_view function, std::uint32_t position) {
    return {.kind = NodeKind::kCall, .position = position, .name = std::string(function)};
  }

  void expression(Tree& out) {
    if (nesting_ >= kDepthMax) return give_up(fmt::format("expression recursion limit exceeded: {}", kDepthMax));
    ++nesting_;
    conditional(out);
    --nesting_;
  }

  void conditional(Tree& out) {
    enter({.kinds = one(TokenKind::kQuestion), .ends = true}, [&] { chain(out, TokenKind::kOr); });
    if (given_up_ || !is(TokenKind::kQuestion)) return;
    const std::uint32_t position = peek().position;
    match(TokenKind::kQuestion, 0);
    std::vector<Tree> parts(3);
    parts[0] = std::move(out);
    out = {};
    enter({.kinds = one(TokenKind::kColon)}, [&] { chain(parts[1], TokenKind::kOr); });
    if (given_up_ || !match(TokenKind::kColon, kExpressionKinds, false)) return;
    enter({.ends = true}, [&] { expression(parts[2]); });
    join(out, call("_?_:_", position), std::move(parts));
  }

  void chain(Tree& out, TokenKind sign) {
    const bool outer = sign == TokenKind::kOr;
    std::vector<Tree> parts;
    std::uint32_t position = 0;
    while (!given_up_) {
      enter({.kinds = one(sign), .ends = true}, [&] {
        Tree& part = parts.emplace_back();
        outer ? chain(part, TokenKind::kAnd) : relation(part, 0);
      });
      if (!is(sign)) break;
      position = peek().position;
      match(sign, 0);
    }
    if (parts.size() > 1) return join(out, call(outer ? "_||_" : "_&&_", position), std::move(parts));
    if (!parts.empty()) out = std::move(parts.front());
  }

  void relation(Tree& out, int level) {
    enter({.kinds = kRelationKinds, .ends = true}, [&] { sum(out, 0); });
    while (!given_up_ && level == 0 && holds(kRelationKinds, peek().kind)) {
      binary(out, kRelationKinds, [&](Tree& right) { relation(right, 1); });
    }
  }

  void sum(Tree& out, int level) {
    enter({.kinds = kProductKinds | kSumKinds, .ends = true}, [&] { unary(out); });
    while (!given_up_) {
      const bool product = level < 2 && holds(kProductKinds, peek().kind);
      const bool added = level < 1 && holds(kSumKinds, peek().kind);
      if (!product && !added) return;
      binary(out, kProductKinds | kSumKinds, [&](Tree& right) { sum(right, product ? 2 : 1); });
    }
  }

  template <typename Rule>
  void binary(Tree& out, Kinds follow, Rule rule) {
    const Token& sign = peek();
    match(sign.kind, 0);
    std::vector<Tree> sides(2);
    sides[0] = std::move(out);
    out = {};
    enter({.kinds = follow, .ends = true}, [&] { rule(sides[1]); });
    join(out, call(operator_name(sign.kind), sign.position), std::move(sides));
  }

  void unary(Tree& out) {
    if (!sync(kExpressionKinds)) return;
    const bool number = is(TokenKind::kInt, 1) || is(TokenKind::kDouble, 1);
    const TokenKind sign = peek().kind;
    if (sign != TokenKind::kNot && (sign != TokenKind::kMinus || number)) {
      return enter({.ends = true}, [&] { member(out); });
    }
    const std::uint32_t position = peek().position;
    std::size_t count = 0;
    do {
      match(sign, 0);
      ++count;
      const Kinds wanted = kPrimaryKinds | one(sign);
      if (!recovering_ && !holds(wanted, peek().kind)) {
        syntax_problem(peek().position,
                       fmt::format("extraneous input {} expecting {}", shown(peek()), cel::shown(wanted)));
        while (!holds(wanted | following() | one(TokenKind::kEnd), peek().kind)) consume();
      }
    } while (is(sign));
    enter({.ends = true}, [&] { member(out); });
    if (count % 2 == 0) return;
    std::vector<Tree> operand;
    operand.push_back(std::move(out));
    out = {};
    join(out, call(sign == TokenKind::kNot ? "!_" : "-_", position), std::move(operand));
  }

  void member(Tree& out) {
    enter({.kinds = any_of(TokenKind::kDot, TokenKind::kOpenBracket), .ends = true}, [&] { primary(out); });
    while (!given_up_) {
      if (is(TokenKind::kOpenBracket)) {
        if (!index(out)) return;
      } else if (is(TokenKind::kDot)) {
        if (!is(TokenKind::kQuestion, 1) && !is(TokenKind::kIdentifier, 1)) return no_alternative(at_, peek(1));
        if (!selection(out)) return;
      } else {
        return;
      }
    }
  }

  bool index(Tree& out) {
    const std::uint32_t position = peek().position;
    match(TokenKind::kOpenBracket, 0);
    if (!sync(kExpressionKinds | one(TokenKind::kQuestion))) return false;
    const bool may_be_absent = is(TokenKind::kQuestion);
    if (may_be_absent) match(TokenKind::kQuestion, 0);
    std::vector<Tree> sides(2);
    sides[0] = std::move(out);
    out = {};
    enter({.kinds = one(TokenKind::kCloseBracket)}, [&] { expression(sides[1]); });
    const bool good = !given_up_ && match(TokenKind::kCloseBracket, kBehindMember);
    join(out, call(may_be_absent ? "_[?_]" : "_[_]", position), std::move(sides));
    return good;
  }

  bool selection(Tree& out) {
    const std::uint32_t position = peek().position;
    match(TokenKind::kDot, 0);
    const bool may_be_absent = is(TokenKind::kQuestion);
    if (may_be_absent) match(TokenKind::kQuestion, 0);
    const Token& name = peek();
    if (!match(TokenKind::kIdentifier, kBehindMember)) return false;
    std::vector<Tree> parts;
    parts.push_back(std::move(out));
    out = {};
    if (may_be_absent || !is(TokenKind::kOpenParenthesis)) {
      join(out,
           {.kind = may_be_absent ? NodeKind::kOptSelect : NodeKind::kSelect,
            .position = position,
            .name = std::string(name.text)},
           std::move(parts));
      return true;
    }
    const std::uint32_t open = peek().position;
    const bool good = arguments(parts);
    Node made = call(name.text, open);
    made.member = true;
    finish_call(out, std::move(made), std::move(parts));
    return good;
  }

  /// "(" up to ")".
  bool arguments(std::vector<Tree>& into) {
    match(TokenKind::kOpenParenthesis, 0);
    if (!sync(kExpressionKinds | one(TokenKind::kCloseParenthesis))) return false;
    if (!is(TokenKind::kCloseParenthesis)) {
      enter({.kinds = one(TokenKind::kCloseParenthesis)}, [&] {
        do {
          if (!into.empty() && is(TokenKind::kComma)) match(TokenKind::kComma, 0);
          enter({.kinds = one(TokenKind::kComma), .ends = true}, [&] { expression(into.emplace_back()); });
        } while (!given_up_ && is(TokenKind::kComma));
      });
    }
    return !given_up_ && match(TokenKind::kCloseParenthesis, kBehindMember);
  }

  /// Adds a call, or the expansion of the macro of that name.
  void finish_call(Tree& out, Node made, std::vector<Tree> parts) {
    std::vector<SyntaxError> wrong;
    join(out, std::move(made), std::move(parts));
    if (out.node.kind == NodeKind::kCall) expand_macro(out.node, macros_, wrong);
    for (SyntaxError& error : wrong) problem(error.position, std::move(error.message));
  }

  void primary(Tree& out) {
    if (!sync(kPrimaryKinds)) return;
    if (is(TokenKind::kOpenBracket)) return list(out);
    if (is(TokenKind::kOpenBrace)) return map(out);
    if (is(TokenKind::kDot) || is(TokenKind::kIdentifier)) return identifier(out);
    if (!is(TokenKind::kOpenParenthesis)) return literal(out);
    match(TokenKind::kOpenParenthesis, 0);
    enter({.kinds = one(TokenKind::kCloseParenthesis)}, [&] { expression(out); });
    if (!given_up_) match(TokenKind::kCloseParenthesis, kBehindMember);
  }

  void list(Tree& out) {
    const std::uint32_t position = peek().position;
    constexpr Kinds kElement = kExpressionKinds | one(TokenKind::kQuestion);
    constexpr Kinds kBehind = any_of(TokenKind::kComma, TokenKind::kCloseBracket);
    match(TokenKind::kOpenBracket, 0);
    std::vector<Tree> elements;
    bool good = sync(kElement | kBehind);
    if (good && holds(kElement, peek().kind)) {
      enter({.kinds = kBehind}, [&] {
        do {
          if (!elements.empty()) match(TokenKind::kComma, 0);
          enter({.kinds = one(TokenKind::kComma), .ends = true}, [&] { entry(elements.emplace_back(), false); });
        } while (!given_up_ && is(TokenKind::kComma) && holds(kElement, peek(1).kind));
      });
    }
    good = good && !given_up_ && sync(kBehind);
    if (good && is(TokenKind::kComma)) match(TokenKind::kComma, 0);
    if (good) match(TokenKind::kCloseBracket, kBehindMember);
    join(out, {.kind = NodeKind::kList, .position = position}, std::move(elements));
  }

  /// Parses an entry that may begin with '?': it is left out if its value is absent. `is_key`: the mark belongs to the
  /// value behind it.
  bool entry(Tree& out, bool is_key) {
    if (!sync(kExpressionKinds | one(TokenKind::kQuestion))) return false;
    const bool may_be_absent = is(TokenKind::kQuestion);
    if (may_be_absent) match(TokenKind::kQuestion, 0);
    enter({.ends = true}, [&] { expression(out); });
    if (may_be_absent && !is_key) make_optional(out);
    return may_be_absent;
  }

  void make_optional(Tree& out) {
    const std::uint32_t position = out.node.position;
    std::vector<Tree> value;
    value.push_back(std::move(out));
    value.front().depth -= value.front().depth > 1 ? 1 : 0;
    out = {};
    join(out, {.kind = NodeKind::kOptEntry, .position = position}, std::move(value));
  }

  void map(Tree& out) {
    const std::uint32_t position = peek().position;
    constexpr Kinds kKey = kExpressionKinds | one(TokenKind::kQuestion);
    constexpr Kinds kBehind = any_of(TokenKind::kComma, TokenKind::kCloseBrace);
    match(TokenKind::kOpenBrace, 0);
    std::vector<Tree> entries;
    bool good = sync(kKey | kBehind);
    if (good && holds(kKey, peek().kind)) {
      enter({.kinds = kBehind}, [&] { map_entries(entries, kKey); });
    }
    good = good && !given_up_ && sync(kBehind);
    if (good && is(TokenKind::kComma)) match(TokenKind::kComma, 0);
    if (good) match(TokenKind::kCloseBrace, kBehindMember);
    if (entries.size() % 2 != 0) entries.emplace_back();
    join(out, {.kind = NodeKind::kMap, .position = position}, std::move(entries));
  }

  void map_entries(std::vector<Tree>& entries, Kinds key) {
    do {
      if (!entries.empty()) match(TokenKind::kComma, 0);
      bool may_be_absent = false;
      enter({.kinds = one(TokenKind::kColon)}, [&] { may_be_absent = entry(entries.emplace_back(), true); });
      if (given_up_ || !match(TokenKind::kColon, kExpressionKinds, false)) return;
      enter({.kinds = one(TokenKind::kComma), .ends = true}, [&] { expression(entries.emplace_back()); });
      if (may_be_absent && !given_up_) make_optional(entries.back());
    } while (!given_up_ && is(TokenKind::kComma) && holds(key, peek(1).kind));
  }

  /// The number of tokens of name.name… here; 0: neither a message nor a text that fails as one begins here.
  std::size_t message_name() const {
    std::size_t ahead = is(TokenKind::kDot) ? 1 : 0;
    if (!is(TokenKind::kIdentifier, ahead)) return 0;
    while (is(TokenKind::kDot, ahead + 1) && is(TokenKind::kIdentifier, ahead + 2)) ahead += 2;
    const bool literal =
        is(TokenKind::kTrue, ahead + 2) || is(TokenKind::kFalse, ahead + 2) || is(TokenKind::kNull, ahead + 2);
    const bool failing = is(TokenKind::kDot, ahead + 1) && literal;
    return is(TokenKind::kOpenBrace, ahead + 1) || failing ? ahead + 1 : 0;
  }

  void identifier(Tree& out) {
    if (const std::size_t length = message_name(); length > 0) return message(out, length);
    const std::size_t begin = at_;
    const bool dotted = is(TokenKind::kDot);  // a leading dot means the outermost container, which is the only one
    if (dotted && !is(TokenKind::kIdentifier, 1)) return no_alternative(begin, peek(1));
    if (dotted) match(TokenKind::kDot, 0);
    const Token& token = peek();
    match(TokenKind::kIdentifier, 0);
    const bool is_call = is(TokenKind::kOpenParenthesis);
    const std::uint32_t open = peek().position;
    std::vector<Tree> parts;
    if (is_call) arguments(parts);
    if (is_reserved(token.text)) {
      out = {};
      return problem(token.position, fmt::format("reserved identifier: {}", token.text));
    }
    if (is_call) return finish_call(out, call(token.text, open), std::move(parts));
    out = {.node = {.kind = NodeKind::kIdentifier, .position = token.position, .name = std::string(token.text)}};
  }

  /// Parses the construction of a message. Messages do not exist, so its name is reported as undeclared.
  void message(Tree& out, std::size_t length) {
    std::string name;
    for (std::size_t i = 0; i < length; ++i, consume()) name += peek().text;
    fits();
    if (is(TokenKind::kDot)) {
      match(TokenKind::kDot, 0);
      match(TokenKind::kIdentifier, any_of(TokenKind::kDot, TokenKind::kOpenBrace), false);
      return;
    }
    out = {.node = call(name, peek().position)};
    match(TokenKind::kOpenBrace, 0);
    constexpr Kinds kBehind = any_of(TokenKind::kComma, TokenKind::kCloseBrace);
    if (!sync(any_of(TokenKind::kIdentifier, TokenKind::kQuestion) | kBehind)) return;
    if (!holds(kBehind, peek().kind)) enter({.kinds = kBehind}, [&] { message_fields(); });
    if (given_up_ || !sync(kBehind)) return;
    if (is(TokenKind::kComma)) match(TokenKind::kComma, 0);
    match(TokenKind::kCloseBrace, kBehindMember);
  }

  void message_fields() {
    bool first = true;
    do {
      if (!first) match(TokenKind::kComma, 0);
      first = false;
      if (is(TokenKind::kQuestion)) match(TokenKind::kQuestion, 0);
      if (!match(TokenKind::kIdentifier, one(TokenKind::kColon), false)) return;
      if (!match(TokenKind::kColon, kExpressionKinds, false)) return;
      Tree value;
      enter({.kinds = one(TokenKind::kComma), .ends = true}, [&] { expression(value); });
    } while (!given_up_ && is(TokenKind::kComma) &&
             holds(any_of(TokenKind::kIdentifier, TokenKind::kQuestion), peek(1).kind));
  }

  void literal(Tree& out) {
    const std::size_t begin = at_;
    const std::uint32_t position = peek().position;
    const bool negative = is(TokenKind::kMinus);
    if (negative && !is(TokenKind::kInt, 1) && !is(TokenKind::kDouble, 1)) return no_alternative(begin, peek(1));
    if (negative) match(TokenKind::kMinus, 0);
    const Token& token = peek();
    out = {.node = {.kind = NodeKind::kConstant, .position = position}};
    Value& value = out.node.constant;
    if (is(TokenKind::kInt)) {
      if (!integer(token, negative, value)) problem(position, "invalid int literal");
    } else if (is(TokenKind::kUint)) {
      if (!unsigned_integer(token, value)) problem(position, "invalid uint literal");
    } else if (is(TokenKind::kDouble)) {
      if (!fraction(token, negative, value)) problem(position, "invalid double literal");
    } else if (is(TokenKind::kString) || is(TokenKind::kBytes)) {
      std::optional<std::string> made = unescaped(token);
      if (!made) problem(position, "unable to unescape string");
      value = is(TokenKind::kString) ? Value::text(std::move(made).value_or(""))
                                     : Value::bytes(std::move(made).value_or(""));
    } else if (is(TokenKind::kTrue) || is(TokenKind::kFalse)) {
      value = Value(is(TokenKind::kTrue));
    } else if (!is(TokenKind::kNull)) {
      out = {};
      return no_alternative(begin, token);
    }
    match(token.kind, 0);
  }

  static bool magnitude(std::string_view text, std::uint64_t& value) {
    const bool hex = text.starts_with("0x");
    if (hex) text.remove_prefix(2);
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
    return read.ec == std::errc() && read.ptr == text.data() + text.size();
  }

  static bool integer(const Token& token, bool negative, Value& value) {
    constexpr std::uint64_t kLimit = std::uint64_t{1} << 63U;
    std::uint64_t size = 0;
    if (!magnitude(token.text, size) || size > (negative ? kLimit : kLimit - 1)) return false;
    value = Value(static_cast<std::int64_t>(negative ? std::uint64_t{0} - size : size));
    return true;
  }

  static bool unsigned_integer(const Token& token, Value& value) {
    std::uint64_t size = 0;
    if (!magnitude(token.text.substr(0, token.text.size() - 1), size)) return false;
    value = Value(size);
    return true;
  }

  static bool fraction(const Token& token, bool negative, Value& value) {
    double size = 0;
    const auto read = std::from_chars(token.text.data(), token.text.data() + token.text.size(), size);
    if (read.ec != std::errc() || !std::isfinite(size)) return false;
    value = Value(negative ? -size : size);
    return true;
  }

  static constexpr Kinds kBehindMember = any_of(TokenKind::kDot, TokenKind::kOpenBracket);

  std::vector<Token> tokens_;
  Macros macros_;
  std::vector<SyntaxError>& problems_;
  std::size_t at_ = 0;
  std::size_t nesting_ = 0;
  std::vector<Follow> follow_;
  bool recovering_ = false;
  bool given_up_ = false;
  bool too_deep_ = false;
  std::size_t recoveries_ = 0;
  std::optional<std::size_t> failed_at_;
  std::size_t failed_depth_ = 0;
};

}  // namespace

Node parse(std::string_view text, Macros macros, std::vector<SyntaxError>& problems) {
  const auto characters = static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
  if (characters > kExpressionCharactersMax) {
    problems.push_back({.position = 0,
                        .message = fmt::format("expression code point size exceeds limit: size: {}, limit {}",
                                               characters, kExpressionCharactersMax),
                        .nowhere = true});
    return {.kind = NodeKind::kMissing};
  }
  std::vector<Token> tokens = read_tokens(text, problems);
  return Parser(std::move(tokens), macros, problems).read();
}

}  // namespace spillway::cel
