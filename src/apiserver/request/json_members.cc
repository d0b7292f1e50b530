#include "apiserver/request/json_members.h"

#include "base/fiber.h"

namespace spillway::apiserver {

namespace {

constexpr std::string_view kSpaces = " \t\r\n";
/// Bytes that are passed over before their work is counted: 4,096 take about 10 us, which is 200 units.
constexpr std::size_t kCountedBytes = 4'096;
constexpr std::size_t kCountedUnits = 200;

Error broken(std::size_t at) {
  return make_error(ErrorCode::kInvalid, "the JSON at byte {} is no member of an object", at);
}

}  // namespace

void JsonMembers::advance() {
  ++at_;
  if (at_ % kCountedBytes == 0) count_work(kCountedUnits);
}

void JsonMembers::skip_spaces() {
  while (at_ < text_.size() && kSpaces.contains(text_[at_])) advance();
}

bool JsonMembers::skip_string() {
  advance();  // the opening quote
  while (at_ < text_.size()) {
    const char c = text_[at_];
    advance();
    if (c == '"') return true;
    if (c == '\\' && at_ < text_.size()) advance();
  }
  return false;
}

bool JsonMembers::skip_value() {
  std::size_t depth = 0;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '"') {
      if (!skip_string()) return false;
      if (depth == 0) return true;
      continue;
    }
    const bool opens = c == '{' || c == '[';
    const bool closes = c == '}' || c == ']';
    if (depth == 0 && (c == ',' || closes || kSpaces.contains(c))) return true;  // the end of a number or a word
    advance();
    if (opens) ++depth;
    if (closes && --depth == 0) return true;
  }
  return false;
}

Result<std::optional<JsonMembers::Member>> JsonMembers::next() {
  skip_spaces();
  const bool is_first = !has_begun_;
  has_begun_ = true;
  if (is_first) {
    if (peek() != '{') return broken(at_);
    advance();
    skip_spaces();
  }
  if (peek() == '}') {
    advance();
    skip_spaces();
    if (at_ != text_.size()) return broken(at_);
    return std::optional<Member>();
  }
  if (!is_first) {
    if (peek() != ',') return broken(at_);
    advance();
    skip_spaces();
  }
  if (peek() != '"') return broken(at_);
  const std::size_t key = at_ + 1;
  if (!skip_string()) return broken(at_);
  Member member{.key = text_.substr(key, at_ - 1 - key), .value = {}};
  skip_spaces();
  if (peek() != ':') return broken(at_);
  advance();
  skip_spaces();
  const std::size_t value = at_;
  if (!skip_value() || at_ == value) return broken(at_);
  member.value = text_.substr(value, at_ - value);
  return std::optional(member);
}

}  // namespace spillway::apiserver
