// Namespaces: a name as a label, finalizers with an endpoint of their own, a phase.
#include "api/text/names.h"
#include "apiserver/kinds/core/core_kinds.h"
#include "apiserver/kinds/core/core_tables.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/row_parts.h"
#include "apiserver/resource/metadata_rules.h"

#include <fmt/format.h>

#include <array>
#include <string>

namespace spillway::apiserver::kinds {

namespace {

/// Every namespace can be selected by its name.
void label_with_name(api::Json& object) {
  const std::string name(object.string_at({"metadata", "name"}));
  if (!name.empty()) object.make({"metadata", "labels", "kubernetes.io/metadata.name"}) = name;
}

void default_namespace(api::Json& object) {
  label_with_name(object);
  if (api::Json* status = object.find("status"); status != nullptr && status->is_object()) {
    set_default(*status, "phase", "Active");
  }
}

void start_namespace(api::Json& object) {
  api::Json& finalizers = object.make({"spec", "finalizers"});
  if (!finalizers.is_array()) finalizers = api::Json::array();
  bool present = false;
  for (const api::Json& finalizer : *finalizers.if_array())
    present = present || finalizer.string_at({}) == "kubernetes";
  if (!present) finalizers.if_array()->push_back("kubernetes");
  object.make({"status", "phase"}) = "Active";
}

/// Finalizers change through the finalize endpoint only.
void keep_finalizers(api::Json& object, const api::Json& old, Endpoint endpoint) {
  if (endpoint == Endpoint::kFinalize) return;
  const api::Json* finalizers = old.at({"spec", "finalizers"});
  if (finalizers != nullptr) {
    object.make({"spec", "finalizers"}) = *finalizers;
  } else {
    object.erase({"spec", "finalizers"});
  }
}

void validate_finalizers(const api::Json& object, bool by_index, api::FieldErrors& errors) {
  const api::Json::Array& finalizers = elements(value_of(object, "spec"), "finalizers");
  for (std::size_t i = 0; i < finalizers.size() && !errors.full(); ++i) {
    const std::string_view name = finalizers[i].string_at({});
    const std::string path = by_index ? api::index_path("spec.finalizers", i) : std::string("spec.finalizers");
    require_valid(api::qualified_name_errors(name), finalizers[i], path, errors);
    if (!is_finalizer_of_somebody(name)) errors.invalid(path, finalizers[i], kUnknownFinalizer);
  }
}

void validate_namespace(const api::Json& object, api::FieldErrors& errors) {
  validate_finalizers(object, false, errors);
}

/// The phase must be Terminating exactly while the namespace is being deleted.
void validate_phase(const api::Json& object, api::FieldErrors& errors) {
  const bool deleting = !object.string_at({"metadata", "deletionTimestamp"}).empty();
  const std::string_view wanted = deleting ? "Terminating" : "Active";
  const api::Json& phase = value_of(value_of(object, "status"), "phase");
  if (phase.string_at({}) == wanted) return;
  errors.invalid("status.Phase", phase,
                 fmt::format("may only be '{}' if `deletionTimestamp` is {}empty", wanted, deleting ? "not " : ""));
}

void validate_namespace_update(const api::Json& object, const api::Json&, Endpoint endpoint, api::FieldErrors& errors) {
  if (endpoint == Endpoint::kStatus) return validate_phase(object, errors);
  validate_finalizers(object, endpoint == Endpoint::kFinalize, errors);
}

}  // namespace

Resource namespace_kind() {
  static constexpr std::array kFields{SelectableField{"status.phase"}};
  static constexpr std::array<std::string_view, 1> kShortNames{"ns"};
  static constexpr std::array kSubresources{
      Subresource{SubresourceId::kFinalize, "finalize", VerbSet{Verb::kUpdate}, {}, {}, {}}, kStatusSubresource};
  const TableDefinition table = namespace_table();
  static const KindHooks kHooks{.set_defaults = default_namespace,
                                .prepare_create = start_namespace,
                                .validate_create = validate_namespace,
                                .name_create = label_with_name,
                                .prepare_update = keep_finalizers,
                                .validate_update = validate_namespace_update,
                                .columns = table.columns,
                                .table_row = table.row};
  return {.version = "v1",
          .plural = "namespaces",
          .singular = "namespace",
          .kind = "Namespace",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs.without(Verb::kDeleteCollection),
          .storage = below("namespaces"),
          .short_names = kShortNames,
          .subresources = kSubresources,
          .fields = kFields,
          .names = NameRule::kDnsLabel,
          .status_subresource = true,
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
