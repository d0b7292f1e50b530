// MutatingWebhookConfigurations and ValidatingWebhookConfigurations: the webhooks that are called before a write.
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/kinds.h"
#include "apiserver/kinds/webhooks/webhook_rules.h"

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

KindHooks mutating_webhook_hooks() {
  return {.set_defaults = default_mutating_webhooks,
          .validate_create = validate_webhooks,
          .columns = kColumns,
          .table_row = configuration_row};
}

KindHooks validating_webhook_hooks() {
  return {.set_defaults = default_webhooks,
          .validate_create = validate_webhooks,
          .columns = kColumns,
          .table_row = configuration_row};
}

}  // namespace spillway::apiserver::kinds
