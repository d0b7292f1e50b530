// The one table of resources the server knows: names, scope, verbs, storage, subresources and hooks. Routing,
// discovery, OpenAPI, the watch cache and the collectors all read it; the rows stand with the kinds
// (kinds/kind_rows.h). Custom kinds are added and removed: a table never changes, the registry gets a new one then.
// Thread: ResourceTable any (immutable); ResourceRegistry loop, but for table(). Source: spec "API server contract", 2,
// 9.5, 22.2; docs/adr/0049.
#pragma once

#include "api/exchange/status.h"
#include "apiserver/resource/kind_hooks.h"
#include "base/published.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
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

  /// The names in alphabetical order, as discovery shows them.
  std::vector<std::string_view> names() const;

 private:
  static constexpr std::uint16_t bit(Verb verb) {
    return static_cast<std::uint16_t>(1U << static_cast<unsigned>(verb));
  }

  std::uint16_t bits_ = 0;
};

enum class Scope { kCluster, kNamespaced };

/// Rule for the names of a kind's objects.
enum class NameRule { kDnsSubdomain, kDnsLabel, kPathSegment };

enum class SubresourceId {
  kNone,
  kStatus,
  kScale,
  kBinding,
  kEviction,
  kLog,
  kExec,  // and attach, portforward: a connection that is handed on
  kEphemeralContainers,
  kResize,
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

/// A field that field selectors may name; its value is the member of that path, or the result of `read`.
struct SelectableField {
  std::string_view name;
  std::string (*read)(const api::Json& object) = nullptr;
};

/// The number of times a kind runs the checks of metadata on a write, besides those that every kind runs. Each run adds
/// its causes again, and clients see as many as with upstream.
struct MetadataChecks {
  /// Runs for a new object. 0: only once all other checks have passed, and its name may be any path segment.
  int create = 1;
  /// Runs for a changed object: of all checks, and of those of immutable members.
  int update_whole = 1;
  int update_change = 1;
  /// As the two above, for the endpoints status and finalize.
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

class CustomKind;
struct CustomVersion;

struct Resource {
  std::string_view group;  // empty: core
  std::string_view version;
  std::string_view plural;
  std::string_view singular;
  std::string_view kind;
  std::string_view list_kind;  // empty: the kind and "List"
  Scope scope = Scope::kNamespaced;
  VerbSet verbs{};
  /// "/registry/minions/": prefix of the keys of its objects. Empty: nothing is stored (reviews).
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
  /// The generation counts changes of annotations as well.
  bool counts_annotations = false;
  /// The generation counts changes of labels as well.
  bool counts_labels = false;
  /// Dependents of its objects outlive them, unless the deletion requests otherwise.
  bool orphans_by_default = false;
  /// PUT of an unknown name creates.
  bool put_creates = false;
  /// An update of the status does not change labels.
  bool status_keeps_labels = false;
  /// True if the endpoint status keeps all other metadata, too.
  bool status_keeps_metadata = false;
  /// A PUT has to name the resourceVersion that it is based on.
  bool requires_version = false;
  /// Objects of the resource are heartbeats: most updates change one time (write/renewal.h).
  bool renewed = false;
  /// Old versions of its objects are dropped after a moment: watches resume from the present state.
  bool keeps_history = true;
  MetadataChecks metadata{};
  /// Writes are recorded in metadata.managedFields.
  bool tracks_managers = true;
  /// Objects pass through a grace period when deleted (Pod).
  bool graceful = false;
  /// One sentence about the fate of objects of a kind that no controller of ours acts on. Empty: one does, or none is
  /// needed.
  std::string_view unattended;
  DocumentView view;
  const KindHooks* hooks = &kNeutralHooks;
  /// The rules of a custom kind's version, in place of hooks; null: the kind is built in.
  const CustomVersion* custom = nullptr;
  /// A finalizer that a deletion adds: dependents or uses have to be cleared before the object is removed. Empty: none.
  std::string_view cleanup_finalizer;

