// Volumes behind claims and drivers: disks of clouds, CSI, claims made for the pod.
#include "api/text/names.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/pod/rules.h"
#include "base/ascii.h"

#include <algorithm>
#include <array>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::int64_t kPartitionMax = 255;
constexpr std::size_t kDriverNameMax = 63;
constexpr std::array<std::string_view, 3> kCachingModes{"None", "ReadOnly", "ReadWrite"};
constexpr std::array<std::string_view, 3> kDiskKinds{"Dedicated", "Managed", "Shared"};
constexpr std::array<std::string_view, 1> kManagedDisk{
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"};
constexpr std::array<std::string_view, 1> kBlobDisk{
    "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"};
constexpr std::string_view kOncePod = "ReadWriteOncePod";
constexpr std::array<std::string_view, 4> kAccessModes{"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", kOncePod};
constexpr std::array<std::string_view, 2> kVolumeModes{"Block", "Filesystem"};
/// The metadata that a claim template may have.
constexpr std::array<std::string_view, 3> kTemplateMetadata{"annotations", "creationTimestamp", "labels"};

void check_template_metadata(const CheckedField& metadata) {
  const CheckedField annotations = metadata["annotations"];
  annotations.each_key([&](std::string_view key, const CheckedField&) {
    for (const std::string& problem : annotation_key_errors(key)) annotations.invalid(key, problem);
  });
  const CheckedField labels = metadata["labels"];
  if (labels) validate_labels(labels.json(), labels.path(), labels.errors());
  if (metadata.json().if_object() == nullptr) return;
  for (const auto& member : *metadata.json().if_object()) {
    if (std::ranges::find(kTemplateMetadata, member.key) != kTemplateMetadata.end()) continue;
    const CheckedField field = metadata[member.key];
    field.forbidden("cannot be set for an ephemeral volume");
  }
}

void check_access_modes(const CheckedField& modes) {
  if (modes.empty()) modes.required("at least 1 access mode is required");
  bool once_pod = false;
  bool other = false;
  for (const api::Json& mode : modes.elements()) {
    const std::string_view name = mode.string_at({});
    if (std::ranges::find(kAccessModes, name) == kAccessModes.end()) {
      modes.errors().not_supported(modes.path(), mode, kAccessModes);
      continue;
    }
    (name == kOncePod ? once_pod : other) = true;
  }
  if (once_pod && other) modes.forbidden("may not use ReadWriteOncePod with other access modes");
}

void check_requested_storage(const CheckedField& resources) {
  const CheckedField requests = resources["requests"];
  const CheckedField request = requests["storage"];
  const CheckedField shown = resources.key("storage");
  const auto amount = request.quantity();
  if (!amount) {
    shown.required();
  } else if (amount->sign() <= 0) {
    shown.invalid(request.json(), "must be greater than zero");
  }
}

void check_data_source(const CheckedField& source) {
  const CheckedField name = source["name"];
  const CheckedField kind = source["kind"];
  const CheckedField group = source["apiGroup"];
  name.require_text();
  kind.require_text();
  if (group.text().empty() && kind.text() != "PersistentVolumeClaim") source.invalid(kind.json(), "");
  if (!group.text().empty()) group.require_valid(api::dns1123_subdomain_errors(group.text()));
}

void check_data_sources(const CheckedField& spec) {
  const CheckedField source = spec["dataSource"];
  const CheckedField reference = spec["dataSourceRef"];
  if (source) check_data_source(source);
  if (reference) check_data_source(reference);
  if (!source || !reference) return;
  const auto same = [&](std::string_view member) { return source[member].json() == reference[member].json(); };
  if (!same("apiGroup") || !same("kind") || !same("name")) {
    spec.invalid(source.path(), "must match dataSourceRef");
  }
}

}  // namespace

void check_claim_spec(const CheckedField& spec) {
  check_access_modes(spec["accessModes"]);
  const CheckedField selector = spec["selector"];
  if (selector) validate_label_selector(selector.json(), selector.path(), selector.errors());
  const CheckedField resources = spec["resources"];
  check_requested_storage(resources);
  const CheckedField storage_class = spec["storageClassName"];
  if (!storage_class.text().empty()) storage_class.require_valid(api::dns1123_subdomain_errors(storage_class.text()));
  const CheckedField mode = spec["volumeMode"];
  mode.optional_one_of(kVolumeModes);
  check_data_sources(spec);
  const CheckedField attributes = spec["volumeAttributesClassName"];
  if (!attributes.text().empty()) attributes.require_valid(api::dns1123_subdomain_errors(attributes.text()));
}

void check_google_disk(const CheckedField& source) {
  const CheckedField partition = source["partition"];
  partition.require_between(0, kPartitionMax);
}

void check_amazon_disk(const CheckedField& source) {
  const CheckedField partition = source["partition"];
  partition.require_between(0, kPartitionMax);
}

void check_azure_disk(const CheckedField& source) {
  const CheckedField caching = source["cachingMode"];
  caching.optional_one_of(kCachingModes);
  const CheckedField kind = source["kind"];
  kind.optional_one_of(kDiskKinds);
  if (!kind) return;
  const CheckedField uri = source["diskURI"];
  const bool managed = kind.text() == "Managed";
  if (uri.text().starts_with(managed ? "/subscriptions/" : "https://")) return;
  uri.not_supported(managed ? kManagedDisk : kBlobDisk);
}

void check_csi(const CheckedField& source) {
  const CheckedField driver = source["driver"];
  if (!driver.text().empty()) {
    if (driver.text().size() > kDriverNameMax) driver.too_long(kDriverNameMax);
    driver.require_valid(api::dns1123_subdomain_errors(lower_case(driver.text())));
  }
  const CheckedField secret = source["nodePublishSecretRef"];
  const CheckedField name = secret["name"];
  if (secret && name.require_text()) name.require_valid(api::dns1123_subdomain_errors(name.text()));
}

void check_ephemeral_volume(const CheckedField& source) {
  const CheckedField claim = source["volumeClaimTemplate"];
  if (!claim) return claim.required();
  check_template_metadata(claim["metadata"]);
  check_claim_spec(claim["spec"]);
}

}  // namespace spillway::apiserver::kinds
