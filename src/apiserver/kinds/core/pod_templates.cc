// PodTemplates: a template of pods as an object of its own. Source: Kubernetes API reference, PodTemplate.
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/core/core_kinds.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/pod/pod.h"
#include "apiserver/kinds/row_parts.h"

#include <array>
#include <optional>
#include <string>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::array kTemplateColumns{
    TableColumn{"Name", "string", "name", 0, "Name of the object"},
    TableColumn{"Containers", "string", "", 0, "Names of the containers in the template"},
    TableColumn{"Images", "string", "", 0, "Images of the containers in the template"},
    TableColumn{"Pod Labels", "string", "", 0, "Labels of pods made from it"}};

void default_template_object(Json& object) {
  default_pod_template(object.make({"template"}));
}

void validate_template_object(const Json& object, FieldErrors& errors) {
  validate_pod_template(value_of(object, "template"), "template", errors);
}

void validate_template_update(const Json& object, const Json& old, Endpoint, FieldErrors& errors) {
  validate_pod_template(value_of(object, "template"), "template", errors, value_of(old, "template"));
}

TableRow template_row(const Json& object, WallTime) {
  const Json* pod_spec = object.at({"template", "spec"});
  return {{object.string_at({"metadata", "name"}), container_names(pod_spec), container_images(pod_spec),
           label_text(object.at({"template", "metadata", "labels"}))},
          nullptr};
}

}  // namespace

Resource pod_template_kind() {
  static const KindHooks kHooks{.set_defaults = default_template_object,
                                .validate_create = validate_template_object,
                                .validate_update = validate_template_update,
                                .columns = kTemplateColumns,
                                .table_row = template_row};
  return {.version = "v1",
          .plural = "podtemplates",
          .singular = "podtemplate",
          .kind = "PodTemplate",
          .verbs = kAllVerbs,
          .storage = below("podtemplates"),
          .counts_generation = true,
          .metadata = kChangeOnly,
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
