#include "agent/cri/image_credentials.h"

#include "api/json/json.h"
#include "api/text/base64.h"

#include <algorithm>
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

/// Without a scheme, without the version of the registry's interface.
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

struct Place {
  std::vector<std::string_view> labels;
  std::string_view port;
  std::string_view path;
};

Place place_of(std::string_view text) {
  Place made;
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) made.path = text.substr(slash);
  std::string_view host = text.substr(0, slash);
  if (const std::size_t colon = host.find(':'); colon != std::string_view::npos) {
    made.port = host.substr(colon + 1);
    host = host.substr(0, colon);
  }
  for (;;) {
    const std::size_t dot = host.find('.');
    made.labels.push_back(host.substr(0, dot));
    if (dot == std::string_view::npos) return made;
    host.remove_prefix(dot + 1);
  }
}

/// "*" any text, "?" any character.
bool is_like(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() == '*')
    return is_like(pattern.substr(1), text) || (!text.empty() && is_like(pattern, text.substr(1)));
  return !text.empty() && (pattern.front() == '?' || pattern.front() == text.front()) &&
         is_like(pattern.substr(1), text.substr(1));
}

bool matches(std::string_view key, std::string_view repository) {
  const Place wanted = place_of(key);
  const Place given = place_of(repository);
  return wanted.port == given.port && given.path.starts_with(wanted.path) &&
         std::ranges::equal(wanted.labels, given.labels, is_like);
}

bool is_default_registry(std::string_view repository) {
  const std::size_t slash = repository.find('/');
  const std::string_view first = repository.substr(0, slash);
  if (first.empty()) return false;
  return slash == std::string_view::npos || first == "docker.io" || first == kDefaultRegistry ||
         first.find_first_of(".:") == std::string_view::npos;
}

}  // namespace

Result<std::vector<ImageCredential>> credentials_for(const std::string& repository,
                                                     const std::vector<PullSecret>& secrets) {
  Keyring ring;
  for (const PullSecret& each : secrets) SPILLWAY_TRY_VOID(add(each, ring));
  std::vector<ImageCredential> found;
  for (const auto& [key, credentials] : ring)
    if (matches(key, repository)) found.insert(found.end(), credentials.begin(), credentials.end());
  if (!found.empty() || !is_default_registry(repository)) return found;
  const auto fallback = ring.find(std::string(kDefaultRegistry));
  return fallback == ring.end() ? found : fallback->second;
}

}  // namespace spillway::agent
