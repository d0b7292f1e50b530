#include "agent/cri/credential_plugin.h"

#include "agent/cri/image_match.h"
#include "api/text/duration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>

namespace spillway::agent {
namespace {

using api::Json;

constexpr std::string_view kConfigKind = "CredentialProviderConfig";
constexpr std::string_view kConfigGroup = "kubelet.config.k8s.io";
constexpr std::array kAnswerVersions = {std::string_view("credentialprovider.kubelet.k8s.io/v1"),
                                        std::string_view("credentialprovider.kubelet.k8s.io/v1alpha1"),
                                        std::string_view("credentialprovider.kubelet.k8s.io/v1beta1")};
constexpr std::string_view kGlobal = "global";

/// Adds members of an object that are not among `known`, in the form of errors.
void add_unknown(const Json* object, const std::string& path, std::initializer_list<std::string_view> known,
                 std::vector<std::string>& found) {
  if (object == nullptr || object->if_object() == nullptr) return;
  for (const auto& [name, value] : *object->if_object()) {
    if (std::ranges::find(known, std::string_view(name)) == known.end())
      found.push_back(fmt::format("unknown field \"{}{}\"", path, name));
  }
}

const Json::Array& elements(const Json& object, std::string_view member) {
  static const Json::Array kNone;
  const Json* found = object.find(member);
  return found == nullptr || found->if_array() == nullptr ? kNone : *found->if_array();
}

std::string strict_errors(const Json& document) {
  std::vector<std::string> unknown;
  std::size_t i = 0;
  for (const Json& provider : elements(document, "providers")) {
    const std::string path = fmt::format("providers[{}].", i++);
    std::size_t variable = 0;
    for (const Json& each : elements(provider, "env"))
      add_unknown(&each, fmt::format("{}env[{}].", path, variable++), {"name", "value"}, unknown);
    add_unknown(&provider, path, {"name", "matchImages", "defaultCacheDuration", "apiVersion", "args", "env"}, unknown);
  }
  add_unknown(&document, "", {"apiVersion", "kind", "providers"}, unknown);
  return fmt::format("{}", fmt::join(unknown, ", "));
}

/// The error because of which the whole document is refused; empty: it is decoded.
std::string decode_error(const Json& document) {
  const std::string_view version = document.string_at({"apiVersion"});
  const std::string_view kind = document.string_at({"kind"});
  if (kind.empty()) return fmt::format("Object 'Kind' is missing in '{}'", api::to_text(document));
  if (version.empty()) return fmt::format("Object 'apiVersion' is missing in '{}'", api::to_text(document));
  constexpr auto kVersions = std::to_array<std::string_view>({"v1", "v1alpha1", "v1beta1"});
  const bool known = std::ranges::any_of(
      kVersions, [&](std::string_view each) { return version == fmt::format("{}/{}", kConfigGroup, each); });
  if (!known || kind != kConfigKind) {
    return fmt::format(
        "no kind \"{}\" is registered for version \"{}\" in scheme "
        "\"pkg/credentialprovider/plugin/plugin.go:58\"",
        kind, version);
  }
  const std::string strict = strict_errors(document);
  return strict.empty() ? std::string() : "strict decoding error: " + strict;
}

void check_name(const std::string& name, std::vector<std::string>& errors) {
  const auto wrong = [&](std::string_view why) {
    errors.push_back(fmt::format("providers.name: Invalid value: \"{}\": provider name cannot {}", name, why));
  };
  if (name.contains('/')) wrong("contain '/'");
  if (name.contains(' ')) wrong("contain spaces");
  if (name == ".") wrong("be '.'");
  if (name == "..") wrong("be '..'");
}

CredentialProvider read_provider(const Json& entry, std::vector<std::string>& errors) {
  CredentialProvider made{.name = std::string(entry.string_at({"name"})),
                          .match_images = {},
                          .api_version = std::string(entry.string_at({"apiVersion"})),
                          .arguments = {},
                          .environment = {}};
  check_name(made.name, errors);
  if (made.api_version.empty()) {
    errors.emplace_back("providers.apiVersion: Required value: apiVersion is required");
  } else if (std::ranges::find(kAnswerVersions, made.api_version) == kAnswerVersions.end()) {
    errors.push_back(fmt::format("providers.apiVersion: Unsupported value: \"{}\": supported values: \"{}\"",
                                 made.api_version, fmt::join(kAnswerVersions, "\", \"")));
  }
  if (elements(entry, "matchImages").empty())
    errors.emplace_back("providers.matchImages: Required value: at least 1 item in matchImages is required");
  for (const Json& each : elements(entry, "matchImages")) {
    made.match_images.emplace_back(each.string_at({}));
    if (const Outcome checked = check_image_place(made.match_images.back()); !checked) {
      errors.push_back(fmt::format("providers.matchImages: Invalid value: \"{}\": match image is invalid: {}",
                                   made.match_images.back(), checked.error().message));
    }
  }
  const Json* kept = entry.find("defaultCacheDuration");
  if (kept == nullptr || kept->is_null()) {
    errors.emplace_back("providers.defaultCacheDuration: Required value: defaultCacheDuration is required");
  } else if (const auto duration = api::parse_duration(kept->string_at({})); !duration) {
    errors.push_back(fmt::format("decode: time: invalid duration \"{}\"", kept->string_at({})));
  } else if (*duration < Duration{}) {
    errors.push_back(fmt::format(
        "providers.defaultCacheDuration: Invalid value: {}: defaultCacheDuration must be greater than or equal to 0",
        api::format_duration(*duration)));
  } else {
    made.default_cache_duration = *duration;
  }
  for (const Json& each : elements(entry, "args")) made.arguments.emplace_back(each.string_at({}));
  for (const Json& each : elements(entry, "env"))
    made.environment.emplace_back(each.string_at({"name"}), each.string_at({"value"}));
  return made;
}

/// Reads the places of an answer. kInvalid: a member that the version does not have.
Result<std::vector<PlacedCredential>> read_auth(const Json& answer) {
  std::vector<std::string> unknown;
  add_unknown(&answer, "", {"kind", "apiVersion", "cacheKeyType", "cacheDuration", "auth"}, unknown);
  std::vector<PlacedCredential> made;
  const Json* auth = answer.find("auth");
  if (auth != nullptr && auth->if_object() != nullptr) {
    for (const auto& [place, entry] : *auth->if_object()) {
      add_unknown(&entry, fmt::format("auth.{}.", place), {"username", "password"}, unknown);
      made.push_back({place, {std::string(entry.string_at({"username"})), std::string(entry.string_at({"password"}))}});
    }
  }
  if (!unknown.empty()) return invalid({}, "strict decoding error: {}", fmt::join(unknown, ", "));
  return made;
}

}  // namespace

CredentialProviders parse_credential_providers(const Json& document) {
  CredentialProviders made;
  if (std::string error = decode_error(document); !error.empty()) {
    made.errors.push_back("decode: " + std::move(error));
    return made;
  }
  if (elements(document, "providers").empty())
    made.errors.emplace_back("providers: Required value: at least 1 item in plugins is required");
  for (const Json& each : elements(document, "providers")) made.providers.push_back(read_provider(each, made.errors));
  return made;
}

bool CredentialPlugin::is_for(std::string_view image) const {
  return std::ranges::any_of(provider_.match_images,
                             [&](const std::string& place) { return is_image_below(place, image).value_or(false); });
}

const std::vector<PlacedCredential>* CredentialPlugin::kept(std::string_view image, Instant now) const {
  for (const std::string_view key : {image, registry_of(image), kGlobal}) {
    const auto found = kept_.find(key);
    if (found != kept_.end() && now <= found->second.until) return &found->second.credentials;
  }
  return nullptr;
}

std::string CredentialPlugin::request_for(std::string_view image) const {
  return api::to_text(
      Json::object({{"kind", "CredentialProviderRequest"}, {"apiVersion", provider_.api_version}, {"image", image}}));
}

Result<std::vector<PlacedCredential>> CredentialPlugin::on_answer(std::string_view image, std::string_view text,
                                                                  Instant now) {
  SPILLWAY_TRY(answer, api::parse_json(text));
  if (answer.string_at({"kind"}) != "CredentialProviderResponse")
    return invalid({}, "expected kind CredentialProviderResponse, got \"{}\"", answer.string_at({"kind"}));
  if (answer.string_at({"apiVersion"}) != provider_.api_version) {
    return invalid({}, "expected apiVersion {}, got \"{}\"", provider_.api_version, answer.string_at({"apiVersion"}));
  }
  SPILLWAY_TRY(credentials, read_auth(answer));
  const std::string_view type = answer.string_at({"cacheKeyType"});
  if (type != "Image" && type != "Registry" && type != "Global")
    return invalid({}, "expected cacheKeyType Image, Registry or Global, got \"{}\"", type);
  Duration kept_for = provider_.default_cache_duration;
  if (const Json* given = answer.find("cacheDuration"); given != nullptr && !given->is_null()) {
    SPILLWAY_TRY(duration, api::parse_duration(given->string_at({})));
    kept_for = duration;
  }
  std::erase_if(kept_, [&](const auto& entry) { return entry.second.until < now; });
  if (kept_for > Duration{} && kept_.size() < kKeptAnswersMax) {
    const std::string_view key = type == "Image" ? image : type == "Registry" ? registry_of(image) : kGlobal;
    kept_.insert_or_assign(std::string(key), Kept{credentials, now + kept_for});
  }
  return std::move(credentials);
}

}  // namespace spillway::agent
