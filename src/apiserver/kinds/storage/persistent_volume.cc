#include "api/text/names.h"
#include "api/text/time_text.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/pod/rules.h"
#include "apiserver/kinds/storage/volumes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::string_view kProtection = "kubernetes.io/pv-protection";
constexpr std::string_view kOncePodMode = "ReadWriteOncePod";
constexpr std::string_view kSecondSource = "may not specify more than 1 volume type";
constexpr std::array<std::string_view, 4> kVolumeAccessModes{"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce",
                                                             kOncePodMode};
constexpr std::array<std::string_view, 2> kModes{"Block", "Filesystem"};
constexpr std::array<std::string_view, 3> kReclaimPolicies{"Delete", "Recycle", "Retain"};
constexpr std::array<std::string_view, 1> kStorageOnly{"storage"};

struct PersistentSource {
  std::string_view name;
  /// Members that must not be empty: texts and lists.
  std::array<std::string_view, 3> required;
  /// Further rules; null: none.
  void (*check)(const CheckedField& source) = nullptr;
  std::string_view shown = {};
};

void check_local(const CheckedField& source) {
  const CheckedField path = source["path"];
  if (path.require_text()) path.require_valid(backstep_errors(path.text()));
}

/// In upstream's order: the first of several sources counts, each further one is an error.
constexpr std::array<PersistentSource, 22> kPersistentSources{{
    {"hostPath", {}, check_host_path},
    {"gcePersistentDisk", {"pdName"}, check_google_disk, "persistentDisk"},
    {"awsElasticBlockStore", {"volumeID"}, check_amazon_disk},
    {"glusterfs", {"endpoints", "path"}},
    {"flocker", {}, check_flocker},
    {"nfs", {"server", "path"}, check_nfs},
    {"rbd", {"monitors", "image"}},
    {"quobyte", {"volume"}, check_quobyte},
    {"cephfs", {"monitors"}},
    {"iscsi", {"targetPortal", "iqn"}, check_iscsi},
    {"cinder", {"volumeID"}, check_cinder},
    {"fc", {}, check_fibre_channel},
    {"flexVolume", {"driver"}, check_flex_volume},
    {"azureFile", {"secretName", "shareName"}},
    {"vsphereVolume", {"volumePath"}},
    {"azureDisk", {"diskName", "diskURI"}, check_azure_disk},
    {"photonPersistentDisk", {"pdID"}},
    {"portworxVolume", {"volumeID"}},
    {"scaleIO", {"gateway", "system", "volumeName"}},
    {"local", {}, check_local},
    {"storageos", {"volumeName"}, check_storage_os},
    {"csi", {"driver", "volumeHandle"}, check_csi},
}};

void check_required_members(const CheckedField& source, const PersistentSource& rule) {
  for (const std::string_view name : rule.required) {
    if (name.empty()) break;
    const CheckedField member = source[name];
    if (member.text().empty() && member.empty()) member.required();
  }
  if (rule.check != nullptr) rule.check(source);
}

void check_volume_modes(const CheckedField& modes) {
  if (modes.empty()) modes.required();
  bool once_pod = false;
  bool other = false;
  for (const Json& mode : modes.elements()) {
    const std::string_view name = mode.string_at({});
    if (std::ranges::find(kVolumeAccessModes, name) == kVolumeAccessModes.end()) {
      modes.errors().not_supported(modes.path(), mode, kVolumeAccessModes);
    }
    (name == kOncePodMode ? once_pod : other) = true;
  }
  if (once_pod && other) modes.forbidden("may not use ReadWriteOncePod with other access modes");
}

void check_capacity(const CheckedField& capacity) {
  const Json::Object* amounts = capacity.json().if_object();
  if (amounts == nullptr || amounts->empty()) capacity.required();
  const CheckedField storage = capacity["storage"];
  if (!storage || amounts == nullptr || amounts->size() > 1) capacity.not_supported(kStorageOnly);
  capacity.each_key([](std::string_view, const CheckedField& amount) {
    const auto quantity = amount.quantity();
    if (!quantity) return;
    if (quantity->sign() < 0) amount.invalid("must be a valid resource quantity");
    if (quantity->sign() <= 0) amount.invalid("must be greater than zero");
  });
}

