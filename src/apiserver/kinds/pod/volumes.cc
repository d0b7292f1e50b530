// The list of volumes of a pod: names, one source each. Sources are validated by the table; rules beyond required
// members are in the files by family.
#include "api/text/names.h"
#include "apiserver/kinds/pod/rules.h"

#include <fmt/format.h>

#include <array>
#include <set>

namespace spillway::apiserver::kinds {

namespace {

struct VolumeSource {
  std::string_view name;
  /// Members that must not be empty: texts and lists.
  std::array<std::string_view, 3> required;
  /// Further rules; null: none.
  void (*check)(const CheckedField& source) = nullptr;
  /// The path in errors, if it is not `name`.
  std::string_view shown = {};
};

void check_empty_dir(const CheckedField& source) {
  const CheckedField limit = source["sizeLimit"];
  const auto size = limit.quantity();
  if (size && size->sign() < 0) limit.forbidden("SizeLimit field must be a valid resource quantity");
}

/// In upstream's order: the first of several sources counts, each further one is an error.
constexpr std::array<VolumeSource, 30> kVolumeSources{{
    {"emptyDir", {}, check_empty_dir},
    {"hostPath", {}, check_host_path},
    {"gitRepo", {"repository"}, check_git_repo},
    {"gcePersistentDisk", {"pdName"}, check_google_disk, "persistentDisk"},
    {"awsElasticBlockStore", {"volumeID"}, check_amazon_disk},
    {"secret", {"secretName"}, check_secret_volume},
    {"nfs", {"server", "path"}, check_nfs},
    {"iscsi", {"targetPortal", "iqn"}, check_iscsi},
    {"glusterfs", {"endpoints", "path"}},
    {"flocker", {}, check_flocker},
    {"persistentVolumeClaim", {"claimName"}},
    {"rbd", {"monitors", "image"}},
    {"cinder", {"volumeID"}, check_cinder},
    {"cephfs", {"monitors"}},
    {"quobyte", {"volume"}, check_quobyte},
    {"downwardAPI", {}, check_downward_volume},
    {"fc", {}, check_fibre_channel},
    {"flexVolume", {"driver"}, check_flex_volume},
    {"configMap", {"name"}, check_config_map_volume},
    {"azureFile", {"secretName", "shareName"}},
    {"vsphereVolume", {"volumePath"}},
    {"photonPersistentDisk", {"pdID"}},
    {"portworxVolume", {"volumeID"}},
    {"azureDisk", {"diskName", "diskURI"}, check_azure_disk},
    {"storageos", {"volumeName"}, check_storage_os},
    {"projected", {}, check_projected},
    {"scaleIO", {"gateway", "system", "volumeName"}},
    {"csi", {"driver"}, check_csi},
    {"ephemeral", {}, check_ephemeral_volume},
    {"image", {"reference"}, check_image_volume},
}};

void check_source(const CheckedField& source, const VolumeSource& rule) {
  for (const std::string_view name : rule.required) {
    if (name.empty()) break;
    const CheckedField member = source[name];
    if (member.text().empty() && member.empty()) member.required();
  }
  if (rule.check != nullptr) rule.check(source);
}

void check_sources(const CheckedField& volume) {
  bool seen = false;
  for (const VolumeSource& rule : kVolumeSources) {
    const CheckedField source = volume[rule.name];
    if (!source) continue;
    if (seen) {
      source.forbidden("may not specify more than 1 volume type");
      continue;
    }
    seen = true;
    check_source(volume.member(rule.name, rule.shown.empty() ? rule.name : rule.shown), rule);
  }
  if (!seen) volume.required("must specify a volume type");
}

/// Claims and initiators are named after the volume.
void check_derived_names(const CheckedField& volume, std::string_view pod_name) {
  const CheckedField name = volume["name"];
  const CheckedField ephemeral = volume["ephemeral"];
  if (ephemeral && !pod_name.empty() && !name.text().empty()) {
    const std::string claim = fmt::format("{}-{}", pod_name, name.text());
    for (const std::string& problem : api::dns1123_subdomain_errors(claim)) {
      name.invalid(fmt::format("PVC name \"{}\": {}", claim, problem));
    }
  }
  const CheckedField iscsi = volume["iscsi"];
  const CheckedField initiator = iscsi["initiatorName"];
  const CheckedField portal = iscsi["targetPortal"];
  if (initiator && name.text().size() + 1 + portal.text().size() > 64) {
    name.invalid(
        "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is "
        "specified.");
  }
}

/// The names of claims that are made for the pod.
std::set<std::string> made_claims(const CheckedField& volumes, std::string_view pod_name) {
  std::set<std::string> names;
  if (pod_name.empty()) return names;
  for (const api::Json& volume : volumes.elements()) {
    const api::Json* ephemeral = volume.find("ephemeral");
    if (ephemeral == nullptr || !ephemeral->is_object()) continue;
    names.insert(fmt::format("{}-{}", pod_name, volume.string_at({"name"})));
  }
  return names;
}

}  // namespace

VolumesByName check_volumes(const CheckedField& volumes, std::string_view pod_name) {
  VolumesByName good;
  const std::set<std::string> claims = made_claims(volumes, pod_name);
  volumes.each([&](const CheckedField& volume) {
    const std::size_t errors_before = volume.errors().errors().size();
    check_sources(volume);
    check_derived_names(volume, pod_name);
    const CheckedField name = volume["name"];
    if (name.require_text()) name.require_valid(api::dns1123_label_errors(name.text()));
    if (good.contains(name.text())) name.duplicate();
    if (volume.errors().errors().size() == errors_before) good.emplace(name.text(), &volume.json());
    const CheckedField claim = volume["persistentVolumeClaim"];
    const CheckedField claim_name = claim["claimName"];
    if (claims.contains(std::string(claim_name.text()))) {
      claim_name.invalid("must not reference a PVC that gets created for an ephemeral volume");
    }
  });
  return good;
}

}  // namespace spillway::apiserver::kinds
