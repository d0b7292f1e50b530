#include "policy/workloads/stateful_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace spillway::workloads {

namespace {

constexpr std::string_view kDelete = "Delete";

/// An object that owner references may name.
struct Named {
  std::string_view api_version;
  std::string_view kind;
  const api::ObjectMeta& metadata;
};

Named named(const api::StatefulSet& set) {
  return {api::StatefulSet::kApiVersion, api::StatefulSet::kKind, set.metadata};
}

Named named(const api::Pod& pod) {
  return {api::Pod::kApiVersion, api::Pod::kKind, pod.metadata};
}

bool is_of_kind(const api::OwnerReference& reference, const Named& object) {
  return reference.api_version == object.api_version && reference.kind == object.kind;
}

bool names(const api::OwnerReference& reference, const Named& object) {
  return is_of_kind(reference, object) && reference.uid == object.metadata.uid;
}

bool is_owned_by(const api::PersistentVolumeClaim& claim, const Named& object) {
  return std::ranges::any_of(claim.metadata.owner_references,
                             [&object](const api::OwnerReference& each) { return names(each, object); });
}

/// True if the claim belongs to an earlier set of the same name.
bool is_owned_by_namesake(const api::PersistentVolumeClaim& claim, const Named& object) {
  return std::ranges::any_of(claim.metadata.owner_references, [&object](const api::OwnerReference& each) {
    return is_of_kind(each, object) && each.name == object.metadata.name && each.uid != object.metadata.uid;
  });
}

bool is_controlled_by_another(const api::PersistentVolumeClaim& claim, const api::StatefulSet& set,
                              const api::Pod& pod) {
  return std::ranges::any_of(claim.metadata.owner_references, [&](const api::OwnerReference& each) {
    return each.controller.value_or(false) && !names(each, named(set)) && !names(each, named(pod));
  });
}

bool has_owner_without_control(const api::PersistentVolumeClaim& claim, const api::StatefulSet& set,
                               const api::Pod& pod) {
  return std::ranges::any_of(claim.metadata.owner_references, [&](const api::OwnerReference& each) {
    return !each.controller.value_or(false) && (names(each, named(set)) || names(each, named(pod)));
  });
}

struct Owners {
  bool set = false;
  bool pod = false;
};

Owners asked_for(const api::StatefulSet& set, std::int32_t ordinal) {
  const bool scaled_away = !is_in_range(set, ordinal);
  const bool goes_when_scaled = set.claims_when_scaled == kDelete;
  return {.set = set.claims_when_deleted == kDelete && !(goes_when_scaled && scaled_away),
          .pod = goes_when_scaled && scaled_away};
}

api::OwnerReference controlled_by(const Named& object) {
  return {.api_version = std::string(object.api_version),
          .kind = std::string(object.kind),
          .name = object.metadata.name,
          .uid = object.metadata.uid,
          .controller = true,
          .block_owner_deletion = true};
}

template <typename Visit>
void each_template(const api::StatefulSet& set, Visit visit) {
  if (set.claim_templates.if_array() == nullptr) return;
  for (const api::Json& claim : *set.claim_templates.if_array()) {
    visit(std::string(claim.string_at({"metadata", "name"})), claim);
  }
}

std::string claim_name(const api::StatefulSet& set, std::string_view volume, std::int32_t ordinal) {
  return fmt::format("{}-{}-{}", volume, set.metadata.name, ordinal);
}

}  // namespace

std::map<std::string, std::string> claim_names(const api::StatefulSet& set, std::int32_t ordinal) {
  std::map<std::string, std::string> claims;
  each_template(
      set, [&](const std::string& volume, const api::Json&) { claims[volume] = claim_name(set, volume, ordinal); });
  return claims;
}

std::map<std::string, api::Json> claim_documents(const api::StatefulSet& set, std::int32_t ordinal) {
  std::map<std::string, api::Json> documents;
  each_template(set, [&](const std::string& volume, const api::Json& claim) {
    api::Json document = claim;
    document["apiVersion"] = api::PersistentVolumeClaim::kApiVersion;
    document["kind"] = api::PersistentVolumeClaim::kKind;
    document.erase({"status"});
    api::Json& metadata = document.make({"metadata"});
    metadata["name"] = claim_name(set, volume, ordinal);
    metadata["namespace"] = set.metadata.ns;
    for (const auto& [key, value] : set.selector_labels) metadata.make({"labels"})[key] = value;
    documents[volume] = std::move(document);
  });
  return documents;
}

bool has_its_claims(const api::StatefulSet& set, const api::Pod& pod, std::int32_t ordinal) {
  return std::ranges::all_of(claim_names(set, ordinal), [&pod](const auto& wanted) {
    const auto volume = std::ranges::find(pod.spec.volumes, wanted.first, &api::Volume::name);
    return volume != pod.spec.volumes.end() && volume->source == "persistentVolumeClaim" &&
           volume->definition.string_at({"claimName"}) == wanted.second;
  });
}

api::Json with_claims(const api::StatefulSet& set, const api::Json& volumes, std::int32_t ordinal) {
  const std::map<std::string, std::string> claims = claim_names(set, ordinal);
  api::Json out = api::Json::array();
  for (const auto& [volume, claim] : claims) {
    out.if_array()->push_back(
        api::Json::object({{"name", volume}, {"persistentVolumeClaim", api::Json::object({{"claimName", claim}})}}));
  }
  if (volumes.if_array() == nullptr) return out;
  for (const api::Json& volume : *volumes.if_array()) {
    if (!claims.contains(std::string(volume.string_at({"name"})))) out.if_array()->push_back(volume);
  }
  return out;
}

bool is_in_range(const api::StatefulSet& set, std::int64_t ordinal) {
  return ordinal >= set.first_ordinal && ordinal - set.first_ordinal < set.replicas;
}

bool is_owned_as_asked(const api::PersistentVolumeClaim& claim, const api::StatefulSet& set, const api::Pod& pod,
                       std::int32_t ordinal) {
  if (is_owned_by_namesake(claim, named(set)) || is_owned_by_namesake(claim, named(pod))) return true;
  const Owners owners{.set = is_owned_by(claim, named(set)), .pod = is_owned_by(claim, named(pod))};
  if (is_controlled_by_another(claim, set, pod)) return !owners.set && !owners.pod;
  if (has_owner_without_control(claim, set, pod)) return false;
  const Owners wanted = asked_for(set, ordinal);
  return owners.set == wanted.set && owners.pod == wanted.pod;
}

std::vector<api::OwnerReference> owners_asked(const api::PersistentVolumeClaim& claim, const api::StatefulSet& set,
                                              const api::Pod& pod, std::int32_t ordinal) {
  std::vector<api::OwnerReference> owners = claim.metadata.owner_references;
  std::erase_if(owners,
                [&](const api::OwnerReference& each) { return names(each, named(set)) || names(each, named(pod)); });
  if (is_controlled_by_another(claim, set, pod)) return owners;
  const Owners wanted = asked_for(set, ordinal);
  if (wanted.set) owners.push_back(controlled_by(named(set)));
  if (wanted.pod) owners.push_back(controlled_by(named(pod)));
  return owners;
}

bool goes_with_predecessor(const api::PersistentVolumeClaim& claim, const api::StatefulSet& set,
                           std::string_view pod_name) {
  if (set.claims_when_scaled != kDelete) return false;
  return std::ranges::any_of(claim.metadata.owner_references, [pod_name](const api::OwnerReference& each) {
    return each.api_version == api::Pod::kApiVersion && each.kind == api::Pod::kKind && each.name == pod_name;
  });
}

}  // namespace spillway::workloads
