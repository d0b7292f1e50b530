#include "api/json_patch.h"

#include <charconv>
#include <optional>
#include <string>
#include <utility>

namespace spillway::api {
namespace {

constexpr std::size_t kOperationsMax = 10'000;

Error failed(std::string_view why, std::string_view path) {
  return make_error(ErrorCode::kInvalid, "{}: \"{}\"", why, path);
}

using Tokens = std::vector<std::string>;

/// A JSON pointer taken apart; ~1 is a slash, ~0 a tilde.
Result<Tokens> parse_pointer(std::string_view pointer) {
  if (pointer.empty() || pointer.front() != '/') return failed("not a path below the root", pointer);
  Tokens tokens;
  std::size_t from = 1;
  while (from <= pointer.size()) {
    const std::size_t end = std::min(pointer.find('/', from), pointer.size());
    std::string token;
    for (std::size_t i = from; i < end; ++i) {
      const char next = i + 1 < end ? pointer[i + 1] : '\0';
      if (pointer[i] == '~' && (next == '0' || next == '1')) {
        token += next == '0' ? '~' : '/';
        ++i;
      } else {
        token += pointer[i];
      }
    }
    tokens.push_back(std::move(token));
    from = end + 1;
  }
  return tokens;
}

std::optional<std::int64_t> parse_index(std::string_view token) {
  std::int64_t index = 0;
  if (token.starts_with('+')) token.remove_prefix(1);
  const auto [end, ec] = std::from_chars(token.data(), token.data() + token.size(), index);
  if (ec != std::errc{} || end != token.data() + token.size()) return std::nullopt;
  return index;
}

/// The position a token names in a list of `size` elements; negative ones count from the end.
std::optional<std::size_t> position(std::string_view token, std::size_t size) {
  const std::optional<std::int64_t> index = parse_index(token);
  if (!index) return std::nullopt;
  const std::int64_t length = static_cast<std::int64_t>(size);
  const std::int64_t from_start = *index < 0 ? *index + length : *index;
  if (from_start < 0 || from_start >= length) return std::nullopt;
  return static_cast<std::size_t>(from_start);
}

Json* child(Json& parent, const std::string& token) {
  if (parent.is_object()) return parent.find(token);
  Json::Array* list = parent.if_array();
  if (list == nullptr) return nullptr;
  const std::optional<std::size_t> at = position(token, list->size());
  return at ? &(*list)[*at] : nullptr;
}

/// The container of the last token; nullptr if the way there is interrupted.
Json* parent_of(Json& root, const Tokens& tokens) {
  Json* here = &root;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    here = child(*here, tokens[i]);
    if (here == nullptr) return nullptr;
  }
  return here->is_object() || here->is_array() ? here : nullptr;
}

Outcome add(Json& root, std::string_view path, Json value) {
  SPILLWAY_TRY(tokens, parse_pointer(path));
  Json* parent = parent_of(root, tokens);
  if (parent == nullptr) return failed("add: no such container", path);
  if (parent->is_object()) {
    (*parent)[tokens.back()] = std::move(value);
    return {};
  }
  Json::Array& list = *parent->if_array();
  if (tokens.back() == "-") {
    list.push_back(std::move(value));
    return {};
  }
  const std::optional<std::size_t> at = position(tokens.back(), list.size() + 1);
  if (!at) return failed("add: no such index", path);
  list.insert(list.begin() + static_cast<std::ptrdiff_t>(*at), std::move(value));
  return {};
}

Outcome remove(Json& root, std::string_view path) {
  SPILLWAY_TRY(tokens, parse_pointer(path));
  Json* parent = parent_of(root, tokens);
  if (parent == nullptr || child(*parent, tokens.back()) == nullptr) return failed("remove: no such member", path);
  if (parent->is_object()) {
    parent->if_object()->erase(tokens.back());
    return {};
  }
  Json::Array& list = *parent->if_array();
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(*position(tokens.back(), list.size())));
  return {};
}

Result<Json*> lookup(Json& root, std::string_view path, std::string_view operation) {
  SPILLWAY_TRY(tokens, parse_pointer(path));
  Json* parent = parent_of(root, tokens);
  Json* found = parent != nullptr ? child(*parent, tokens.back()) : nullptr;
  if (found == nullptr) return failed(fmt::format("{}: no such member", operation), path);
  return found;
}

Outcome test(Json& root, std::string_view path, const Json& value) {
  SPILLWAY_TRY(tokens, parse_pointer(path));
  Json* parent = parent_of(root, tokens);
  if (parent == nullptr) return failed("test: no such container", path);
  const Json* found = child(*parent, tokens.back());
  const bool same = found != nullptr ? *found == value : value.is_null() && parent->is_object();
  if (!same) return failed("test: the value differs", path);
  return {};
}

Outcome apply(Json& root, const Json& operation) {
  if (!operation.is_object()) return make_error(ErrorCode::kInvalid, "not an object");
  const std::string_view name = operation.string_at({"op"});
  const Json* path_member = operation.find("path");
  if (path_member == nullptr || !path_member->is_string()) return make_error(ErrorCode::kInvalid, "no path");
  const std::string& path = *path_member->if_string();
  const Json* value = operation.find("value");
  const bool needs_value = name == "add" || name == "replace";
  if (needs_value && value == nullptr) return make_error(ErrorCode::kInvalid, "{} without a value", name);
  if (name == "add") return add(root, path, *value);
  if (name == "remove") return remove(root, path);
  if (name == "replace") {
    SPILLWAY_TRY(target, lookup(root, path, name));
    *target = *value;
    return {};
  }
  if (name == "test") return test(root, path, value != nullptr ? *value : Json());
  if (name != "move" && name != "copy") return make_error(ErrorCode::kInvalid, "unknown operation \"{}\"", name);
  const std::string_view from = operation.string_at({"from"});
  SPILLWAY_TRY(source, lookup(root, from, name));
  Json moved = *source;
  if (name == "move") SPILLWAY_TRY_VOID(remove(root, from));
  return add(root, path, std::move(moved));
}

}  // namespace

Result<Json> json_patch(const Json& original, const Json& patch) {
  if (!patch.is_array()) return make_error(ErrorCode::kBadRequest, "a JSON patch is a list of operations");
  const Json::Array& operations = *patch.if_array();
  if (operations.size() > kOperationsMax) {
    return make_error(ErrorCode::kRequestEntityTooLarge, "the allowed maximum operations in a JSON patch is {}, got {}",
                      kOperationsMax, operations.size());
  }
  Json result = original;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Outcome done = apply(result, operations[i]);
    if (!done) return make_error(done.error().code, "patch operation {}: {}", i, done.error().message);
  }
  return result;
}

}  // namespace spillway::api
