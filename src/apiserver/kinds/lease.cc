// Leases: a holder, and for how long.
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/kinds.h"
#include "apiserver/kinds/tables.h"

namespace spillway::apiserver::kinds {

namespace {

void validate_lease(const api::Json& lease, api::FieldErrors& errors) {
  const api::Json& spec = value_of(lease, "spec");
  if (const auto duration = integer(spec, "leaseDurationSeconds"); duration && *duration <= 0) {
    errors.invalid("spec.leaseDurationSeconds", *duration, "must be greater than 0");
  }
  require_non_negative(spec, "leaseTransitions", "spec.leaseTransitions", errors);
}

/// Removes the members of coordinated leader election, whose feature is off.
void drop_election(api::Json& lease) {
  lease.erase({"spec", "strategy"});
  lease.erase({"spec", "preferredHolder"});
}

void drop_election_update(api::Json& lease, const api::Json&, Endpoint) {
  drop_election(lease);
}

}  // namespace

KindHooks lease_hooks() {
  const TableDefinition table = lease_table();
  return {.prepare_create = drop_election,
          .validate_create = validate_lease,
          .prepare_update = drop_election_update,
          .columns = table.columns,
          .table_row = table.row};
}

}  // namespace spillway::apiserver::kinds
