#include "apiserver/stored_values.h"

#include "api/json/json.h"
#include "apiserver/kinds/kind_rows.h"
#include "apiserver/read/stored_form.h"

#include <fmt/format.h>

namespace spillway::apiserver {
namespace {

std::string name_of(const Resource& resource) {
  return resource.group.empty() ? std::string(resource.plural) : fmt::format("{}.{}", resource.plural, resource.group);
}

/// The difference between the object's name and its key ("ns/name", or "name"); empty: none.
std::string place_problem(const Resource& resource, std::string_view place, const api::Json& object) {
  const std::string_view name = object.string_at({"metadata", "name"});
  const std::string_view ns = object.string_at({"metadata", "namespace"});
  const std::string said = ns.empty() ? std::string(name) : fmt::format("{}/{}", ns, name);
  const bool fits = !name.empty() && ns.empty() != resource.namespaced();
  if (fits && said == place) return {};
  return fmt::format("says it is \"{}\", expected \"{}\" as its key does", said, place);
}

std::string problem_of(const Resource& resource, std::string_view place, const api::Json& document) {
  if (std::string problem = place_problem(resource, place, document); !problem.empty()) return problem;
  return document.string_at({"metadata", "uid"}).empty() ? "has no uid, expected one" : "";
}

/// Decoded and encoded again, in the form that it has.
std::string remark_of(const Resource& resource, std::string_view value, AtRest& at_rest) {
  if (!at_rest.unknown_fields.empty()) return unknown_fields_warning(at_rest.unknown_fields);
  if (at_rest.is_text) return {};
  const std::string again = encode_stored(resource, at_rest.document, at_rest.media_type);
  return again == value ? std::string() : "is written in other bytes by this version";
}

}  // namespace

StoredValues::StoredValues() : table_(ResourceRegistry(kinds::kind_rows()).table()) {}

const Resource* StoredValues::resource_of(std::string_view key) const {
  for (const Resource& resource : table_->all()) {
    // If two rows share one storage, the row that is not a view describes the stored form.
    if (resource.stored() && resource.view.from_stored == nullptr && key.starts_with(resource.storage)) {
      return &resource;
    }
  }
  return nullptr;
}

std::vector<std::string> StoredValues::prefixes_without_history() const {
  std::vector<std::string> prefixes;
  for (const Resource& resource : table_->all()) {
    if (resource.stored() && !resource.keeps_history) prefixes.push_back(resource.storage);
  }
  return prefixes;
}

StoredValues::Verdict StoredValues::check(std::string_view key, std::string_view value) const {
  const Resource* resource = resource_of(key);
  if (resource == nullptr) return {std::string(kUnknown), {}, {}};
  Result<AtRest> at_rest = decode_stored(*resource, value);
  if (!at_rest) return {name_of(*resource), at_rest.error().message, {}};
  std::string problem = problem_of(*resource, key.substr(resource->storage.size()), at_rest->document);
  return {name_of(*resource), std::move(problem), remark_of(*resource, value, *at_rest)};
}

}  // namespace spillway::apiserver
