// Rules for the DNS settings of a pod.
#include "api/text/names.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/pod/rules.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 4> kDnsPolicies{"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"};
constexpr std::size_t kNameserversMax = 3;
constexpr std::size_t kSearchPathsMax = 32;
constexpr std::size_t kSearchBytesMax = 2048;
/// Bytes of a host name in Linux. Longer ones cannot be set in the pod's UTS namespace.
constexpr std::size_t kHostNameMax = 64;

/// A DNS subdomain whose labels may have underscores: one at their beginning, others inside.
std::vector<std::string> search_path_errors(std::string_view path) {
  std::string plain;  // underscores at beginnings left out, others as dashes
  for (std::size_t i = 0; i < path.size(); ++i) {
    const bool begins = i == 0 || path[i - 1] == '.';
    if (path[i] != '_') {
      plain += path[i];
    } else if (!begins) {
      plain += '-';
    }
  }
  if (api::dns1123_subdomain_errors(plain).empty()) return {};
  return {
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-', '_' or '.', and must "
      "start and end with an alphanumeric character"};
}

void check_searches(const CheckedField& searches) {
  if (searches.size() > kSearchPathsMax) searches.invalid("must not have more than 32 search paths");
  std::size_t bytes = searches.empty() ? 0 : searches.size() - 1;  // with a blank between each two
  for (const api::Json& search : searches.elements()) bytes += search.string_at({}).size();
  if (bytes > kSearchBytesMax) {
    searches.invalid("must not have more than 2048 characters (including spaces) in the search list");
  }
  searches.each([](const CheckedField& search) {
    std::string_view path = search.text();
    if (path == ".") return;  // names are looked up as they are written
    if (path.ends_with('.')) path.remove_suffix(1);
    search.require_valid(search_path_errors(path));
  });
}

void check_dns_config(const CheckedField& config, const api::Json& before) {
  const CheckedField servers = config["nameservers"];
  if (servers.size() > kNameserversMax) servers.invalid("must not have more than 3 nameservers");
  const api::Json::Array& kept = elements(before, "nameservers");
  servers.each([&kept](const CheckedField& server) {
    const bool stays = std::ranges::find(kept, server.json()) != kept.end();
    server.require_valid(stays ? kept_ip_errors(server.text()) : ip_errors(server.text()));
  });
  check_searches(config["searches"]);
  const CheckedField options = config["options"];
  options.each([](const CheckedField& option) {
    if (option["name"].text().empty()) option.required("must not be empty");
  });
}

}  // namespace

void check_dns(const CheckedField& spec, const api::Json& before) {
  const CheckedField policy = spec["dnsPolicy"];
  if (policy.require_text()) policy.require_one_of(kDnsPolicies);
  const CheckedField config = spec["dnsConfig"];
  const CheckedField servers = config["nameservers"];
  if (policy.text() == "None") {
    if (!config) return config.required("must provide `dnsConfig` when `dnsPolicy` is None");
    if (servers.empty()) {
      return servers.required("must provide at least one DNS nameserver when `dnsPolicy` is None");
    }
  }
  if (config) check_dns_config(config, value_of(before, "dnsConfig"));
}

void check_host_aliases(const CheckedField& aliases, const api::Json::Array& before) {
  aliases.each([&before](const CheckedField& alias) {
    const CheckedField address = alias["ip"];
    const bool stays =
        std::ranges::any_of(before, [&](const api::Json& old) { return text(old, "ip") == address.text(); });
    address.require_valid(stays ? kept_ip_errors(address.text()) : ip_errors(address.text()));
    const CheckedField names = alias["hostnames"];
    names.each([](const CheckedField& name) { name.require_valid(api::dns1123_subdomain_errors(name.text())); });
  });
}

void check_hostname_override(const CheckedField& spec) {
  const CheckedField name = spec["hostnameOverride"];
  if (!name) return;
  name.require_valid(api::dns1123_subdomain_errors(name.text()));
  if (name.text().size() > kHostNameMax) name.too_long(kHostNameMax);
  if (spec["setHostnameAsFQDN"].is_true()) name.forbidden("may not be specified when setHostnameAsFQDN is true");
  if (spec["hostNetwork"].is_true()) name.forbidden("may not be specified when hostNetwork is true");
}

}  // namespace spillway::apiserver::kinds
