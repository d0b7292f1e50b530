#include "apiserver/request/remote_schemas.h"

#include "api/json/json.h"
#include "apiserver/request/json_members.h"
#include "apiserver/request/kind_extension.h"
#include "base/fiber.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::string_view kToDefinition = "#/definitions/";
constexpr std::string_view kToParameter = "#/parameters/";
/// Work of one byte that is parsed and written anew: about 20 ns, where a unit is 50 ns.
constexpr std::size_t kBytesOfAUnit = 3;
/// Work of finding a member by its name.
constexpr std::size_t kNameUnits = 10;
constexpr std::size_t kDescriptionBytesMax = 1'024;
/// Characters that JSON writes in another form.
constexpr std::string_view kWritten = R"("\<>&)";

/// True for the names that generators write: they are the same in JSON and in a reference.
bool is_plain(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7f && !kWritten.contains(c); });
}

/// The members of an object by name, as pieces of its text. Of equal names the last wins.
using Pieces = std::map<std::string_view, std::string_view>;

Result<Pieces> pieces_of(std::string_view text, std::size_t limit) {
  Pieces pieces;
  JsonMembers members(text);
  while (true) {
    SPILLWAY_TRY(member, members.next());
    if (!member) return pieces;
    count_work(kNameUnits);
    if (!is_plain(member->key)) continue;
    pieces[member->key] = member->value;
    if (pieces.size() > limit) {
      return make_error(ErrorCode::kRequestEntityTooLarge, "an object has more than {} members", limit);
    }
  }
}

Result<Pieces> pieces_at(const Pieces& document, std::string_view name) {
  const auto found = document.find(name);
  return found == document.end() ? Pieces() : pieces_of(found->second, RemoteSchemas::kMembersMax);
}

/// Calls `visit` with each reference below a value.
template <typename Visit>
void visit_references(const Json& value, const Visit& visit) {
  if (const Json::Array* list = value.if_array()) {
    for (const Json& element : *list) visit_references(element, visit);
  } else if (const Json::Object* object = value.if_object()) {
    for (const auto& [key, member] : *object) {
      if (key == "$ref" && member.is_string()) visit(*member.if_string());
      visit_references(member, visit);
    }
  }
}

class SchemasReader {
 public:
  SchemasReader(const Pieces& definitions, const Pieces& parameters)
      : definitions_(definitions), parameters_(parameters) {}

  /// Reads a path, then all that it leads to.
  Outcome add_path(std::string_view name, std::string_view text) {
    SPILLWAY_TRY(path, parsed(name, text));
    follow(path);
    SPILLWAY_TRY_VOID(keep(kept_.paths, name, path));
    while (!waiting_.empty()) {
      const std::string reference = std::move(waiting_.back());
      waiting_.pop_back();
      SPILLWAY_TRY_VOID(add_referred(reference));
    }
    return {};
  }

  RemoteSchemas take() { return std::move(kept_); }

 private:
  Result<Json> parsed(std::string_view name, std::string_view text) {
    if (text.size() > RemoteSchemas::kMemberBytesMax) {
      return make_error(ErrorCode::kRequestEntityTooLarge, "\"{}\" has more than {} bytes", name.substr(0, 200),
                        RemoteSchemas::kMemberBytesMax);
    }
    count_work(1 + text.size() / kBytesOfAUnit);
    SPILLWAY_TRY(value, api::parse_json(text));
    if (!value.is_object()) return make_error(ErrorCode::kInvalid, "\"{}\" is no object", name.substr(0, 200));
    return value;
  }

  void follow(const Json& value) {
    visit_references(value, [this](const std::string& reference) { waiting_.push_back(reference); });
  }

  /// References that lead nowhere stay as they are.
  Outcome add_referred(std::string_view reference) {
    count_work(kNameUnits);
    if (reference.starts_with(kToDefinition)) return add_definition(reference.substr(kToDefinition.size()));
    if (reference.starts_with(kToParameter)) return add_parameter(reference.substr(kToParameter.size()));
    return {};
  }

