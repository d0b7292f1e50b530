#include "policy/cel/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace spillway::cel {

namespace {

struct Macro {
  std::string_view name;
  NodeKind kind;
  std::size_t arguments;
};

constexpr std::array<Macro, 9> kMacros{{{"all", NodeKind::kAll, 2},
                                        {"exists", NodeKind::kExists, 2},
                                        {"exists_one", NodeKind::kExistsOne, 2},
                                        {"existsOne", NodeKind::kExistsOne, 2},
                                        {"map", NodeKind::kMapMacro, 2},
                                        {"map", NodeKind::kMapMacro, 3},
                                        {"filter", NodeKind::kFilter, 2},
                                        {"optMap", NodeKind::kOptMap, 2},
                                        {"optFlatMap", NodeKind::kOptFlatMap, 2}}};

struct Operator {
  std::string_view sign;
  std::string_view function;
};

/// The levels of operators with two sides, those that bind least first.
constexpr std::array<Operator, 7> kRelationOperators{
    {{"==", "_==_"}, {"!=", "_!=_"}, {"<", "_<_"}, {"<=", "_<=_"}, {">", "_>_"}, {">=", "_>=_"}, {"in", "@in"}}};
constexpr std::array<Operator, 2> kSums{{{"+", "_+_"}, {"-", "_-_"}}};
constexpr std::array<Operator, 3> kProducts{{{"*", "_*_"}, {"/", "_/_"}, {"%", "_%_"}}};
constexpr std::array<std::span<const Operator>, 3> kLevels{kRelationOperators, kSums, kProducts};

/// A tree and how deep it is.
struct Tree {
  Node node;
  std::size_t depth = 1;
};

class Parser {
 public:
  Parser(std::vector<Token> tokens, SyntaxError& why) : tokens_(std::move(tokens)), why_(why) {}

  std::optional<Node> read() {
    Tree tree;
    if (!expression(tree)) return std::nullopt;
    if (peek().kind != TokenKind::kEnd) {
      unexpected();
      return std::nullopt;
    }
    return std::move(tree.node);
  }

 private:
  const Token& peek(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }

  bool is(std::string_view text, std::size_t ahead = 0) const {
    const Token& token = peek(ahead);
    return (token.kind == TokenKind::kSign || token.kind == TokenKind::kIdentifier) && token.text == text;
  }

  bool accept(std::string_view text) {
    if (!is(text)) return false;
    ++at_;
    return true;
  }

  bool expect(std::string_view text) { return accept(text) || unexpected(); }

  bool fail(std::size_t position, std::string message) {
    why_ = {.position = position, .message = std::move(message)};
    return false;
  }

  bool unexpected() {
    const Token& token = peek();
    return fail(token.position, token.kind == TokenKind::kEnd ? "unexpected end of the expression"
                                                              : fmt::format("unexpected '{}'", token.text));
  }

  bool too_deep() { return fail(peek().position, fmt::format("expression recursion limit exceeded: {}", kDepthMax)); }

  /// Puts `children` below a new node, which takes the place of `into`.
  bool join(Tree& into, Node node, std::vector<Tree> children) {
    std::size_t depth = 0;
    for (Tree& child : children) {
      depth = std::max(depth, child.depth);
      node.children.push_back(std::move(child.node));
    }
    if (depth + 1 > kDepthMax) return too_deep();
    into = {.node = std::move(node), .depth = depth + 1};
    return true;
  }

  bool expression(Tree& out) {
    if (nesting_ >= kDepthMax) return too_deep();
    ++nesting_;
    const bool good = ternary(out);
    --nesting_;
    return good;
  }

  bool ternary(Tree& out) {
    if (!chain(out, "||", NodeKind::kOr)) return false;
    const std::uint32_t position = peek().position;
    if (!accept("?")) return true;
    std::vector<Tree> parts(3);
    parts[0] = std::move(out);
    if (!chain(parts[1], "||", NodeKind::kOr) || !expect(":") || !expression(parts[2])) return false;
    return join(out, {.kind = NodeKind::kTernary, .position = position}, std::move(parts));
  }

  bool chain(Tree& out, std::string_view sign, NodeKind kind) {
    const bool outer = kind == NodeKind::kOr;
    std::vector<Tree> parts;
    const std::uint32_t position = peek().position;
    do {
      Tree& part = parts.emplace_back();
      if (outer ? !chain(part, "&&", NodeKind::kAnd) : !binary(part, 0)) return false;
    } while (accept(sign));
    if (parts.size() > 1) return join(out, {.kind = kind, .position = position}, std::move(parts));
    out = std::move(parts.front());
    return true;
  }

