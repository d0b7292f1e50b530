#include "agent/cri/image_credentials.h"

#include "agent/cri/image_match.h"
#include "api/json/json.h"
#include "api/text/base64.h"

#include <functional>
#include <map>
#include <string_view>
#include <utility>

namespace spillway::agent {
namespace {

using api::Json;
using Keyring = std::map<std::string, std::vector<ImageCredential>, std::greater<>>;

constexpr std::string_view kDefaultRegistry = "index.docker.io";

Result<ImageCredential> credential_of(const Json& entry) {
  ImageCredential made{std::string(entry.string_at({"username"})), std::string(entry.string_at({"password"}))};
  std::string coded(entry.string_at({"auth"}));
  if (coded.empty()) return made;
  while (coded.size() % 4 != 0) coded += '=';
  SPILLWAY_TRY(text, api::decode_base64(coded));
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos)
    return invalid({}, "unable to parse auth field, must be formatted as base64(username:password)");
  return ImageCredential{text.substr(0, colon), text.substr(colon + 1)};
}

/// A registry's location without scheme and API version: "https://r.example/v1/" becomes "r.example".
std::string key_of(std::string_view location) {
  for (const std::string_view scheme : {"https://", "http://"})
    if (location.starts_with(scheme)) location.remove_prefix(scheme.size());
  const std::size_t slash = location.find('/');
  const std::string host(location.substr(0, slash));
  std::string_view path = slash == std::string_view::npos ? std::string_view() : location.substr(slash);
  if (path.starts_with("/v1/") || path.starts_with("/v2/")) path.remove_prefix(3);
  return path.size() <= 1 ? host : host + std::string(path);
}

Outcome add(const PullSecret& secret, Keyring& ring) {
  const bool current = secret.type == "kubernetes.io/dockerconfigjson";
  if (!current && secret.type != "kubernetes.io/dockercfg") return {};
  SPILLWAY_TRY(document, api::parse_json(secret.data));
  const Json* entries = current ? document.find("auths") : &document;
  if (entries == nullptr || entries->if_object() == nullptr) return {};
  for (const auto& [location, entry] : *entries->if_object()) {
    SPILLWAY_TRY(credential, credential_of(entry));
    ring[key_of(location)].push_back(std::move(credential));
  }
  return {};
}

bool is_default_registry(std::string_view repository) {
  const std::size_t slash = repository.find('/');
  const std::string_view first = repository.substr(0, slash);
  if (first.empty()) return false;
  return slash == std::string_view::npos || first == "docker.io" || first == kDefaultRegistry ||
         first.find_first_of(".:") == std::string_view::npos;
}

std::vector<ImageCredential> find_credentials(const Keyring& ring, const std::string& repository) {
  std::vector<ImageCredential> found;
  for (const auto& [key, credentials] : ring)
    if (is_image_below(key, repository).value_or(false))
      found.insert(found.end(), credentials.begin(), credentials.end());
  if (!found.empty() || !is_default_registry(repository)) return found;
  const auto fallback = ring.find(std::string(kDefaultRegistry));
  return fallback == ring.end() ? found : fallback->second;
}

}  // namespace

Result<std::vector<ImageCredential>> credentials_for(const std::string& repository,
                                                     const std::vector<PullSecret>& secrets) {
  Keyring ring;
  for (const PullSecret& each : secrets) SPILLWAY_TRY_VOID(add(each, ring));
  return find_credentials(ring, repository);
}

std::vector<ImageCredential> credentials_among(const std::string& repository,
                                               const std::vector<PlacedCredential>& answered) {
  Keyring ring;
  for (const PlacedCredential& each : answered) ring[key_of(each.place)].push_back(each.credential);
  return find_credentials(ring, repository);
}

}  // namespace spillway::agent