  /// True if its documents differ from the stored ones.
  bool is_view() const;
  /// A stored document as this resource shows it, and back. Of one that is no view: the document.
  api::Json from_stored(const api::Json& object) const;
  api::Json to_stored(const api::Json& object) const;

  bool namespaced() const { return scope == Scope::kNamespaced; }

  bool stored() const { return !storage.empty(); }

  /// "v1", "apps/v1".
  std::string api_version() const;

  api::GroupResource group_resource() const { return {std::string(group), std::string(plural)}; }

  api::GroupKind group_kind() const { return {std::string(group), std::string(kind)}; }

  /// The kind of that group. Custom kinds of other groups may have the same name, so a name alone is ambiguous
  /// (tools/tidy.py).
  bool is(std::string_view of_group, std::string_view of_kind) const { return kind == of_kind && group == of_group; }

  const Subresource* subresource(std::string_view name) const;
};

using CustomKindPtr = std::shared_ptr<const CustomKind>;

/// All resources at one moment. Rows stay valid for as long as their table is held.
class ResourceTable {
 public:
  using BuiltIn = std::shared_ptr<const std::vector<Resource>>;

  ResourceTable(BuiltIn built_in, std::vector<CustomKindPtr> custom);

  /// The built-in ones, then custom ones by group, version (newest first) and name.
  auto all() const {
    return rows_ | std::views::transform([](const Resource* row) -> const Resource& { return *row; });
  }

  std::span<const Resource> built_in() const { return *built_in_; }

  const std::vector<CustomKindPtr>& custom() const { return custom_; }

  /// The same table with other custom kinds.
  std::shared_ptr<const ResourceTable> with_custom(std::vector<CustomKindPtr> custom) const {
    return std::make_shared<const ResourceTable>(built_in_, std::move(custom));
  }

  const Resource* find(std::string_view group, std::string_view version, std::string_view plural) const;

 private:
  BuiltIn built_in_;
  std::vector<CustomKindPtr> custom_;
  std::vector<const Resource*> rows_;
};

using ResourceTablePtr = std::shared_ptr<const ResourceTable>;

/// A row of a custom kind is valid for as long as its kind, or a table that has it, is held: CustomKinds holds a kind
/// for a while after it was replaced. Built-in rows are valid for as long as the registry.
class ResourceRegistry {
 public:
  /// `built_in`: the rows of kinds that need no definition, in the order of discovery (kinds/kind_rows.h).
  explicit ResourceRegistry(std::vector<Resource> built_in);

  /// Thread: any.
  ResourceTablePtr table() const { return published_.take(); }

  auto all() const { return table_->all(); }

  std::span<const Resource> built_in() const { return table_->built_in(); }

  const Resource* find(std::string_view group, std::string_view version, std::string_view plural) const {
    return table_->find(group, version, plural);
  }

  /// Finds a row by "apps/v1" and "Deployment", as owner references name it.
  const Resource* find_kind(std::string_view api_version, std::string_view kind) const;
  /// Finds a row by group and kind, whatever version an owner reference names. Views are not found, except of custom
  /// kinds, where the result is one of the versions.
  const Resource* find_group_kind(std::string_view group, std::string_view kind) const;
  /// Finds a row by "pods" or "deployments.apps".
  const Resource* find_plural(std::string_view plural_and_group) const;
  bool serves(std::string_view group, std::string_view version) const;
  bool serves_group(std::string_view group) const;
  /// True for a group that is served without a definition.
  bool is_built_in_group(std::string_view group) const;

  /// The resource, which must exist.
  const Resource& get(std::string_view plural_and_group) const;

  /// The number of times that the table has been replaced.
  std::uint64_t generation() const { return generation_; }

  const std::vector<CustomKindPtr>& custom() const { return table_->custom(); }

  /// Replaces the custom kinds.
  void replace_custom(std::vector<CustomKindPtr> kinds);

 private:
  ResourceTablePtr table_;
  Published<ResourceTable> published_;
  std::uint64_t generation_ = 0;
};

}  // namespace spillway::apiserver
