#include "sim/tenants.h"

#include "api/json/json.h"
#include "base/check.h"

#include <fmt/format.h>

namespace spillway::sim {
namespace {

constexpr std::string_view kRegistry = "/registry/";
constexpr std::string_view kServices = "/registry/services/specs/";
constexpr std::string_view kNamespaces = "/registry/namespaces/";
constexpr std::string_view kOwn = "/registry/spillway.dev/";  // no objects of the API

api::Json document_of(const store::Value& value) {
  auto document = api::parse_json(*value);
  SPILLWAY_CHECK(document.has_value());  // cannot fail: the server wrote the document
  return *std::move(document);
}

std::string text_at(const api::Json& object, std::string_view name) {
  const api::Json* const found = object.find(name);
  const std::string* const text = found == nullptr ? nullptr : found->if_string();
  return text == nullptr ? std::string() : *text;
}

/// The address of a service, and the ports that it has on all nodes.
std::set<std::string> claims_of(const api::Json& service) {
  std::set<std::string> claims;
  const api::Json* const spec = service.find("spec");
  if (spec == nullptr) return claims;
  if (const std::string address = text_at(*spec, "clusterIP"); !address.empty() && address != "None")
    claims.insert(address);
  const api::Json* const ports = spec->find("ports");
  const api::Json::Array* const list = ports == nullptr ? nullptr : ports->if_array();
  if (list == nullptr) return claims;
  for (const api::Json& port : *list)
    if (const api::Json* node_port = port.find("nodePort"))
      claims.insert(fmt::format("{} {}", text_at(port, "protocol"), api::to_text(*node_port)));
  return claims;
}

}  // namespace

void Tenants::on_change(const store::Change& change, Now now) {
  if (!change.key.starts_with(kRegistry) || change.key.starts_with(kOwn)) return;
  if (change.key.starts_with(kServices)) on_service(change.key, change.value, now);
  const bool is_known = change.value != nullptr && change.create_revision != change.revision;
  if (is_known && !change.key.starts_with(kNamespaces)) return;  // the object's place has been recorded
  if (change.key.starts_with(kNamespaces))
    return on_namespace(change.key.substr(kNamespaces.size()), change.value, now);
  on_content(change.key, change.value, now);
}

void Tenants::on_service(const std::string& key, const store::Value& value, Now now) {
  for (const std::string& claim : held_[key]) holders_.erase(claim);
  held_.erase(key);
  if (!value) return;
  for (const std::string& claim : claims_of(document_of(value))) {
    const auto [holder, is_free] = holders_.emplace(claim, key);
    if (is_free)
      held_[key].insert(claim);
    else
      invariants_.violate(Property::kNoSharedAddress, now,
                          fmt::format("{} and {} both have {}", holder->second, key, claim));
  }
}

void Tenants::on_namespace(const std::string& name, const store::Value& value, Now now) {
  ending_.erase(name);
  if (value) {
    const api::Json document = document_of(value);
    const api::Json* const metadata = document.find("metadata");
    if (metadata != nullptr && metadata->find("deletionTimestamp") != nullptr) ending_.insert(name);
    namespaces_.insert(name);
    for (const std::string& key : contents_[name]) invariants_.on_late_content(key, false, now);
    return;
  }
  namespaces_.erase(name);
  for (const std::string& key : contents_[name]) invariants_.on_late_content(key, true, now);
}

/// Parses "/registry/RESOURCE/NAMESPACE/NAME"; cluster-scoped objects have one part less.
void Tenants::on_content(const std::string& key, const store::Value& value, Now now) {
  const std::size_t name = key.rfind('/');
  const std::size_t start = key.rfind('/', name - 1);
  if (start < kRegistry.size()) return;
  const std::string space = key.substr(start + 1, name - start - 1);
  auto& contents = contents_[space];
  const bool is_new = value ? contents.insert(key).second : contents.erase(key) > 0;
  if (is_new && !namespaces_.contains(space)) invariants_.on_late_content(key, value != nullptr, now);
}

}  // namespace spillway::sim
