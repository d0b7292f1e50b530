// Namespaces, and the events that live in them.
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/kinds.h"
#include "apiserver/kinds/tables.h"

namespace spillway::apiserver::kinds {

namespace {

void default_namespace(api::Json& object) {
  const std::string name(object.string_at({"metadata", "name"}));
  if (!name.empty()) object.make({"metadata", "labels", "kubernetes.io/metadata.name"}) = name;
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
void keep_finalizers(api::Json& object, const api::Json& old, Endpoint) {
  const api::Json* finalizers = old.at({"spec", "finalizers"});
  if (finalizers != nullptr) {
    object.make({"spec", "finalizers"}) = *finalizers;
  } else {
    object.erase({"spec", "finalizers"});
  }
}

void validate_event(const api::Json& event, api::FieldErrors& errors) {
  const std::string_view ns = event.string_at({"metadata", "namespace"});
  const std::string_view about = event.string_at({"involvedObject", "namespace"});
  const bool fits = about.empty() ? ns == "default" : about == ns;
  if (!fits) errors.invalid("involvedObject.namespace", about, "does not match event.namespace");
}

}  // namespace

KindHooks namespace_hooks() {
  const TableDefinition table = namespace_table();
  return {.set_defaults = default_namespace,
          .prepare_create = start_namespace,
          .prepare_update = keep_finalizers,
          .columns = table.columns,
          .table_row = table.row};
}

KindHooks event_hooks() {
  const TableDefinition table = event_table();
  return {.validate_create = validate_event, .columns = table.columns, .table_row = table.row};
}

}  // namespace spillway::apiserver::kinds
