#include "host/network/cni_list.h"

#include "base/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace spillway::host {

namespace {

using api::Json;

/// Versions whose results have the list `ips`, oldest first.
constexpr std::array<std::string_view, 4> kVersions{"0.3.0", "0.3.1", "0.4.0", "1.0.0"};
constexpr std::size_t kCheckSince = 2;  // index of 0.4.0
constexpr std::array<std::string_view, 3> kEndings{".conflist", ".conf", ".json"};
constexpr std::string_view kOldest = "0.1.0";  // a file that names none has this version
constexpr std::size_t kPluginsMax = 32;

std::size_t version_index(std::string_view version) {
  return static_cast<std::size_t>(std::ranges::find(kVersions, version) - kVersions.begin());
}

/// The version of the document, or the highest supported one of those that it lists.
std::string version_of(const Json& document) {
  std::string found(document.string_at({"cniVersion"}));
  const Json* listed = document.find("cniVersions");
  if (listed != nullptr && listed->if_array() != nullptr) {
    for (const Json& each : *listed->if_array()) {
      const std::size_t index = version_index(each.string_at({}));
      const bool higher = found.empty() || version_index(found) == kVersions.size() || index > version_index(found);
      if (index < kVersions.size() && higher) found = kVersions.at(index);
    }
  }
  return found.empty() ? std::string(kOldest) : found;
}

}  // namespace

Result<CniList> parse_cni_list(std::string_view text, std::string_view at) {
  Result<Json> document = api::parse_json(text);
  if (!document) return Error{ErrorCode::kInvalid, document.error().text(), std::string(at)};
  if (document->if_object() == nullptr) return invalid(at, "expected an object with name, cniVersion and plugins");
  CniList list;
  list.name = document->string_at({"name"});
  if (!is_plain_name(list.name)) return invalid(at, "name: \"{}\" cannot name a network", list.name);
  list.version = version_of(*document);
  if (version_index(list.version) == kVersions.size()) {
    return invalid(at, "cniVersion: {} is not supported; expected 0.3.0, 0.3.1, 0.4.0 or 1.0.0", list.version);
  }
  const Json* check = document->find("disableCheck");
  list.disable_check = check != nullptr && check->if_bool().value_or(false);
  const Json* plugins = document->find("plugins");
  if (at.ends_with(".conflist") || plugins != nullptr) {
    if (plugins == nullptr || plugins->if_array() == nullptr || plugins->if_array()->empty()) {
      return invalid(at, "plugins: expected a list with at least one plug-in");
    }
    list.plugins = *plugins->if_array();
  } else {
    list.plugins.push_back(*document);
  }
  if (list.plugins.size() > kPluginsMax) return invalid(at, "plugins: at most {} are supported", kPluginsMax);
  for (const Json& plugin : list.plugins) {
    if (!is_plain_name(plugin.string_at({"type"}))) return invalid(at, "type: a plug-in has none");
  }
  return list;
}

Result<CniList> read_cni_list(const std::string& directory) {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator each(directory, error), end; !error && each != end; each.increment(error)) {
    const std::string name = each->path().filename().string();
    const bool fits =
        std::ranges::any_of(kEndings, [&name](std::string_view ending) { return name.ends_with(ending); });
    std::error_code ignored_error;
    if (fits && each->is_regular_file(ignored_error)) names.push_back(name);
  }
  if (names.empty()) return Error{ErrorCode::kNotFound, "there is no network configuration", directory};
  const std::string file = directory + "/" + std::ranges::min(names);
  SPILLWAY_TRY(text, read_file(file));
  return parse_cni_list(text, file);
}

std::string cni_input(const CniList& list, const Json& plugin, const Json& capabilities, const Json& previous) {
  Json input = plugin;
  input["name"] = list.name;
  input["cniVersion"] = list.version;
  Json runtime = Json::object({});
  if (const Json* listed = plugin.find("capabilities"); listed != nullptr && listed->if_object() != nullptr) {
    for (const auto& [name, wanted] : *listed->if_object()) {
      const Json* value = capabilities.find(name);
      if (value != nullptr && wanted.if_bool().value_or(false)) runtime[name] = *value;
    }
  }
  input.erase({"capabilities"});
  if (!runtime.if_object()->empty()) input["runtimeConfig"] = std::move(runtime);
  if (!previous.is_null()) input["prevResult"] = previous;
  return api::to_text(input);
}

bool cni_has_check(const CniList& list) {
  return version_index(list.version) >= kCheckSince;
}

std::vector<std::string> addresses_in(const Json& result) {
  std::vector<std::string> found;
  const Json* ips = result.find("ips");
  if (ips == nullptr || ips->if_array() == nullptr) return found;
  const Json* interfaces = result.find("interfaces");
  const Json::Array* known = interfaces == nullptr ? nullptr : interfaces->if_array();
  for (const Json& each : *ips->if_array()) {
    const Json* at = each.find("interface");
    const std::optional<std::int64_t> index = at == nullptr ? std::nullopt : at->if_int64();
    if (known != nullptr && index) {
      const bool in_pod = *index >= 0 && static_cast<std::size_t>(*index) < known->size() &&
                          !(*known)[static_cast<std::size_t>(*index)].string_at({"sandbox"}).empty();
      if (!in_pod) continue;
    }
    const std::string_view address = each.string_at({"address"});
    std::string ip(address.substr(0, address.find('/')));
    const bool v6 = ip.contains(':');
    const bool has_family =
        std::ranges::any_of(found, [v6](const std::string& one) { return one.contains(':') == v6; });
    if (!ip.empty() && !has_family) found.push_back(std::move(ip));
  }
  return found;
}

}  // namespace spillway::host
