#include "api/text/names.h"
#include "apiserver/kinds/fields/checked_field.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/storage/volumes.h"
#include "base/ascii.h"

#include <fmt/format.h>

#include <array>
#include <set>
#include <utility>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::size_t kParametersMax = 512;
constexpr std::size_t kParameterBytesMax = 256U << 10U;
constexpr std::array<std::string_view, 2> kClassReclaimPolicies{"Delete", "Retain"};
constexpr std::array<std::string_view, 2> kBindingModes{"Immediate", "WaitForFirstConsumer"};

/// "kubernetes.io/no-provisioner", in any case.
void check_provisioner(const CheckedField& provisioner) {
  if (provisioner.require_text()) provisioner.require_valid(api::qualified_name_errors(lower_case(provisioner.text())));
}

void check_parameters(const CheckedField& parameters) {
  const Json::Object* members = parameters.json().if_object();
  if (members == nullptr) return;
  if (members->size() > kParametersMax)
    parameters.errors().too_long("Provisioner Parameters exceeded max allowed", kParametersMax);
  std::size_t bytes = 0;
  for (const auto& member : *members) {
    if (member.key.empty()) parameters.invalid(member.key, "field can not be empty.");
    bytes += member.key.size() + member.value.string_at({}).size();
  }
  if (bytes > kParameterBytesMax) parameters.too_long(kParameterBytesMax);
}

void check_topologies(const CheckedField& topologies) {
  topologies.each([](const CheckedField& term) {
    const CheckedField expressions = term["matchLabelExpressions"];
    std::set<std::string_view> keys;
    expressions.each([&keys](const CheckedField& expression) {
      const CheckedField key = expression["key"];
      const CheckedField values = expression["values"];
      key.require_valid(api::qualified_name_errors(key.text()));
      if (!keys.insert(key.text()).second) key.duplicate();
      if (values.empty()) values.required();
    });
  });
}

}  // namespace

bool is_default_class(const Json& storage_class) {
  const auto says_so = [&](std::string_view annotation) {
    return storage_class.string_at({"metadata", "annotations", annotation}) == "true";
  };
  return says_so("storageclass.kubernetes.io/is-default-class") ||
         says_so("storageclass.beta.kubernetes.io/is-default-class");
}

std::string_view class_name_of(const Json& object) {
  if (object.at({"metadata", "annotations", kBetaStorageClass}) != nullptr) {
    return object.string_at({"metadata", "annotations", kBetaStorageClass});
  }
  return object.string_at({"spec", "storageClassName"});
}

void default_storage_class(Json& storage_class) {
  if (!has(storage_class, "reclaimPolicy")) storage_class["reclaimPolicy"] = "Delete";
  if (!has(storage_class, "volumeBindingMode")) storage_class["volumeBindingMode"] = "Immediate";
}

void validate_storage_class(const Json& storage_class, FieldErrors& errors) {
  const CheckedField provisioner(storage_class.find("provisioner"), "provisioner", errors);
  check_provisioner(provisioner);
  const CheckedField parameters(storage_class.find("parameters"), "parameters", errors);
  check_parameters(parameters);
  const CheckedField policy(storage_class.find("reclaimPolicy"), "reclaimPolicy", errors);
  policy.optional_one_of(kClassReclaimPolicies);
  const CheckedField mode(storage_class.find("volumeBindingMode"), "volumeBindingMode", errors);
  if (!mode) {
    mode.required();
  } else {
    mode.require_one_of(kBindingModes);
  }
  const CheckedField topologies(storage_class.find("allowedTopologies"), "allowedTopologies", errors);
  check_topologies(topologies);
}

void validate_attributes_class(const Json& attributes_class, FieldErrors& errors) {
  const CheckedField driver(attributes_class.find("driverName"), "driverName", errors);
  check_provisioner(driver);
  const CheckedField parameters(attributes_class.find("parameters"), "parameters", errors);
  check_parameters(parameters);
  const Json::Object* members = parameters.json().if_object();
  if (members == nullptr || members->empty()) parameters.required("must contain at least one key/value pair");
}

void validate_attributes_class_update(const Json& attributes_class, const Json& old, Endpoint, FieldErrors& errors) {
  validate_attributes_class(attributes_class, errors);
  for (const std::string_view name : {"driverName", "parameters"}) {
    if (value_of(attributes_class, name) != value_of(old, name))
      errors.forbidden(name, fmt::format("updates to {} are forbidden.", name));
  }
}

void validate_storage_class_update(const Json& storage_class, const Json& old, Endpoint, FieldErrors& errors) {
  validate_storage_class(storage_class, errors);
  for (const std::string_view name : {"parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"}) {
    if (value_of(storage_class, name) != value_of(old, name)) {
      errors.invalid(name, value_of(storage_class, name), kImmutable);
    }
  }
}

}  // namespace spillway::apiserver::kinds