/// Checks the node affinity. Returns true if the volume has one.
bool check_volume_affinity(const CheckedField& affinity) {
  if (!affinity) return false;
  const CheckedField required = affinity["required"];
  if (required) {
    check_node_selector(required, ImpossibleValues::kAllowed);
  } else {
    required.required("must specify required node constraints");
  }
  return true;
}

void check_persistent_sources(const CheckedField& spec, bool has_affinity) {
  bool seen = false;
  for (const PersistentSource& rule : kPersistentSources) {
    const CheckedField source = spec.member(rule.name, rule.shown.empty() ? rule.name : rule.shown);
    if (!source) continue;
    if (std::exchange(seen, true)) {
      source.forbidden(kSecondSource);
      continue;
    }
    check_required_members(source, rule);
    if (rule.name == "local" && !has_affinity) {
      const CheckedField affinity = spec["nodeAffinity"];
      affinity.required("Local volume requires node affinity");
    }
  }
  if (!seen) spec.required("must specify a volume type");
}

bool is_root_path(std::string_view path) {
  return !path.empty() && path.find_first_not_of("/.") == std::string_view::npos && path.front() == '/' &&
         path.find("..") == std::string_view::npos;
}

/// Only a CSI driver can change attributes.
void check_attributes_class(const CheckedField& spec) {
  const CheckedField name = spec["volumeAttributesClassName"];
  if (!name) return;
  if (name.require_text("an empty string is disallowed"))
    name.require_valid(api::dns1123_subdomain_errors(name.text()));
  const CheckedField csi = spec["csi"];
  if (!csi) csi.required("has to be specified when using volumeAttributesClassName");
}

void check_volume_spec(const CheckedField& spec) {
  check_volume_modes(spec["accessModes"]);
  check_capacity(spec["capacity"]);
  const CheckedField policy = spec["persistentVolumeReclaimPolicy"];
  if (!policy.text().empty()) policy.require_one_of(kReclaimPolicies);
  check_persistent_sources(spec, check_volume_affinity(spec["nodeAffinity"]));
  const CheckedField host_path = spec["hostPath"];
  if (policy.text() == "Recycle" && is_root_path(host_path["path"].text())) {
    policy.forbidden("may not be 'recycle' for a hostPath mount of '/'");
  }
  const CheckedField storage_class = spec["storageClassName"];
  if (!storage_class.text().empty()) storage_class.require_valid(api::dns1123_subdomain_errors(storage_class.text()));
  spec["volumeMode"].optional_one_of(kModes);
  check_attributes_class(spec);
}

/// The volume's source: the member that is set.
Json source_of(const Json& volume) {
  const Json& spec = value_of(volume, "spec");
  Json found = Json::object();
  for (const PersistentSource& rule : kPersistentSources) {
    if (has(spec, rule.name)) found[rule.name] = value_of(spec, rule.name);
  }
  return found;
}

}  // namespace

void add_finalizer(Json& object, std::string_view finalizer) {
  Json& finalizers = object.make({"metadata", "finalizers"});
  if (finalizers.if_array() == nullptr) finalizers = Json::array();
  if (std::ranges::find(*finalizers.if_array(), Json(finalizer)) == finalizers.if_array()->end()) {
    finalizers.if_array()->push_back(Json(finalizer));
  }
}

void validate_amounts(const Json& amounts, std::string_view path, FieldErrors& errors) {
  const CheckedField field(&amounts, path, errors);
  field.each_key([](std::string_view, const CheckedField& amount) {
    const auto quantity = amount.quantity();
    if (quantity && quantity->sign() < 0) amount.invalid("must be greater than or equal to 0");
  });
}

