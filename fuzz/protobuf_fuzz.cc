// Any bytes as a protobuf request body: refused as a bad request or as too large, or a document in canonical form,
// which is the same after it has been at rest, and the same bytes from then on.
#include "api/schema/protobuf.h"
#include "api/schema/protobuf_writer.h"
#include "api/schema/typed.h"
#include "base/check.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

using namespace spillway;

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 28> kKinds = {{
    {"v1", "Pod"},
    {"v1", "Node"},
    {"v1", "ConfigMap"},
    {"v1", "Event"},
    {"v1", "Secret"},
    {"v1", "Service"},
    {"v1", "ServiceAccount"},
    {"v1", "Namespace"},
    {"v1", "PersistentVolume"},
    {"v1", "PersistentVolumeClaim"},
    {"v1", "ResourceQuota"},
    {"apps/v1", "Deployment"},
    {"apps/v1", "ReplicaSet"},
    {"apps/v1", "DaemonSet"},
    {"apps/v1", "ControllerRevision"},
    {"policy/v1", "Eviction"},
    {"policy/v1", "PodDisruptionBudget"},
    {"coordination.k8s.io/v1", "Lease"},
    {"authorization.k8s.io/v1", "SubjectAccessReview"},
    {"rbac.authorization.k8s.io/v1", "Role"},
    {"rbac.authorization.k8s.io/v1", "ClusterRole"},
    {"rbac.authorization.k8s.io/v1", "RoleBinding"},
    {"scheduling.k8s.io/v1", "PriorityClass"},
    {"node.k8s.io/v1", "RuntimeClass"},
    {"storage.k8s.io/v1", "StorageClass"},
    {"storage.k8s.io/v1", "CSINode"},
    {"certificates.k8s.io/v1", "CertificateSigningRequest"},
    {"events.k8s.io/v1", "Event"},
}};

std::string varint(std::size_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(static_cast<unsigned char>(value | 0x80));
  out += static_cast<char>(value);
  return out;
}

/// A pointer to a zero time is null in JSON, and absent once it has been at rest.
api::Json without_nulls(const api::Json& value) {
  if (const api::Json::Array* items = value.if_array()) {
    api::Json out = api::Json::array();
    for (const api::Json& item : *items) out.if_array()->push_back(without_nulls(item));
    return out;
  }
  if (!value.is_object()) return value;
  api::Json out = api::Json::object();
  for (const auto& [key, member] : *value.if_object()) {
    if (!member.is_null()) out[key] = without_nulls(member);
  }
  return out;
}

void check(const api::Type& type, std::string_view body) {
  const auto object = api::read_protobuf(type, body);
  if (!object) {
    SPILLWAY_CHECK(object.error().code == ErrorCode::kBadRequest ||
                   object.error().code == ErrorCode::kRequestEntityTooLarge);
    return;
  }
  const auto again = api::read_body(type, *object);
  SPILLWAY_CHECK(again && again->unknown_fields.empty());
  const auto printed = api::parse_json(api::to_text(*object));
  SPILLWAY_CHECK(printed && *printed == *object);
  const std::string bytes = api::write_protobuf(type, *object);
  const auto stored = api::read_protobuf_fields(type, bytes, api::kStoredWireFieldsMax);
  SPILLWAY_CHECK(stored && stored->unknown_fields.empty());
  SPILLWAY_CHECK(without_nulls(stored->object) == without_nulls(*object));
  SPILLWAY_CHECK(api::write_protobuf(type, stored->object) == bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  if (const auto type = api::protobuf_kind(body)) check(**type, body);
  if (size == 0) return 0;
  // The same bytes as the message itself, in an envelope that is right.
  const auto& [version, kind] = kKinds[data[0] % kKinds.size()];
  const std::string names = fmt::format("\x0a{}{}\x12{}{}", varint(version.size()), version, varint(kind.size()), kind);
  const std::string_view raw = body.substr(1);
  const std::string_view magic("k8s\0", 4);
  check(*api::find_kind(version, kind),
        fmt::format("{}\x0a{}{}\x12{}{}", magic, varint(names.size()), names, varint(raw.size()), raw));
  return 0;
}
