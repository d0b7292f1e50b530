#include "api/text/names.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/storage/volumes.h"

#include <string_view>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

void validate_capacity(const Json& object, FieldErrors& errors) {
  const Json& topology = value_of(object, "nodeTopology");
  if (!topology.is_null()) validate_label_selector(topology, "nodeTopology", errors);
  const CheckedField storage_class(object.find("storageClassName"), "storageClassName", errors);
  storage_class.require_valid(api::dns1123_subdomain_errors(storage_class.text()));
  const CheckedField capacity(object.find("capacity"), "capacity", errors);
  const auto amount = capacity.quantity();
  if (amount && amount->sign() < 0) capacity.invalid("must be greater than or equal to 0");
}

}  // namespace

/// Upstream validates a new one twice.
void validate_storage_capacity(const Json& object, FieldErrors& errors) {
  add_repeatedly(2, errors, [&object](FieldErrors& found) { validate_capacity(object, found); });
}

/// Validates that topology and class stay the same; only the capacity may change.
void validate_storage_capacity_update(const Json& object, const Json& old, Endpoint, FieldErrors& errors) {
  validate_capacity(object, errors);
  for (const std::string_view name : {"nodeTopology", "storageClassName"}) {
    if (value_of(object, name) != value_of(old, name)) errors.invalid(name, value_of(object, name), kImmutable);
  }
}

}  // namespace spillway::apiserver::kinds
