#include "apiserver/kinds/admissionregistration/admissionregistration_kinds.h"

#include "apiserver/kinds/groups.h"

namespace spillway::apiserver::kinds {

std::vector<Resource> admission_registration_kinds() {
  return {mutating_webhook_configuration_kind(), validating_admission_policy_kind(),
          validating_admission_policy_binding_kind(), validating_webhook_configuration_kind()};
}

}  // namespace spillway::apiserver::kinds
