#include "api/json/json_patch.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

namespace spillway::api {
namespace {

constexpr std::size_t kOperationsMax = 10'000;
constexpr std::size_t kDepthMax = 1'000;          // as deep as a document may be that is parsed
constexpr std::size_t kWorkMax = 500'000;         // values visited or moved by all operations of one patch
constexpr std::size_t kCopiedBytesMax = 3 << 20;  // text of everything that `copy` duplicates

Error failed(std::string_view operation, std::string_view why, std::string_view path) {
  return make_error(ErrorCode::kInvalid, "{}: {}: \"{}\"", operation, why, path);
}

using Tokens = std::vector<std::string>;

/// A JSON pointer taken apart; ~1 is a slash, ~0 a tilde.
Result<Tokens> parse_pointer(std::string_view pointer) {
  if (pointer.empty() || pointer.front() != '/') {
    return make_error(ErrorCode::kInvalid, "not a path below the root: \"{}\"", pointer);
  }
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
    if (tokens.size() > kDepthMax) return make_error(ErrorCode::kInvalid, "a path deeper than {}", kDepthMax);
    from = end + 1;
  }
  return tokens;
}

/// The position a token names in a list of `size` elements; negative ones count from the end.
std::optional<std::size_t> position(std::string_view token, std::size_t size) {
  std::int64_t index = 0;
  if (token.starts_with('+') && !token.starts_with("+-")) token.remove_prefix(1);
  const auto [end, ec] = std::from_chars(token.data(), token.data() + token.size(), index);
  if (ec != std::errc{} || end != token.data() + token.size()) return std::nullopt;
  const auto length = static_cast<std::int64_t>(size);
  if (index < -length || index >= length) return std::nullopt;
  return static_cast<std::size_t>(index < 0 ? index + length : index);
}

Json* child(Json& parent, const std::string& token) {
  if (parent.is_object()) return parent.find(token);
  Json::Array* list = parent.if_array();
  if (list == nullptr) return nullptr;
  const std::optional<std::size_t> at = position(token, list->size());
  return at ? &(*list)[*at] : nullptr;
}

std::size_t size_of(const Json& container) {
  return container.is_array() ? container.if_array()->size() : container.if_object()->size();
}

/// The document while it is patched.
class Editor {
 public:
  explicit Editor(const Json& original) : root_(original) {}

  Outcome apply(const Json& operation) {
    if (!operation.is_object()) return make_error(ErrorCode::kInvalid, "not an object");
    const std::string_view name = operation.string_at({"op"});
    const Json* path = operation.find("path");
    if (path == nullptr || !path->is_string()) return make_error(ErrorCode::kInvalid, "no path");
    const Json* value = operation.find("value");
    const Json sent = value != nullptr ? *value : Json();  // a value left out is null, as upstream takes it
    if (name == "add") return add(*path->if_string(), sent);
    if (name == "remove") return remove(*path->if_string());
    if (name == "replace") return replace(*path->if_string(), sent);
    if (name == "test") return test(*path->if_string(), sent);
    const std::string_view from = operation.string_at({"from"});
    if (name == "move") return move(from, *path->if_string());
    if (name == "copy") return copy(from, *path->if_string());
    return make_error(ErrorCode::kInvalid, "unknown operation \"{}\"", name);
  }

  Json take() { return std::move(root_); }

 private:
  /// The container of the last token; nullptr if the way there is interrupted.
  Json* parent_of(const Tokens& tokens) {
    Json* here = &root_;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      here = child(*here, tokens[i]);
      if (here == nullptr) return nullptr;
    }
    return here->is_object() || here->is_array() ? here : nullptr;
  }

  Outcome spend(std::size_t work) {
    if (work > work_left_) return make_error(ErrorCode::kRequestEntityTooLarge, "the patch is too expensive to apply");
    work_left_ -= work;
    return {};
  }

  /// Refuses what would nest too deeply below `depth` levels; visits every value.
  Outcome check_depth(const Json& value, std::size_t depth) {
    if (depth > kDepthMax) return make_error(ErrorCode::kInvalid, "nested deeper than {}", kDepthMax);
    SPILLWAY_TRY_VOID(spend(1));
    if (const Json::Array* list = value.if_array()) {
      for (const Json& element : *list) SPILLWAY_TRY_VOID(check_depth(element, depth + 1));
    } else if (const JsonObject* object = value.if_object()) {
      for (const auto& [key, member] : *object) SPILLWAY_TRY_VOID(check_depth(member, depth + 1));
    }
    return {};
  }

