#include "apiserver/collect/client_authorities.h"

#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::string_view kMapNamespace = "kube-system";
constexpr std::string_view kMapName = "extension-apiserver-authentication";

}  // namespace

ClientAuthorities::ClientAuthorities(Core& core, Writer& writer, std::string pem)
    : KeptObjects(core, writer, "servers that believe the same clients"),
      maps_(cache_of("configmaps")),
      pem_(std::move(pem)) {}

void ClientAuthorities::set(std::string pem) {
  if (pem == pem_) return;
  pem_ = std::move(pem);
  look_again();
}

bool ClientAuthorities::concerns(const ResourceCache& cache, const StoredObject& object) const {
  return &cache == &maps_ && object.ns == kMapNamespace && object.name == kMapName;
}

std::vector<KeptObjects::Wanted> ClientAuthorities::wanted() const {
  if (pem_.empty()) return {};
  return {{&maps_, Json::object({{"apiVersion", "v1"},
                                 {"kind", "ConfigMap"},
                                 {"metadata", Json::object({{"name", kMapName}, {"namespace", kMapNamespace}})},
                                 {"data", Json::object({{"client-ca-file", pem_}})}})}};
}

}  // namespace spillway::apiserver
