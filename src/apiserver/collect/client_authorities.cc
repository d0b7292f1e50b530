#include "apiserver/collect/client_authorities.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::string_view kMapNamespace = "kube-system";
constexpr std::string_view kMapName = "extension-apiserver-authentication";
constexpr std::string_view kProxyAuthorities = "requestheader-client-ca-file";

/// The PEM blocks of a text, each with one line feed at its end.
std::vector<std::string> blocks_of(std::string_view pem) {
  constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
  constexpr std::string_view kEnd = "-----END CERTIFICATE-----";
  std::vector<std::string> blocks;
  for (std::size_t at = pem.find(kBegin); at != std::string_view::npos; at = pem.find(kBegin, at + 1)) {
    const std::size_t end = pem.find(kEnd, at);
    if (end == std::string_view::npos) break;
    blocks.push_back(std::string(pem.substr(at, end + kEnd.size() - at)) + "\n");
  }
  return blocks;
}

}  // namespace

ClientAuthorities::ClientAuthorities(Core& core, Writer& writer, Authorities authorities)
    : KeptObjects(core, writer, "servers that believe the same clients"),
      maps_(cache_of("configmaps")),
      pem_(std::move(authorities.clients)),
      proxies_(std::move(authorities.proxies)) {}

void ClientAuthorities::set(std::string pem) {
  if (pem == pem_) return;
  pem_ = std::move(pem);
  requeue();
}

bool ClientAuthorities::concerns(const ResourceCache& cache, const StoredObject& object) const {
  return &cache == &maps_ && object.ns == kMapNamespace && object.name == kMapName;
}

/// The certificates by which other servers verify this one: its authority beside those of the other servers of the
/// store, oldest first.
Json ClientAuthorities::proxy_data() const {
  const ObjectPtr there = maps_.find(object_key(kMapNamespace, kMapName));
  const std::string known(there ? there->document().string_at({"data", kProxyAuthorities}) : std::string_view());
  std::vector<std::string> all = blocks_of(known);
  for (std::string& own : blocks_of(proxies_)) {
    if (std::ranges::find(all, own) == all.end()) all.push_back(std::move(own));
  }
  if (all.size() > kProxiesMax) all.erase(all.begin(), all.end() - kProxiesMax);
  return Json::object({{kProxyAuthorities, fmt::format("{}", fmt::join(all, ""))},
                       {"requestheader-allowed-names", R"(["front-proxy-client"])"},
                       {"requestheader-extra-headers-prefix", R"(["X-Remote-Extra-"])"},
                       {"requestheader-group-headers", R"(["X-Remote-Group"])"},
                       {"requestheader-username-headers", R"(["X-Remote-User"])"}});
}

std::vector<KeptObjects::Wanted> ClientAuthorities::wanted() const {
  if (pem_.empty() && proxies_.empty()) return {};
  Json data = proxies_.empty() ? Json::object() : proxy_data();
  if (!pem_.empty()) data["client-ca-file"] = pem_;
  return {{&maps_, Json::object({{"apiVersion", "v1"},
                                 {"kind", "ConfigMap"},
                                 {"metadata", Json::object({{"name", kMapName}, {"namespace", kMapNamespace}})},
                                 {"data", std::move(data)}})}};
}

}  // namespace spillway::apiserver