  bool binary(Tree& out, std::size_t level) {
    if (level == kLevels.size()) return unary(out);
    if (!binary(out, level + 1)) return false;
    while (true) {
      const auto found = std::ranges::find_if(kLevels[level], [&](const Operator& one) { return is(one.sign); });
      if (found == kLevels[level].end()) return true;
      const std::uint32_t position = tokens_[at_++].position;
      std::vector<Tree> sides(2);
      sides[0] = std::move(out);
      if (!binary(sides[1], level + 1)) return false;
      if (!join(out, call(found->function, position), std::move(sides))) return false;
    }
  }

  static Node call(std::string_view function, std::uint32_t position) {
    return {.kind = NodeKind::kCall, .position = position, .name = std::string(function)};
  }

  bool unary(Tree& out) {
    const std::uint32_t position = peek().position;
    const bool number = peek(1).kind == TokenKind::kInt || peek(1).kind == TokenKind::kDouble;
    if (is("-") && number) return member(out);
    if (!is("!") && !is("-")) return member(out);
    if (nesting_ >= kDepthMax) return too_deep();
    const std::string_view function = tokens_[at_++].text == "!" ? "!_" : "-_";
    std::vector<Tree> operand(1);
    ++nesting_;
    const bool good = unary(operand[0]);
    --nesting_;
    return good && join(out, call(function, position), std::move(operand));
  }

  bool member(Tree& out) {
    if (!primary(out)) return false;
    while (true) {
      const std::uint32_t position = peek().position;
      if (accept(".")) {
        if (accept("?") ? !optional_selection(out, position) : !selection(out, position)) return false;
      } else if (accept("[")) {
        const bool may_be_absent = accept("?");
        std::vector<Tree> sides(2);
        sides[0] = std::move(out);
        if (!expression(sides[1]) || !expect("]")) return false;
        if (!join(out, call(may_be_absent ? "_[?_]" : "_[_]", position), std::move(sides))) return false;
      } else if (is("{")) {
        return fail(position, "messages are not supported by this server");
      } else {
        return true;
      }
    }
  }

  /// Behind ".?".
  bool optional_selection(Tree& out, std::uint32_t position) {
    const Token& name = peek();
    if (name.kind != TokenKind::kIdentifier || is_keyword(name.text)) return unexpected();
    ++at_;
    if (is("(")) return unexpected();
    std::vector<Tree> operand;
    operand.push_back(std::move(out));
    return join(out, {.kind = NodeKind::kOptSelect, .position = position, .name = std::string(name.text)},
                std::move(operand));
  }

  /// What may begin with '?': it is left out where it is absent.
  bool entry(Tree& out, bool may_be_absent) {
    const std::uint32_t position = peek().position;
    std::vector<Tree> value(1);
    if (!expression(value[0])) return false;
    if (may_be_absent) return join(out, {.kind = NodeKind::kOptEntry, .position = position}, std::move(value));
    out = std::move(value[0]);
    return true;
  }

  bool selection(Tree& out, std::uint32_t position) {
    const Token& name = peek();
    if (name.kind != TokenKind::kIdentifier || is_keyword(name.text)) return unexpected();
    ++at_;
    std::vector<Tree> parts;
    parts.push_back(std::move(out));
    if (!accept("(")) {
      return join(out, {.kind = NodeKind::kSelect, .position = position, .name = std::string(name.text)},
                  std::move(parts));
    }
    if (!arguments(parts, ")")) return false;
    if (const Macro* macro = macro_of(name.text, parts.size() - 1)) return comprehension(out, *macro, std::move(parts));
    Node node = call(name.text, position);
    node.member = true;
    return join(out, std::move(node), std::move(parts));
  }

  static const Macro* macro_of(std::string_view name, std::size_t arguments) {
    const auto* found = std::ranges::find_if(
        kMacros, [&](const Macro& macro) { return macro.name == name && macro.arguments == arguments; });
    return found == kMacros.end() ? nullptr : found;
  }

  bool comprehension(Tree& out, const Macro& macro, std::vector<Tree> parts) {
    const Node variable = std::move(parts[1].node);
    if (variable.kind != NodeKind::kIdentifier) {
      return fail(variable.position, "argument must be a simple name");
    }
    parts.erase(parts.begin() + 1);
    return join(out, {.kind = macro.kind, .position = variable.position, .name = variable.name}, std::move(parts));
  }

