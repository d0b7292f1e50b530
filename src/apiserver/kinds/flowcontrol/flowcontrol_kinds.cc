#include "apiserver/kinds/flowcontrol/flowcontrol_kinds.h"

#include "apiserver/kinds/fields/checked_field.h"
#include "apiserver/kinds/groups.h"

#include <set>
#include <string_view>

namespace spillway::apiserver::kinds {

void validate_flow_conditions(const api::Json& object, api::FieldErrors& errors) {
  const CheckedField status(object.find("status"), "status", errors);
  const CheckedField conditions = status["conditions"];
  std::set<std::string_view> seen;
  conditions.each([&seen](const CheckedField& condition) {
    const CheckedField type = condition["type"];
    if (!seen.insert(type.text()).second) type.duplicate();
    if (type.text().empty()) type.required("must not be empty");
  });
}

std::vector<Resource> flow_control_kinds() {
  return {flow_schema_kind(), priority_level_kind()};
}

}  // namespace spillway::apiserver::kinds
