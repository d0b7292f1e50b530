#include "apiserver/stored_values.h"

#include "api/json/json.h"
#include "api/schema/schema.h"
#include "api/schema/typed.h"
#include "apiserver/kinds/kind_table.h"

#include <fmt/format.h>

namespace spillway::apiserver {
namespace {

std::string name_of(const Resource& resource) {
  return resource.group.empty() ? std::string(resource.plural) : fmt::format("{}.{}", resource.plural, resource.group);
}

/// Where the object says it is, against where it is: "ns/name", or "name".
std::string place_problem(const Resource& resource, std::string_view place, const api::Json& object) {
  const std::string_view name = object.string_at({"metadata", "name"});
  const std::string_view ns = object.string_at({"metadata", "namespace"});
  const std::string said = ns.empty() ? std::string(name) : fmt::format("{}/{}", ns, name);
  const bool fits = !name.empty() && ns.empty() != resource.namespaced();
  if (fits && said == place) return {};
  return fmt::format("says it is \"{}\", expected \"{}\" as its key does", said, place);
}

std::string problem_of(const Resource& resource, std::string_view place, std::string_view value) {
  const Result<api::Json> object = api::parse_json(value);
  if (!object) return fmt::format("is no JSON ({}), expected a {}", object.error().text(), resource.kind);
  if (!object->is_object()) return fmt::format("is no JSON object, expected a {}", resource.kind);
  const std::string_view version = object->string_at({"apiVersion"});
  const std::string_view kind = object->string_at({"kind"});
  if (version != resource.api_version() || kind != resource.kind) {
    return fmt::format("is a \"{}\" of \"{}\", expected a {} of {}", kind, version, resource.kind,
                       resource.api_version());
  }
  if (std::string problem = place_problem(resource, place, *object); !problem.empty()) return problem;
  if (object->string_at({"metadata", "uid"}).empty()) return "has no uid, expected one";
  const api::Type* type = api::find_kind(resource.api_version(), resource.kind);
  if (type == nullptr) return {};
  const auto typed = api::read_body(*type, *object);
  return typed ? std::string() : typed.error().text();
}

}  // namespace

StoredValues::StoredValues() : registry_(kinds::kind_hooks) {}

const Resource* StoredValues::resource_of(std::string_view key) const {
  for (const Resource& resource : registry_.all()) {
    // Of two rows over one storage the one that is no view describes the stored form.
    if (resource.stored() && resource.view.from_stored == nullptr && key.starts_with(resource.storage)) {
      return &resource;
    }
  }
  return nullptr;
}

StoredValues::Verdict StoredValues::check(std::string_view key, std::string_view value) const {
  const Resource* resource = resource_of(key);
  if (resource == nullptr) return {std::string(kUnknown), {}};
  return {name_of(*resource), problem_of(*resource, key.substr(resource->storage.size()), value)};
}

}  // namespace spillway::apiserver
