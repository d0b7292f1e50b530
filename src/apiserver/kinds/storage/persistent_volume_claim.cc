#include "api/text/quantity.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/limits/limits.h"
#include "apiserver/kinds/pod/rules.h"
#include "apiserver/kinds/storage/volumes.h"

#include <optional>
#include <string>
#include <utility>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::string_view kClaimProtection = "kubernetes.io/pvc-protection";
constexpr std::string_view kClasses = "storageclasses.storage.k8s.io";

const Json& requested(const Json& claim) {
  const Json* amount = claim.at({"spec", "resources", "requests", "storage"});
  static const Json kNothing;
  return amount == nullptr ? kNothing : *amount;
}

std::optional<api::Quantity> quantity_of(const Json& amount) {
  const std::string* text = amount.if_string();
  if (text == nullptr) return std::nullopt;
  const auto parsed = api::parse_quantity(*text);
  return parsed ? std::optional(*parsed) : std::nullopt;
}

/// The name of the newest default class, of equally old ones the first by name.
std::optional<std::string> default_class(const AdmissionContext& context) {
  std::optional<std::pair<std::string, std::string>> newest;  // created, name
  context.cluster.visit(kClasses, "", [&newest](const Json& each) {
    if (!is_default_class(each)) return true;
    std::string created(each.string_at({"metadata", "creationTimestamp"}));
    std::string name(each.string_at({"metadata", "name"}));
    const bool better = !newest || created > newest->first || (created == newest->first && name < newest->second);
    if (better) newest = {std::move(created), std::move(name)};
    return true;
  });
  if (!newest) return std::nullopt;
  return std::move(newest->second);
}

/// Copies each of dataSource and dataSourceRef to the other where that is absent.
void join_data_sources(Json& spec) {
  const bool source = has(spec, "dataSource");
  const bool reference = has(spec, "dataSourceRef");
  if (source && !reference) spec["dataSourceRef"] = Json(value_of(std::as_const(spec), "dataSource"));
  if (!source && reference && !has(value_of(std::as_const(spec), "dataSourceRef"), "namespace")) {
    spec["dataSource"] = Json(value_of(std::as_const(spec), "dataSourceRef"));
  }
}

/// The specification without the fields that an update may change in the claim's present phase.
Json fixed_part(const Json& claim, const Json& old) {
  Json spec = value_of(claim, "spec");
  if (!spec.is_object()) return spec;
  if (text(value_of(old, "spec"), "volumeName").empty()) spec.erase({"volumeName"});
  if (!has(value_of(old, "spec"), "storageClassName")) spec.erase({"storageClassName"});
  if (value_of(old, "status").string_at({"phase"}) != "Bound") return spec;
  spec.erase({"volumeAttributesClassName"});
  if (spec.find("resources") == nullptr) return spec;
  Json* requests = spec.at({"resources", "requests"});
  if (requests != nullptr) requests->erase({"storage"});
  return spec;
}

}  // namespace

void default_claim(Json& claim) {
  Json& spec = claim.make({"spec"});
  if (spec.is_object() && !has(spec, "volumeMode")) spec["volumeMode"] = "Filesystem";
}

api::StatusResult<void> admit_claim(Json& claim, const AdmissionContext& context) {
  add_finalizer(claim, kClaimProtection);
  claim["status"] = Json::object({{"phase", "Pending"}});
  Json& spec = claim.make({"spec"});
  if (!spec.is_object()) return {};
  join_data_sources(spec);
  const Json* annotated = std::as_const(claim).at({"metadata", "annotations", kBetaStorageClass});
  if (annotated != nullptr || has(spec, "storageClassName")) return {};
  if (auto name = default_class(context)) spec["storageClassName"] = *std::move(name);
  return {};
}

void validate_claim(const Json& claim, FieldErrors& errors) {
  const CheckedField spec(claim.find("spec"), "spec", errors);
  check_claim_spec(spec);
}

api::StatusResult<void> admit_claim_update(Json& claim, const Json& old, Endpoint endpoint,
                                           const AdmissionContext& context) {
  if (endpoint != Endpoint::kMain) return {};
  SPILLWAY_TRY_VOID(confirm_claim_limits(claim, context));
  const auto before = quantity_of(requested(old));
  const auto after = quantity_of(requested(claim));
  if (!before || !after || *after <= *before) return {};
  const auto refuse = [&](std::string_view why) {
    return api::forbidden_status({"", "persistentvolumeclaims"}, claim.string_at({"metadata", "name"}), why);
  };
  if (old.string_at({"status", "phase"}) != "Bound") {
    return refuse("Only bound persistent volume claims can be expanded");
  }
  const auto found = context.cluster.find(kClasses, "", class_name_of(claim));
  if (found && is_true(*found, "allowVolumeExpansion")) return {};
  return refuse(
      "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support "
      "resize");
}

void validate_claim_update(const Json& claim, const Json& old, Endpoint endpoint, FieldErrors& errors) {
  if (endpoint == Endpoint::kStatus) {
    return validate_amounts(value_of(value_of(claim, "status"), "capacity"), "status.capacity", errors);
  }
  validate_claim(claim, errors);
  const auto class_annotation = [](const Json& one) {
    return one.string_at({"metadata", "annotations", kBetaStorageClass});
  };
  if (class_annotation(claim) != class_annotation(old)) {
    errors.invalid("metadata.annotations[" + std::string(kBetaStorageClass) + "]", class_annotation(claim), kImmutable);
  }
  if (fixed_part(claim, old) != fixed_part(old, old)) {
    errors.forbidden(
        "spec",
        "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims");
  }
  const bool loses_class = !has(value_of(claim, "spec"), "volumeAttributesClassName") &&
                           has(value_of(old, "spec"), "volumeAttributesClassName");
  if (loses_class && has(value_of(old, "status"), "currentVolumeAttributesClassName"))
    errors.forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden");
  const auto size = quantity_of(requested(claim));
  const auto before = quantity_of(requested(old));
  const Json* capacity = old.at({"status", "capacity", "storage"});
  const auto held = capacity == nullptr ? std::nullopt : quantity_of(*capacity);
  if (size && before && *size < *before && (!held || *size <= *held)) {
    errors.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity");
  }
  if (value_of(value_of(claim, "spec"), "volumeMode") != value_of(value_of(old, "spec"), "volumeMode")) {
    errors.invalid("volumeMode", value_of(value_of(claim, "spec"), "volumeMode"), kImmutable);
  }
}

}  // namespace spillway::apiserver::kinds
