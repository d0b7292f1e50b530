#include "api/object/selector.h"

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::api {
namespace {

/// Cuts at commas that no backslash protects.
std::vector<std::string_view> split_terms(std::string_view text) {
  std::vector<std::string_view> terms;
  std::size_t from = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == ',') {
      terms.push_back(text.substr(from, i - from));
      from = i + 1;
    }
  }
  terms.push_back(text.substr(from));
  return terms;
}

Result<std::string> unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ',' || text[i] == '=') {
      return make_error(ErrorCode::kBadRequest, "invalid field selector: unescaped character in value: {}",
                        static_cast<int>(text[i]));
    }
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const std::string_view escape = text.substr(i, 2);
    if (escape != "\\\\" && escape != "\\," && escape != "\\=") {
      return make_error(ErrorCode::kBadRequest, "invalid field selector: invalid escape sequence: {}", escape);
    }
    out += escape[1];
    ++i;
  }
  return out;
}

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == ',' || c == '=') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

bool FieldSelector::matches(const StringMap& fields) const {
  return std::all_of(requirements.begin(), requirements.end(), [&fields](const FieldRequirement& requirement) {
    const auto found = fields.find(requirement.field);
    const std::string_view value = found != fields.end() ? std::string_view(found->second) : std::string_view();
    return (value == requirement.value) == requirement.equal;
  });
}

std::string FieldSelector::to_string() const {
  std::string out;
  for (const FieldRequirement& requirement : requirements) {
    if (!out.empty()) out += ',';
    out += requirement.field;
    out += requirement.equal ? "=" : "!=";
    out += escape(requirement.value);
  }
  return out;
}

Result<FieldSelector> parse_field_selector(std::string_view text) {
  static constexpr std::array<std::string_view, 3> kOperators = {"!=", "==", "="};
  std::vector<std::string_view> terms = split_terms(text);
  std::sort(terms.begin(), terms.end());
  FieldSelector selector;
  for (const std::string_view term : terms) {
    if (term.empty()) continue;
    std::size_t at = 0;
    std::string_view op;
    for (; at < term.size() && op.empty(); ++at) {
      for (const std::string_view candidate : kOperators) {
        if (op.empty() && term.substr(at).starts_with(candidate)) op = candidate;
      }
    }
    if (op.empty()) {
      return make_error(ErrorCode::kBadRequest, "invalid selector: '{}'; can't understand '{}'", text, term);
    }
    SPILLWAY_TRY(value, unescape(term.substr(at - 1 + op.size())));
    selector.requirements.push_back(
        {.field = std::string(term.substr(0, at - 1)), .equal = op != "!=", .value = std::move(value)});
  }
  return selector;
}

}  // namespace spillway::api
