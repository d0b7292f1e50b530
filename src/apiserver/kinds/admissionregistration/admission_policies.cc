// ValidatingAdmissionPolicies and their bindings: expressions that requests must meet.
#include "apiserver/kinds/admissionregistration/admissionregistration_kinds.h"
#include "apiserver/kinds/admissionregistration/policy_rules.h"
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/row_parts.h"

#include <fmt/format.h>

#include <array>
#include <string>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::string_view kUnsetCell = "<unset>";

constexpr std::array kPolicyColumns{
    TableColumn{"Name", "string", "name", 0, "Name of the object"},
    TableColumn{"Validations", "integer", "", 0, "Validations of the policy"},
    TableColumn{"ParamKind", "string", "", 0, "Kind of the objects that parameters are taken from"},
    TableColumn{"Age", "string", "", 0, "Time since creation"}};

constexpr std::array kBindingColumns{TableColumn{"Name", "string", "name", 0, "Name of the object"},
                                     TableColumn{"PolicyName", "string", "", 0, "The policy that is put to work"},
                                     TableColumn{"ParamRef", "string", "", 0, "Where the parameters are"},
                                     TableColumn{"Age", "string", "", 0, "Time since creation"}};

const api::Json& spec_of(const api::Json& object) {
  return value_of(object, "spec");
}

TableRow policy_row(const api::Json& object, WallTime now) {
  const api::Json& kind = value_of(spec_of(object), "paramKind");
  std::string shown(kUnsetCell);
  if (kind.is_object()) shown = fmt::format("{}/{}", kind.string_at({"apiVersion"}), kind.string_at({"kind"}));
  return {{object.string_at({"metadata", "name"}),
           static_cast<std::int64_t>(elements(spec_of(object), "validations").size()), std::move(shown),
           age_of(object, now)},
          nullptr};
}

std::string param_text(const api::Json& ref) {
  if (!ref.is_object()) return std::string(kUnsetCell);
  const std::string_view name = ref.string_at({"name"});
  if (name.empty()) return selector_text(ref.find("selector"));
  return fmt::format("{}/{}", or_else(ref.string_at({"namespace"}), "*"), name);
}

TableRow policy_binding_row(const api::Json& object, WallTime now) {
  return {{object.string_at({"metadata", "name"}), object.string_at({"spec", "policyName"}),
           param_text(value_of(spec_of(object), "paramRef")), age_of(object, now)},
          nullptr};
}

}  // namespace

Resource validating_admission_policy_kind() {
  static const KindHooks kHooks{.set_defaults = default_policy,
                                .validate_create = validate_policy,
                                .compiles_expressions = true,
                                .columns = kPolicyColumns,
                                .table_row = policy_row};
  return {.group = "admissionregistration.k8s.io",
          .version = "v1",
          .plural = "validatingadmissionpolicies",
          .singular = "validatingadmissionpolicy",
          .kind = "ValidatingAdmissionPolicy",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs,
          .storage = below("validatingadmissionpolicies"),
          .categories = kExtensions,
          .subresources = kStatusOnly,
          .status_subresource = true,
          .counts_generation = true,
          .status_keeps_metadata = true,
          .requires_version = true,
          .metadata = kWholeOnly,
          .hooks = &kHooks};
}

Resource validating_admission_policy_binding_kind() {
  static const KindHooks kHooks{.set_defaults = default_policy_binding,
                                .validate_create = validate_policy_binding,
                                .columns = kBindingColumns,
                                .table_row = policy_binding_row};
  return {.group = "admissionregistration.k8s.io",
          .version = "v1",
          .plural = "validatingadmissionpolicybindings",
          .singular = "validatingadmissionpolicybinding",
          .kind = "ValidatingAdmissionPolicyBinding",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs,
          .storage = below("validatingadmissionpolicybindings"),
          .categories = kExtensions,
          .counts_generation = true,
          .requires_version = true,
          .metadata = kWholeOnly,
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
