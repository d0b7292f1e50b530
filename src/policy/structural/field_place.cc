#include "policy/structural/field_place.h"

#include "api/exchange/status.h"

#include <cstddef>

namespace spillway::structural {

namespace {

/// Takes the text between single quotes; nullopt: malformed.
std::optional<std::string> take_quoted(std::string_view& rest) {
  constexpr std::string_view kEscapes = "abfnrtv'\\";
  constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v'\\";
  if (!rest.starts_with('\'')) return std::nullopt;
  std::string text;
  for (std::size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] == '\'') {
      rest.remove_prefix(i + 1);
      return text;
    }
    if (rest[i] != '\\') {
      text += rest[i];
      continue;
    }
    const std::size_t escape = ++i < rest.size() ? kEscapes.find(rest[i]) : std::string_view::npos;
    if (escape == std::string_view::npos) return std::nullopt;
    text += kMeanings[escape];
  }
  return std::nullopt;
}

/// Parses one step of a path: ".name" or "['name']".
std::optional<std::string> take_step(std::string_view& rest) {
  if (rest.starts_with('[')) {
    rest.remove_prefix(1);
    std::optional<std::string> name = take_quoted(rest);
    if (!rest.starts_with(']')) return std::nullopt;
    rest.remove_prefix(1);
    return name;
  }
  if (!rest.starts_with('.')) return std::nullopt;
  rest.remove_prefix(1);
  const std::size_t end = std::min(rest.find_first_of(".[]"), rest.size());
  if (end == 0) return std::nullopt;
  std::string name(rest.substr(0, end));
  rest.remove_prefix(end);
  return name;
}

}  // namespace

std::optional<std::string> field_place(const Node& node, std::string_view path) {
  const Node* at = &node;
  std::string field;
  while (!path.empty()) {
    const std::optional<std::string> name = take_step(path);
    if (!name) return std::nullopt;
    if (!at->properties.empty()) {
      at = at->property(*name);
      if (!field.empty()) field += '.';
      field += *name;
    } else {
      at = at->entries.get();
      field = api::key_path(field, *name);
    }
    if (at == nullptr) return std::nullopt;
  }
  return field;
}

const Node* node_at(const Node& node, std::string_view path) {
  const Node* at = &node;
  while (!path.empty() && at != nullptr) {
    if (!path.starts_with('.')) return nullptr;
    const std::optional<std::string> name = take_step(path);
    if (!name) return nullptr;
    at = at->property(*name);
  }
  return at;
}

}  // namespace spillway::structural
