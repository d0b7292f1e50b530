#include "apiserver/access/pod_references.h"

#include <algorithm>
#include <string>

namespace spillway::apiserver {

namespace {

using api::Json;

struct Row {
  ReferenceKind kind;
  /// Members below spec, joined by '.'; "*containers" stands for all three lists of containers. Lists on the way are
  /// walked. The value at the end is the name; if that is not a string, the reference has no name.
  std::string_view path;
};

constexpr Row kRows[] = {
    {ReferenceKind::kServiceAccount, "serviceAccountName"},
    {ReferenceKind::kServiceAccount, "serviceAccount"},
    {ReferenceKind::kSecret, "imagePullSecrets.name"},
    {ReferenceKind::kSecret, "*containers.envFrom.secretRef.name"},
    {ReferenceKind::kSecret, "*containers.env.valueFrom.secretKeyRef.name"},
    {ReferenceKind::kSecret, "volumes.secret.secretName"},
    {ReferenceKind::kSecret, "volumes.projected.sources.secret.name"},
    {ReferenceKind::kSecret, "volumes.csi.nodePublishSecretRef.name"},
    {ReferenceKind::kSecret, "volumes.azureFile.secretName"},
    {ReferenceKind::kSecret, "volumes.cephfs.secretRef.name"},
    {ReferenceKind::kSecret, "volumes.cinder.secretRef.name"},
    {ReferenceKind::kSecret, "volumes.flexVolume.secretRef.name"},
    {ReferenceKind::kSecret, "volumes.iscsi.secretRef.name"},
    {ReferenceKind::kSecret, "volumes.rbd.secretRef.name"},
    {ReferenceKind::kSecret, "volumes.scaleIO.secretRef.name"},
    {ReferenceKind::kSecret, "volumes.storageos.secretRef.name"},
    {ReferenceKind::kConfigMap, "*containers.envFrom.configMapRef.name"},
    {ReferenceKind::kConfigMap, "*containers.env.valueFrom.configMapKeyRef.name"},
    {ReferenceKind::kConfigMap, "volumes.configMap.name"},
    {ReferenceKind::kConfigMap, "volumes.projected.sources.configMap.name"},
    {ReferenceKind::kPersistentVolumeClaim, "volumes.persistentVolumeClaim.claimName"},
    {ReferenceKind::kPersistentVolumeClaim, "volumes.ephemeral.volumeClaimTemplate"},
    {ReferenceKind::kServiceAccountToken, "volumes.projected.sources.serviceAccountToken"},
    {ReferenceKind::kClusterTrustBundle, "volumes.projected.sources.clusterTrustBundle"},
    {ReferenceKind::kResourceClaim, "resourceClaims.name"},
};

constexpr std::string_view kAnyContainers = "*containers.";
constexpr std::string_view kContainerLists[] = {"containers", "initContainers", "ephemeralContainers"};

using Found = std::function<bool(const Json&)>;

/// False: `found` has stopped it.
bool follow(const Json& at, std::string_view path, const Found& found) {
  if (const Json::Array* list = at.if_array()) {
    return std::ranges::all_of(*list, [&](const Json& one) { return follow(one, path, found); });
  }
  if (path.empty()) return found(at);
  const std::size_t dot = path.find('.');
  const Json* member = at.find(path.substr(0, dot));
  if (member == nullptr) return true;
  return follow(*member, dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1), found);
}

bool follow_row(const Json& spec, std::string_view path, const Found& found) {
  if (!path.starts_with(kAnyContainers)) return follow(spec, path, found);
  return std::ranges::all_of(kContainerLists, [&](std::string_view list) {
    const Json* containers = spec.find(list);
    return containers == nullptr || follow(*containers, path.substr(kAnyContainers.size()), found);
  });
}

}  // namespace

std::string_view plural_of(ReferenceKind kind) {
  switch (kind) {
    case ReferenceKind::kServiceAccount:
      return "serviceaccounts";
    case ReferenceKind::kSecret:
      return "secrets";
    case ReferenceKind::kConfigMap:
      return "configmaps";
    case ReferenceKind::kPersistentVolumeClaim:
      return "persistentvolumeclaims";
    case ReferenceKind::kServiceAccountToken:
      return "serviceaccounttokens";
    case ReferenceKind::kClusterTrustBundle:
      return "clustertrustbundles";
    case ReferenceKind::kResourceClaim:
      return "resourceclaims";
  }
  return {};
}

bool visit_references(const Json& pod, const std::function<bool(ReferenceKind, std::string_view)>& visit) {
  const Json* spec = pod.find("spec");
  if (spec == nullptr) return true;
  return std::ranges::all_of(kRows, [&](const Row& row) {
    return follow_row(*spec, row.path, [&](const Json& value) {
      const std::string* name = value.if_string();
      if (name != nullptr && name->empty()) return true;  // unset
      return visit(row.kind, name == nullptr ? std::string_view() : std::string_view(*name));
    });
  });
}

bool refers_to(const Json& pod, ReferenceKind kind, std::string_view name) {
  return !visit_references(
      pod, [&](ReferenceKind found, std::string_view named) { return found != kind || named != name || name.empty(); });
}

}  // namespace spillway::apiserver
