#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/groups.h"
#include "apiserver/kinds/row_parts.h"
#include "apiserver/kinds/tables.h"

#include <array>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::int64_t kUserValueMax = 1'000'000'000;
constexpr std::array<std::string_view, 2> kPolicies{"Never", "PreemptLowerPriority"};

struct SystemClass {
  std::string_view name;
  std::int64_t value;
};

constexpr std::array<SystemClass, 2> kSystemClasses{
    {{"system-node-critical", 2'000'001'000}, {"system-cluster-critical", 2'000'000'000}}};

void default_priority_class(api::Json& object) {
  if (!has(object, "preemptionPolicy")) object["preemptionPolicy"] = "PreemptLowerPriority";
}

void validate_priority_class(const api::Json& object, api::FieldErrors& errors) {
  const std::string_view name = object.string_at({"metadata", "name"});
  const std::int64_t value = integer(object, "value").value_or(0);
  if (text(object, "preemptionPolicy").empty()) {
    errors.required("preemptionPolicy");
  } else {
    require_one_of(object, "preemptionPolicy", "preemptionPolicy", kPolicies, errors);
  }
  if (name.starts_with("system-")) {
    for (const SystemClass& known : kSystemClasses) {
      if (known.name == name && known.value == value) return;
    }
    errors.forbidden("metadata.name", "priority class names with 'system-' prefix are reserved for system use only");
  } else if (value > kUserValueMax) {
    errors.forbidden("value", "maximum allowed value of a user defined priority is 1000000000");
  }
}

void validate_priority_class_update(const api::Json& object, const api::Json& old, Endpoint, api::FieldErrors& errors) {
  if (integer(object, "value").value_or(0) != integer(old, "value").value_or(0)) {
    errors.forbidden("value", "may not be changed in an update.");
  }
  if (text(object, "preemptionPolicy") != text(old, "preemptionPolicy")) {
    errors.invalid("preemptionPolicy", value_of(object, "preemptionPolicy"), kImmutable);
  }
}

api::Status second_default(const api::Json& object) {
  return api::forbidden_status({"scheduling.k8s.io", "priorityclasses"}, object.string_at({"metadata", "name"}),
                               "another PriorityClass is already marked as default for all pods");
}

api::StatusResult<void> admit_one_default(api::Json& object, const AdmissionContext& context) {
  if (!is_true(object, "globalDefault")) return {};
  bool taken = false;
  const std::string_view name = object.string_at({"metadata", "name"});
  context.cluster.visit("priorityclasses.scheduling.k8s.io", "", [&taken, name](const api::Json& other) {
    taken = is_true(other, "globalDefault") && other.string_at({"metadata", "name"}) != name;
    return !taken;
  });
  if (taken) return second_default(object);
  return {};
}

api::StatusResult<void> admit_one_default_update(api::Json& object, const api::Json&, Endpoint,
                                                 const AdmissionContext& context) {
  return admit_one_default(object, context);
}

constexpr std::array kPriorityClassColumns{
    kNameColumn, TableColumn{"Value", "integer", "", 0, "Priority of its pods"},
    TableColumn{"Global-Default", "boolean", "", 0, "Whether pods without a class get it"}, kAgeColumn,
    TableColumn{"PreemptionPolicy", "string", "", 0, "Whether its pods preempt others"}};

TableRow priority_class_row(const api::Json& object, WallTime now) {
  const api::Json* is_default = object.find("globalDefault");
  return {{name_of(object), count_at(object, {"value"}), is_default != nullptr && is_default->if_bool().value_or(false),
           age_of(object, now), object.string_at({"preemptionPolicy"})},
          nullptr};
}

Resource priority_class_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"pc"};
  static const KindHooks kHooks{.set_defaults = default_priority_class,
                                .admit_create = admit_one_default,
                                .validate_create = validate_priority_class,
                                .admit_update = admit_one_default_update,
                                .validate_update = validate_priority_class_update,
                                .columns = kPriorityClassColumns,
                                .table_row = priority_class_row};
  return {.group = "scheduling.k8s.io",
          .version = "v1",
          .plural = "priorityclasses",
          .singular = "priorityclass",
          .kind = "PriorityClass",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs,
          .storage = below("priorityclasses"),
          .short_names = kShortNames,
          .counts_generation = true,
          .metadata = kChangeOnly,
          .hooks = &kHooks};
}

}  // namespace

std::vector<Resource> scheduling_kinds() {
  return {priority_class_kind()};
}

}  // namespace spillway::apiserver::kinds
