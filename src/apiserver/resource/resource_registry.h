// The one table of resources the server knows: names, scope, verbs, storage, subresources and hooks. Routing,
// discovery, OpenAPI, the watch cache and the collectors all read it; a new resource is a row here plus its hooks.
// Thread: any (immutable after construction). Source: spec "API server contract", 2, 9.5, 22.2.
#pragma once

#include "api/exchange/status.h"
#include "apiserver/resource/kind_hooks.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

enum class Verb : std::uint8_t { kGet, kList, kWatch, kCreate, kUpdate, kPatch, kDelete, kDeleteCollection };

/// "get", "list", …, "deletecollection".
std::string_view to_string(Verb verb);

class VerbSet {
 public:
  constexpr VerbSet(std::initializer_list<Verb> verbs) {
    for (const Verb verb : verbs) bits_ |= bit(verb);
  }

  constexpr bool has(Verb verb) const { return (bits_ & bit(verb)) != 0; }

  constexpr VerbSet without(Verb verb) const {
    VerbSet rest = *this;
    rest.bits_ &= static_cast<std::uint16_t>(~bit(verb));
    return rest;
  }

  /// In alphabetical order, as discovery shows them.
  std::vector<std::string_view> names() const;

 private:
  static constexpr std::uint16_t bit(Verb verb) {
    return static_cast<std::uint16_t>(1U << static_cast<unsigned>(verb));
  }

  std::uint16_t bits_ = 0;
};

enum class Scope { kCluster, kNamespaced };

/// Which names are legal.
enum class NameRule { kDnsSubdomain, kDnsLabel, kDns1035Label, kPathSegment };

enum class SubresourceId {
  kNone,
  kStatus,
  kScale,
  kBinding,
  kEviction,
  kLog,
  kExec,  // and attach, portforward: a connection that is handed on
  kEphemeralContainers,
  kFinalize,
  kToken,
  kApproval,
  kProxy
};

struct Subresource {
  SubresourceId id = SubresourceId::kNone;
  std::string_view name;
  VerbSet verbs;
  // Kind of its documents where it differs from the resource's own.
  std::string_view group;
  std::string_view version;
  std::string_view kind;
};

/// A field that field selectors may name; its value is the member of that path unless `read` says otherwise.
struct SelectableField {
  std::string_view name;
  std::string (*read)(const api::Json& object) = nullptr;
};

/// How often a kind runs the checks of metadata on a write, besides those that every kind has to pass. Each run adds
/// its causes again, and clients see as many as upstream tells.
struct MetadataChecks {
  /// Of a new object. 0: only once nothing else is wrong, and its name may be any path segment.
  int create = 1;
  /// Of a changed object: everything, and what an update may not change.
  int update_whole = 1;
  int update_change = 1;
  /// The same through the status and finalize endpoints.
  int status_whole = 0;
  int status_change = 1;
  /// A finalizer without a domain has to be one of Kubernetes' own.
  bool standard_finalizers = true;
};

/// A document written one way and read another: events.k8s.io events are views of v1 events.
struct DocumentView {
  api::Json (*to_stored)(const api::Json& object) = nullptr;
  api::Json (*from_stored)(const api::Json& object) = nullptr;
};

struct Resource {
  std::string_view group;  // empty: core
  std::string_view version;
  std::string_view plural;
  std::string_view singular;
  std::string_view kind;
  Scope scope = Scope::kNamespaced;
  VerbSet verbs{};
  /// "/registry/minions/": where its objects live. Empty: nothing is stored (reviews).
  std::string storage;
  std::span<const std::string_view> short_names;
  std::span<const std::string_view> categories;
  std::span<const Subresource> subresources;
  std::span<const SelectableField> fields;
  NameRule names = NameRule::kDnsSubdomain;
  bool status_subresource = false;
  /// Status sent with a create is kept (Node).
  bool keeps_status_on_create = false;
  /// metadata.generation starts at 1 and counts changes of spec.
  bool counts_generation = false;
  /// It counts changes of annotations as well.
  bool counts_annotations = false;
  /// It counts changes of labels as well.
  bool counts_labels = false;
  /// PUT of an unknown name creates.
  bool put_creates = false;
  /// An update of the status leaves labels as they are.
  bool status_keeps_labels = false;
  /// A PUT has to name the resourceVersion that it is based on.
  bool requires_version = false;
  /// Its objects are heartbeats: most updates change one time (write/renewal.h).
  bool renewed = false;
  /// What its objects were before is not kept, but for a moment: watches resume by the present state.
  bool keeps_history = true;
  MetadataChecks metadata{};
  /// Writes are recorded in metadata.managedFields.
  bool tracks_managers = true;
  /// Objects pass through a grace period when deleted (Pod).
  bool graceful = false;
  /// What becomes of objects of a kind that none of our controllers acts on, in one sentence. Empty: somebody does, or
  /// nobody has to.
  std::string_view unattended;
  DocumentView view;
  const KindHooks* hooks = nullptr;

  bool namespaced() const { return scope == Scope::kNamespaced; }

  bool stored() const { return !storage.empty(); }

  /// "v1", "apps/v1".
  std::string api_version() const;

  api::GroupResource group_resource() const { return {std::string(group), std::string(plural)}; }

  api::GroupKind group_kind() const { return {std::string(group), std::string(kind)}; }

  const Subresource* subresource(std::string_view name) const;
};

class ResourceRegistry {
 public:
  explicit ResourceRegistry(KindTable hooks);

  std::span<const Resource> all() const { return resources_; }

  const Resource* find(std::string_view group, std::string_view version, std::string_view plural) const;
  /// By "apps/v1" and "Deployment", as owner references name it.
  const Resource* find_kind(std::string_view api_version, std::string_view kind) const;
  /// By group and kind, whatever version an owner reference names; views are not found.
  const Resource* find_group_kind(std::string_view group, std::string_view kind) const;
  /// By "pods" or "deployments.apps".
  const Resource* find_plural(std::string_view plural_and_group) const;
  bool serves(std::string_view group, std::string_view version) const;
  bool serves_group(std::string_view group) const;

  /// The resource, which must exist.
  const Resource& get(std::string_view plural_and_group) const;

 private:
  std::vector<Resource> resources_;
};

}  // namespace spillway::apiserver
