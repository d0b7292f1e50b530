#include "policy/structural/json_path.h"

#include "base/ascii.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace spillway::structural {

namespace {

using api::Json;

/// Names of the members in the path; empty: malformed.
std::vector<std::string_view> members_of(std::string_view path) {
  std::vector<std::string_view> names;
  if (!path.starts_with('.')) return names;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::size_t end = std::min(path.find('.'), path.size());
    names.push_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return names;
}

}  // namespace

class JsonPath::Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), rest_(text) {}

  Result<JsonPath> read() {
    if (text_.size() > kTextMax) return make_error(ErrorCode::kInvalid, "longer than {} bytes", kTextMax);
    rest_ = trimmed(rest_);
    if (rest_.starts_with('{')) {
      if (!rest_.ends_with('}')) return unexpected();
      rest_ = rest_.substr(1, rest_.size() - 2);
    }
    rest_ = trimmed(rest_);
    if (rest_.starts_with('$')) rest_.remove_prefix(1);
    JsonPath path;
    if (rest_ == ".") return path;
    while (!rest_.empty()) {
      SPILLWAY_TRY(step, read_step());
      path.steps_.push_back(std::move(step));
    }
    return path;
  }

 private:
  Error unexpected() const {
    return make_error(ErrorCode::kInvalid, "\"{}\" is not understood from \"{}\" on", text_, rest_);
  }

  Result<Step> read_step() {
    if (take("[")) return read_brackets();
    if (!take(".")) return unexpected();
    if (rest_.starts_with("[")) return read_step();
    if (take("*")) return Step{.kind = Kind::kAll};
    std::string name;
    while (!rest_.empty() && rest_[0] != '.' && rest_[0] != '[') {
      if (rest_[0] == '\\' && rest_.size() > 1) rest_.remove_prefix(1);
      if (std::string_view(" \t\n'\"(){}").contains(rest_[0])) return unexpected();
      name += rest_[0];
      rest_.remove_prefix(1);
    }
    if (name.empty()) return unexpected();
    return Step{.kind = Kind::kMember, .name = std::move(name)};
  }

  Result<Step> read_brackets() {
    if (take("*]")) return Step{.kind = Kind::kAll};
    if (take("?(")) return read_filter();
    if (rest_.starts_with('\'') || rest_.starts_with('"')) {
      SPILLWAY_TRY(name, read_quoted());
      if (!take("]")) return unexpected();
      return Step{.kind = Kind::kMember, .name = std::move(name)};
    }
    Step step{.kind = Kind::kIndex};
    const char* end = rest_.data() + rest_.size();
    const auto [stop, error] = std::from_chars(rest_.data(), end, step.index);
    if (error != std::errc() || stop == end || *stop != ']') return unexpected();
    rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()) + 1);
    return step;
  }

  /// @.a.b=="c")]
  Result<Step> read_filter() {
    Step step{.kind = Kind::kFilter};
    skip_blanks();
    if (!take("@")) return unexpected();
    while (take(".")) {
      std::string name;
      while (!rest_.empty() && !std::string_view(".=!<>) []").contains(rest_[0])) {
        if (rest_[0] == '\\' && rest_.size() > 1) rest_.remove_prefix(1);
        name += rest_[0];
        rest_.remove_prefix(1);
      }
      if (name.empty()) return unexpected();
      step.below.push_back(std::move(name));
    }
    skip_blanks();
    for (const std::string_view order : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!take(order)) continue;
      step.order = order;
      skip_blanks();
      SPILLWAY_TRY(value, read_value());
      step.value = std::move(value);
      break;
    }
    skip_blanks();
    if (!take(")]")) return unexpected();
    return step;
  }

  Result<Json> read_value() {
    if (rest_.starts_with('\'') || rest_.starts_with('"')) {
      SPILLWAY_TRY(text, read_quoted());
      return Json(std::move(text));
    }
    const std::size_t end = std::min(rest_.find_first_of(" )"), rest_.size());
    auto value = api::parse_json(rest_.substr(0, end));
    if (!value || value->is_array() || value->is_object()) return unexpected();
    rest_.remove_prefix(end);
    return *std::move(value);
  }

  Result<std::string> read_quoted() {
    const char quote = rest_[0];
    std::string text;
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == quote) {
        rest_.remove_prefix(i + 1);
        return text;
      }
      if (rest_[i] == '\\' && i + 1 < rest_.size()) ++i;
      text += rest_[i];
    }
    return unexpected();
  }

  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlanks), rest_.size())); }

  std::string_view text_;
  std::string_view rest_;
};

Result<JsonPath> JsonPath::parse(std::string_view text) {
  return Parser(text).read();
}

bool JsonPath::keeps(const Step& step, const Json& element) {
  const Json* value = &element;
  for (const std::string& name : step.below) {
    value = value->find(name);
    if (value == nullptr) return false;
  }
  if (step.order.empty()) return true;
  if (step.order == "==") return *value == step.value;
  if (step.order == "!=") return !(*value == step.value);
  int order = 0;
  if (value->is_number() && step.value.is_number()) {
    const double a = value->if_double().value_or(0);
    const double b = step.value.if_double().value_or(0);
    order = a < b ? -1 : a > b ? 1 : 0;
  } else if (value->is_string() && step.value.is_string()) {
    order = value->if_string()->compare(*step.value.if_string());
  } else {
    return false;
  }
  if (order == 0) return step.order == "<=" || step.order == ">=";
  return step.order.starts_with(order < 0 ? '<' : '>');
}

std::vector<const Json*> JsonPath::find(const Json& object) const {
  std::vector<const Json*> found{&object};
  for (const Step& step : steps_) {
    std::vector<const Json*> next;
    const auto take = [&next](const Json& value) {
      if (next.size() < kFoundMax) next.push_back(&value);
    };
    for (const Json* value : found) {
      const Json::Array* list = value->if_array();
      if (step.kind == Kind::kMember) {
        if (const Json* member = value->find(step.name)) take(*member);
      } else if (step.kind == Kind::kAll && value->is_object()) {
        for (const auto& member : *value->if_object()) take(member.value);
      } else if (list != nullptr && step.kind == Kind::kIndex) {
        const std::int64_t at = step.index < 0 ? step.index + static_cast<std::int64_t>(list->size()) : step.index;
        if (at >= 0 && at < static_cast<std::int64_t>(list->size())) take((*list)[static_cast<std::size_t>(at)]);
      } else if (list != nullptr) {
        for (const Json& element : *list) {
          if (step.kind == Kind::kAll || keeps(step, element)) take(element);
        }
      }
    }
    found = std::move(next);
  }
  return found;
}

const Json* member_at(const Json& object, std::string_view path) {
  const std::vector<std::string_view> names = members_of(path);
  const Json* value = names.empty() ? nullptr : &object;
  for (const std::string_view name : names) {
    if (value != nullptr) value = value->find(name);
  }
  return value;
}

bool set_member_at(Json& object, std::string_view path, Json value) {
  const std::vector<std::string_view> names = members_of(path);
  if (names.empty()) return false;
  Json* at = &object;
  for (const std::string_view name : names) {
    if (!at->is_object() && !at->is_null()) return false;
    at = &(*at)[name];
  }
  *at = std::move(value);
  return true;
}

}  // namespace spillway::structural
