// Leases: a holder, and for how long.
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/groups.h"
#include "apiserver/kinds/row_parts.h"
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

constexpr std::array kLeaseColumns{kNameColumn, TableColumn{"Holder", "string", "", 0, "Who holds it"}, kAgeColumn};

TableRow lease_row(const api::Json& object, WallTime now) {
  return {{name_of(object), object.string_at({"spec", "holderIdentity"}), age_of(object, now)}, nullptr};
}

Resource lease_kind() {
  static const KindHooks kHooks{.prepare_create = drop_election,
                                .validate_create = validate_lease,
                                .prepare_update = drop_election_update,
                                .columns = kLeaseColumns,
                                .table_row = lease_row};
  return {.group = "coordination.k8s.io",
          .version = "v1",
          .plural = "leases",
          .singular = "lease",
          .kind = "Lease",
          .verbs = kAllVerbs,
          .storage = below("leases"),
          .put_creates = true,
          .requires_version = true,
          .renewed = true,
          .keeps_history = false,
          .metadata = {.update_whole = 0, .standard_finalizers = false},
          .hooks = &kHooks};
}

}  // namespace

std::vector<Resource> coordination_kinds() {
  return {lease_kind()};
}

}  // namespace spillway::apiserver::kinds