void check_inline_volume(const CheckedField& spec) {
  constexpr std::string_view kNotInline = "may not be specified in the context of inline volumes";
  const CheckedField claim = spec["claimRef"];
  if (claim) claim.forbidden(kNotInline);
  const CheckedField capacity = spec["capacity"];
  if (capacity.json().if_object() != nullptr && !capacity.json().if_object()->empty()) capacity.forbidden(kNotInline);
  const CheckedField csi = spec["csi"];
  if (!csi) csi.required("has to be specified in the context of inline volumes");
  check_volume_modes(spec["accessModes"]);
  const CheckedField policy = spec["persistentVolumeReclaimPolicy"];
  if (!policy.text().empty() && policy.text() != "Retain") {
    policy.forbidden("may only be Retain in the context of inline volumes");
  }
  const CheckedField affinity = spec["nodeAffinity"];
  if (affinity) affinity.forbidden(kNotInline);
  check_persistent_sources(spec, false);
  const CheckedField storage_class = spec["storageClassName"];
  if (!storage_class.text().empty()) storage_class.forbidden(kNotInline);
  const CheckedField mode = spec["volumeMode"];
  if (mode && mode.text() != "Filesystem") {
    mode.forbidden("may not specify volumeMode other than Filesystem in the context of inline volumes");
  }
}

void default_persistent_volume(Json& volume) {
  Json& spec = volume.make({"spec"});
  if (!spec.is_object()) return;
  set_default(spec, "persistentVolumeReclaimPolicy", "Retain");
  if (!has(spec, "volumeMode")) spec["volumeMode"] = "Filesystem";
  Json* host_path = spec.find("hostPath");
  if (host_path != nullptr && host_path->is_object() && !has(*host_path, "type")) (*host_path)["type"] = "";
}

api::StatusResult<void> admit_persistent_volume(Json& volume, const AdmissionContext& context) {
  add_finalizer(volume, kProtection);
  volume["status"] = Json::object({{"phase", "Pending"}, {"lastPhaseTransitionTime", api::format_time(context.now)}});
  const Json source = source_of(volume);
  for (const auto& member : *source.if_object()) {
    if (member.key == "hostPath" || member.key == "local") continue;
    context.warnings.push_back(
        fmt::format("nodes of Spillway mount volumes of type hostPath and local: pods there that use this volume, of "
                    "type {}, wait",
                    member.key));
  }
  return {};
}

void validate_persistent_volume(const Json& volume, FieldErrors& errors) {
  const CheckedField spec(volume.find("spec"), "spec", errors);
  check_volume_spec(spec);
}

api::StatusResult<void> admit_persistent_volume_update(Json& volume, const Json& old, Endpoint endpoint,
                                                       const AdmissionContext& context) {
  if (endpoint != Endpoint::kStatus) return {};
  const Json& before = value_of(old, "status");
  Json& status = volume.make({"status"});
  if (!status.is_object() || text(status, "phase") == text(before, "phase")) return {};
  const bool stamped = has(status, "lastPhaseTransitionTime") &&
                       value_of(status, "lastPhaseTransitionTime") != value_of(before, "lastPhaseTransitionTime");
  if (!stamped) status["lastPhaseTransitionTime"] = api::format_time(context.now);
  return {};
}

void validate_persistent_volume_update(const Json& volume, const Json& old, Endpoint endpoint, FieldErrors& errors) {
  if (endpoint != Endpoint::kMain) return;
  validate_persistent_volume(volume, errors);
  const Json& spec = value_of(volume, "spec");
  const Json& before = value_of(old, "spec");
  if (source_of(volume) != source_of(old)) {
    errors.forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation");
  }
  if (value_of(spec, "volumeMode") != value_of(before, "volumeMode")) {
    errors.invalid("volumeMode", value_of(spec, "volumeMode"), kImmutable);
  }
  if (has(before, "nodeAffinity") && value_of(spec, "nodeAffinity") != value_of(before, "nodeAffinity")) {
    errors.invalid("nodeAffinity", value_of(spec, "nodeAffinity"), kImmutable);
  }
  if (has(before, "volumeAttributesClassName") && !has(spec, "volumeAttributesClassName"))
    errors.forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden");
}

}  // namespace spillway::apiserver::kinds
