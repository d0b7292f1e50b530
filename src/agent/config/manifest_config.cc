#include "agent/config/manifest_config.h"

#include "api/text/duration.h"
#include "base/ascii.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace spillway::agent {
namespace {

using api::Json;

constexpr std::string_view kHeaderKey = "staticPodURLHeader";

/// RFC 9110: the characters of a field name.
bool is_field_name(std::string_view name) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::ranges::all_of(name, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || kMarks.contains(c);
  });
}

bool is_field_value(std::string_view value) {
  return std::ranges::none_of(value, [](char c) { return (c >= 0 && c < ' ' && c != '\t') || c == 127; });
}

Outcome add_headers(const std::string& name, const Json& values, api::HeaderList& headers) {
  const std::string at = fmt::format("{}[{}]", kHeaderKey, name);
  if (!is_field_name(name)) return invalid(at, "is no name of a header");
  if (values.if_array() == nullptr) return invalid(at, "expected a list of strings");
  for (const Json& each : *values.if_array()) {
    if (!each.is_string()) return invalid(at, "expected a list of strings");
    if (!is_field_value(*each.if_string())) return invalid(at, "has a character that no header may have");
    headers.emplace_back(lower_case(name), *each.if_string());
  }
  return {};
}

/// The end of the scheme and of host and port; nullopt: no address of a web server.
std::optional<std::size_t> end_of_server(std::string_view url) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!url.starts_with(scheme)) continue;
    const std::size_t end = std::min(url.find_first_of("/?#", scheme.size()), url.size());
    if (end > scheme.size()) return end;
  }
  return std::nullopt;
}

}  // namespace

Result<ManifestUrlSettings> manifest_url_of(const Json& effective) {
  ManifestUrlSettings settings;
  const std::string_view url = effective.string_at({"staticPodURL"});
  if (const Json* given = effective.find(kHeaderKey); given != nullptr && given->is_object())
    for (const auto& [name, values] : *given->if_object())
      SPILLWAY_TRY_VOID(add_headers(name, values, settings.headers));
  settings.period = api::parse_duration(effective.string_at({"httpCheckFrequency"})).value_or(settings.period);
  if (settings.period <= Duration{}) return invalid("httpCheckFrequency", "must be positive");
  if (url.empty()) return settings;
  const auto end = end_of_server(url);
  const bool printable = std::ranges::all_of(url, [](char c) { return c > ' ' && c < 127; });
  if (!end || !printable) return invalid("staticPodURL", "expected http://HOST/PATH or https://HOST/PATH");
  settings.server = url.substr(0, *end);
  settings.target = url.substr(*end, url.find('#') == std::string_view::npos ? url.size() : url.find('#') - *end);
  if (!settings.target.starts_with('/')) settings.target.insert(0, 1, '/');
  return settings;
}

Json without_secrets(Json configuration) {
  Json* headers = configuration.find(kHeaderKey);
  if (headers == nullptr || !headers->is_object()) return configuration;
  for (auto& [name, values] : *headers->if_object()) {
    if (values.if_array() == nullptr) continue;
    for (Json& each : *values.if_array()) each = kMaskedHeader;
  }
  return configuration;
}

}  // namespace spillway::agent