  Outcome add(std::string_view path, Json value) {
    SPILLWAY_TRY(tokens, parse_pointer(path));
    Json* parent = parent_of(tokens);
    if (parent == nullptr) return failed("add", "no such container", path);
    SPILLWAY_TRY_VOID(check_depth(value, tokens.size()));
    SPILLWAY_TRY_VOID(spend(size_of(*parent)));
    if (parent->is_object()) {
      (*parent)[tokens.back()] = std::move(value);
      return {};
    }
    Json::Array& list = *parent->if_array();
    const std::optional<std::size_t> at = tokens.back() == "-" ? list.size() : position(tokens.back(), list.size() + 1);
    if (!at) return failed("add", "no such index", path);
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(*at), std::move(value));
    return {};
  }

  Outcome remove(std::string_view path) {
    SPILLWAY_TRY(tokens, parse_pointer(path));
    Json* parent = parent_of(tokens);
    if (parent == nullptr) return failed("remove", "no such container", path);
    SPILLWAY_TRY_VOID(spend(size_of(*parent)));
    if (JsonObject* object = parent->if_object()) {
      if (!object->erase(tokens.back())) return failed("remove", "no such member", path);
      return {};
    }
    Json::Array& list = *parent->if_array();
    const std::optional<std::size_t> at = position(tokens.back(), list.size());
    if (!at) return failed("remove", "no such index", path);
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(*at));
    return {};
  }

  /// Unlike RFC 6902, a member that is missing from an existing object is added.
  Outcome replace(std::string_view path, Json value) {
    if (path.empty()) return replace_root(std::move(value));
    SPILLWAY_TRY(tokens, parse_pointer(path));
    Json* parent = parent_of(tokens);
    if (parent != nullptr && parent->is_object()) return add(path, std::move(value));
    Json* found = parent != nullptr ? child(*parent, tokens.back()) : nullptr;
    if (found == nullptr) return failed("replace", "no such member", path);
    SPILLWAY_TRY_VOID(check_depth(value, tokens.size()));
    *found = std::move(value);
    return {};
  }

  Outcome replace_root(Json value) {
    SPILLWAY_TRY_VOID(check_depth(value, 0));
    if (!value.is_object() && !value.is_array()) return failed("replace", "not an object or list", "");
    root_ = std::move(value);
    return {};
  }

  Outcome test(std::string_view path, const Json& value) {
    if (path.empty()) return root_ == value ? Outcome() : failed("test", "the value differs", path);
    SPILLWAY_TRY(tokens, parse_pointer(path));
    Json* parent = parent_of(tokens);
    if (parent == nullptr) return failed("test", "no such container", path);
    const Json* found = child(*parent, tokens.back());
    const bool same = found != nullptr ? *found == value : value.is_null() && parent->is_object();
    if (!same) return failed("test", "the value differs", path);
    return {};
  }

  Result<Json*> lookup(std::string_view path, std::string_view operation) {
    SPILLWAY_TRY(tokens, parse_pointer(path));
    Json* parent = parent_of(tokens);
    Json* found = parent != nullptr ? child(*parent, tokens.back()) : nullptr;
    if (found == nullptr) return failed(operation, "no such member", path);
    return found;
  }

  Outcome move(std::string_view from, std::string_view to) {
    SPILLWAY_TRY(source, lookup(from, "move"));
    Json moved = std::move(*source);
    SPILLWAY_TRY_VOID(remove(from));
    return add(to, std::move(moved));
  }

  Outcome copy(std::string_view from, std::string_view to) {
    SPILLWAY_TRY(source, lookup(from, "copy"));
    const std::size_t bytes = to_text(*source).size();
    if (bytes > copied_left_) return make_error(ErrorCode::kRequestEntityTooLarge, "the patch copies too much");
    copied_left_ -= bytes;
    return add(to, *source);
  }

  Json root_;
  std::size_t work_left_ = kWorkMax;
  std::size_t copied_left_ = kCopiedBytesMax;
};

}  // namespace

Result<Json> json_patch(const Json& original, const Json& patch) {
  if (!patch.is_array()) return make_error(ErrorCode::kBadRequest, "a JSON patch is a list of operations");
  const Json::Array& operations = *patch.if_array();
  if (operations.size() > kOperationsMax) {
    return make_error(ErrorCode::kRequestEntityTooLarge, "the allowed maximum operations in a JSON patch is {}, got {}",
                      kOperationsMax, operations.size());
  }
  Editor editor(original);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Outcome done = editor.apply(operations[i]);
    if (!done) return make_error(done.error().code, "patch operation {}: {}", i, done.error().message);
  }
  return editor.take();
}

}  // namespace spillway::api
