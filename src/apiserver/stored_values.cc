#include "apiserver/stored_values.h"

#include "api/json/json.h"
#include "apiserver/kinds/kind_table.h"
#include "apiserver/read/stored_form.h"

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
  const Result<AtRest> at_rest = decode_stored(resource, value);
  if (!at_rest) return at_rest.error().message;
  if (std::string problem = place_problem(resource, place, at_rest->document); !problem.empty()) return problem;
  if (at_rest->document.string_at({"metadata", "uid"}).empty()) return "has no uid, expected one";
  return {};
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