  Outcome add_definition(std::string_view name) {
    const auto found = definitions_.find(name);
    if (found == definitions_.end() || kept_.definitions.contains(name)) return {};
    SPILLWAY_TRY(schema, parsed(name, found->second));
    follow(schema);
    RemoteSchemas::Definition definition;
    if (const std::string_view text = schema.string_at({"description"}); text.size() <= kDescriptionBytesMax) {
      definition.description = text;
    }
    take_kinds(schema, definition.kinds);
    definition.text = api::to_text(schema);
    std::size_t bytes = definition.text.size() + definition.description.size();
    for (const std::string& kind : definition.kinds) bytes += kind.size();
    kept_.definitions.emplace(name, std::move(definition));
    return charge(name.size() + bytes);
  }

  static void take_kinds(Json& schema, std::vector<std::string>& kinds) {
    const Json* list = std::as_const(schema).find(kGroupVersionKind);
    if (list == nullptr || list->if_array() == nullptr) return;
    for (const Json& each : *list->if_array()) {
      if (each.string_at({"kind"}).empty() || kinds.size() >= RemoteSchemas::kKindsMax) continue;
      kinds.push_back(api::to_text(Json::object({{"group", each.string_at({"group"})},
                                                 {"kind", each.string_at({"kind"})},
                                                 {"version", each.string_at({"version"})}})));
    }
    schema.erase({kGroupVersionKind});
  }

  Outcome add_parameter(std::string_view name) {
    const auto found = parameters_.find(name);
    if (found == parameters_.end() || kept_.parameters.contains(name)) return {};
    SPILLWAY_TRY(parameter, parsed(name, found->second));
    follow(parameter);
    return keep(kept_.parameters, name, parameter);
  }

  Outcome keep(RemoteSchemas::Texts& texts, std::string_view name, const Json& value) {
    std::string text = api::to_text(value);
    const std::size_t bytes = name.size() + text.size();
    texts.insert_or_assign(std::string(name), std::move(text));
    return charge(bytes);
  }

  Outcome charge(std::size_t bytes) {
    kept_.bytes += bytes;
    if (kept_.bytes > RemoteSchemas::kBytesMax) {
      return make_error(ErrorCode::kRequestEntityTooLarge, "the group version has more than {} bytes of definitions",
                        RemoteSchemas::kBytesMax);
    }
    if (kept_.paths.size() + kept_.parameters.size() + kept_.definitions.size() > RemoteSchemas::kKeptMax) {
      return make_error(ErrorCode::kRequestEntityTooLarge, "the group version has more than {} definitions and paths",
                        RemoteSchemas::kKeptMax);
    }
    return {};
  }

  const Pieces& definitions_;
  const Pieces& parameters_;
  RemoteSchemas kept_;
  std::vector<std::string> waiting_;  // references; there are no more than the bytes that are kept can hold
};

}  // namespace

Result<RemoteSchemas> remote_schemas(std::string_view document, std::string_view path) {
  constexpr std::size_t kTopMax = 100;
  SPILLWAY_TRY(top, pieces_of(document, kTopMax));
  const auto version = top.find("swagger");
  if (version == top.end() || version->second != R"("2.0")") {
    return make_error(ErrorCode::kInvalid, "the document is no OpenAPI v2");
  }
  SPILLWAY_TRY(definitions, pieces_at(top, "definitions"));
  SPILLWAY_TRY(parameters, pieces_at(top, "parameters"));
  SPILLWAY_TRY(paths, pieces_at(top, "paths"));
  SchemasReader reader(definitions, parameters);
  for (const auto& [name, text] : paths) {
    if (name.starts_with(path)) SPILLWAY_TRY_VOID(reader.add_path(name, text));
  }
  return reader.take();
}

}  // namespace spillway::apiserver
