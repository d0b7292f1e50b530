// MutatingWebhookConfigurations and ValidatingWebhookConfigurations: the webhooks that are called before a write.
#include "apiserver/kinds/admissionregistration/admissionregistration_kinds.h"
#include "apiserver/kinds/admissionregistration/webhook_rules.h"
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/row_parts.h"

#include <array>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array kColumns{TableColumn{"Name", "string", "name", 0, "Name of the object"},
                              TableColumn{"Webhooks", "integer", "", 0, "Webhooks of the configuration"},
                              TableColumn{"Age", "string", "", 0, "Time since creation"}};

TableRow configuration_row(const api::Json& object, WallTime now) {
  return {{object.string_at({"metadata", "name"}), static_cast<std::int64_t>(elements(object, "webhooks").size()),
           age_of(object, now)},
          nullptr};
}

}  // namespace

Resource mutating_webhook_configuration_kind() {
  static const KindHooks kHooks{.set_defaults = default_mutating_webhooks,
                                .validate_create = validate_webhooks,
                                .compiles_expressions = true,
                                .columns = kColumns,
                                .table_row = configuration_row};
  return {.group = "admissionregistration.k8s.io",
          .version = "v1",
          .plural = "mutatingwebhookconfigurations",
          .singular = "mutatingwebhookconfiguration",
          .kind = "MutatingWebhookConfiguration",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs,
          .storage = below("mutatingwebhookconfigurations"),
          .categories = kExtensions,
          .counts_generation = true,
          .requires_version = true,
          .metadata = kWholeOnly,
          .hooks = &kHooks};
}

Resource validating_webhook_configuration_kind() {
  static const KindHooks kHooks{.set_defaults = default_webhooks,
                                .validate_create = validate_webhooks,
                                .compiles_expressions = true,
                                .columns = kColumns,
                                .table_row = configuration_row};
  return {.group = "admissionregistration.k8s.io",
          .version = "v1",
          .plural = "validatingwebhookconfigurations",
          .singular = "validatingwebhookconfiguration",
          .kind = "ValidatingWebhookConfiguration",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs,
          .storage = below("validatingwebhookconfigurations"),
          .categories = kExtensions,
          .counts_generation = true,
          .requires_version = true,
          .metadata = kWholeOnly,
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
