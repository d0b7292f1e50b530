// RuntimeClasses: a handler that never changes, what pods of it need besides, and where they may run.
#include "api/text/names.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/kinds.h"
#include "apiserver/kinds/pod/pod.h"
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

}  // namespace

KindHooks runtime_class_hooks() {
  const TableDefinition table = runtime_class_table();
  return {.validate_create = validate_runtime_class,
          .validate_update = validate_runtime_class_update,
          .columns = table.columns,
          .table_row = table.row};
}

}  // namespace spillway::apiserver::kinds
