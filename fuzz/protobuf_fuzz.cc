// Any bytes as a protobuf request body: refused as a bad request or as too large, or a document in canonical form.
#include "api/schema/protobuf.h"
#include "api/schema/typed.h"
#include "base/check.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

using namespace spillway;

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kKinds = {{
    {"v1", "Pod"},
    {"v1", "Node"},
    {"v1", "ConfigMap"},
    {"v1", "Event"},
    {"apps/v1", "Deployment"},
    {"policy/v1", "Eviction"},
    {"coordination.k8s.io/v1", "Lease"},
    {"authorization.k8s.io/v1", "SubjectAccessReview"},
}};

std::string varint(std::size_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(static_cast<unsigned char>(value | 0x80));
  out += static_cast<char>(value);
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
