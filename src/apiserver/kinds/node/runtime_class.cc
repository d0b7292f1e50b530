// RuntimeClasses: a handler that never changes, the overhead of its pods, and where they may run.
#include "api/text/names.h"
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/groups.h"
#include "apiserver/kinds/pod/pod.h"
#include "apiserver/kinds/row_parts.h"
#include "apiserver/kinds/tables.h"

#include <algorithm>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

void validate_scheduling(const Json& scheduling, FieldErrors& errors) {
  validate_labels(value_of(scheduling, "nodeSelector"), "scheduling.nodeSelector", errors);
  validate_tolerations(value_of(scheduling, "tolerations"), "scheduling.tolerations", errors);
  const Json::Array& tolerations = elements(scheduling, "tolerations");
  for (std::size_t i = 0; i < tolerations.size() && !errors.full(); ++i) {
    const auto end = tolerations.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(tolerations.begin(), end, tolerations[i]) != end) {
      errors.duplicate(api::index_path("scheduling.tolerations", i), tolerations[i]);
    }
  }
}

void validate_runtime_class(const Json& runtime_class, FieldErrors& errors) {
  if (const std::string_view handler = text(runtime_class, "handler"); handler.empty()) {
    errors.required("handler");
  } else {
    require_valid(api::dns1123_label_errors(handler), value_of(runtime_class, "handler"), "handler", errors);
  }
  validate_overhead(value_of(value_of(runtime_class, "overhead"), "podFixed"), "overhead", errors);
  validate_scheduling(value_of(runtime_class, "scheduling"), errors);
}

void validate_runtime_class_update(const Json& runtime_class, const Json& old, Endpoint, FieldErrors& errors) {
  validate_runtime_class(runtime_class, errors);
  if (text(runtime_class, "handler") != text(old, "handler")) {
    errors.invalid("handler", value_of(runtime_class, "handler"), kImmutable);
  }
}

constexpr std::array kRuntimeClassColumns{kNameColumn, TableColumn{"Handler", "string", "", 0, "Name in the runtime"},
                                          kAgeColumn};

TableRow runtime_class_row(const api::Json& object, WallTime now) {
  return {{name_of(object), object.string_at({"handler"}), age_of(object, now)}, nullptr};
}

Resource runtime_class_kind() {
  static const KindHooks kHooks{.validate_create = validate_runtime_class,
                                .validate_update = validate_runtime_class_update,
                                .columns = kRuntimeClassColumns,
                                .table_row = runtime_class_row};
  return {.group = "node.k8s.io",
          .version = "v1",
          .plural = "runtimeclasses",
          .singular = "runtimeclass",
          .kind = "RuntimeClass",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs,
          .storage = below("runtimeclasses"),
          .put_creates = true,
          .metadata = kAnyFinalizer,
          .hooks = &kHooks};
}

}  // namespace

std::vector<Resource> node_api_kinds() {
  return {runtime_class_kind()};
}

}  // namespace spillway::apiserver::kinds