  /// Up to the closing sign. A comma may stand before it.
  bool arguments(std::vector<Tree>& into, std::string_view end) {
    const bool is_list = end == "]";
    while (!accept(end)) {
      const bool may_be_absent = is_list && accept("?");
      if (!entry(into.emplace_back(), may_be_absent)) return false;
      if (accept(end)) return true;
      if (!expect(",")) return false;
      if (!is_list && is(end)) return unexpected();
    }
    return true;
  }

  static bool is_keyword(std::string_view word) {
    return word == "in" || word == "true" || word == "false" || word == "null";
  }

  bool primary(Tree& out) {
    const Token& token = peek();
    if (accept("(")) return expression(out) && expect(")");
    if (accept("[")) {
      std::vector<Tree> elements;
      return arguments(elements, "]") &&
             join(out, {.kind = NodeKind::kList, .position = token.position}, std::move(elements));
    }
    if (accept("{")) return map(out, token.position);
    if (token.kind == TokenKind::kIdentifier || is(".")) return identifier(out);
    return literal(out);
  }

  bool map(Tree& out, std::uint32_t position) {
    std::vector<Tree> entries;
    while (!accept("}")) {
      const bool may_be_absent = accept("?");
      if (!expression(entries.emplace_back()) || !expect(":")) return false;
      if (!entry(entries.emplace_back(), may_be_absent)) return false;
      if (accept("}")) break;
      if (!expect(",")) return false;
    }
    return join(out, {.kind = NodeKind::kMap, .position = position}, std::move(entries));
  }

  bool identifier(Tree& out) {
    const std::uint32_t position = peek().position;
    accept(".");  // names of the outermost container, which is the only one there is
    const Token& token = peek();
    if (token.kind != TokenKind::kIdentifier) return unexpected();
    if (is_reserved(token.text)) return fail(position, fmt::format("reserved identifier: {}", token.text));
    if (token.text == "in") return unexpected();
    ++at_;
    out = {};
    out.node.position = position;
    if (token.text == "null") return true;
    if (token.text == "true" || token.text == "false") {
      out.node.constant = Value(token.text == "true");
      return true;
    }
    if (!accept("(")) {
      out.node.kind = NodeKind::kIdentifier;
      out.node.name = token.text;
      return true;
    }
    std::vector<Tree> parts;
    if (!arguments(parts, ")")) return false;
    if (token.text == "has") return presence(out, position, std::move(parts));
    return join(out, call(token.text, position), std::move(parts));
  }

  bool presence(Tree& out, std::uint32_t position, std::vector<Tree> parts) {
    if (parts.size() != 1 || parts[0].node.kind != NodeKind::kSelect) {
      return fail(position, "invalid argument to has() macro");
    }
    out = std::move(parts[0]);
    out.node.kind = NodeKind::kPresence;
    return true;
  }

  bool literal(Tree& out) {
    const std::uint32_t position = peek().position;
    const bool negative = accept("-");
    const Token& token = peek();
    out = {};
    out.node.position = position;
    switch (token.kind) {
      case TokenKind::kInt:
        if (!integer(token, negative, out.node.constant)) return fail(position, "invalid int literal");
        break;
      case TokenKind::kUint:
        if (!unsigned_integer(token, out.node.constant)) return fail(position, "invalid uint literal");
        break;
      case TokenKind::kDouble:
        if (!fraction(token, negative, out.node.constant)) return fail(position, "invalid double literal");
        break;
      case TokenKind::kString:
        out.node.constant = Value::text(token.value);
        break;
      case TokenKind::kBytes:
        out.node.constant = Value::bytes(token.value);
        break;
      case TokenKind::kEnd:
      case TokenKind::kIdentifier:
      case TokenKind::kSign:
        return unexpected();
    }
    ++at_;
    return true;
  }

  static bool magnitude(std::string_view text, std::uint64_t& value) {
    const bool hex = text.starts_with("0x") || text.starts_with("0X");
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

  std::vector<Token> tokens_;
  SyntaxError& why_;
  std::size_t at_ = 0;
  std::size_t nesting_ = 0;
};

}  // namespace

std::optional<Node> parse(std::string_view text, SyntaxError& why) {
  if (text.size() > kExpressionBytesMax) {
    why = {.position = 0,
           .message = fmt::format("expression code point size exceeds limit: size: {}, limit {}", text.size(),
                                  kExpressionBytesMax)};
    return std::nullopt;
  }
  std::vector<Token> tokens;
  if (!read_tokens(text, tokens, why)) return std::nullopt;
  return Parser(std::move(tokens), why).read();
}

}  // namespace spillway::cel
