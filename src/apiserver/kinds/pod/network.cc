// How a pod resolves names.
#include "api/text/names.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/pod/rules.h"

#include <array>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 4> kDnsPolicies{"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"};
constexpr std::size_t kNameserversMax = 3;
constexpr std::size_t kSearchPathsMax = 32;
constexpr std::size_t kSearchBytesMax = 2048;

void check_searches(const CheckedField& searches) {
  if (searches.size() > kSearchPathsMax) searches.invalid("must not have more than 32 search paths");
  std::size_t bytes = searches.empty() ? 0 : searches.size() - 1;  // with a blank between each two
  for (const api::Json& search : searches.elements()) bytes += search.string_at({}).size();
  if (bytes > kSearchBytesMax) {
    searches.invalid("must not have more than 2048 characters (including spaces) in the search list");
  }
  searches.each([](const CheckedField& search) {
    std::string_view path = search.text();
    if (path.ends_with('.')) path.remove_suffix(1);
    search.require_valid(api::dns1123_subdomain_errors(path));
  });
}

void check_dns_config(const CheckedField& config) {
  const CheckedField servers = config["nameservers"];
  if (servers.size() > kNameserversMax) servers.invalid("must not have more than 3 nameservers");
  servers.each([](const CheckedField& server) { server.require_valid(ip_errors(server.text())); });
  check_searches(config["searches"]);
  const CheckedField options = config["options"];
  options.each([](const CheckedField& option) {
    if (option["name"].text().empty()) option.required("must not be empty");
  });
}

}  // namespace

void check_dns(const CheckedField& spec) {
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
  if (config) check_dns_config(config);
}

void check_host_aliases(const CheckedField& aliases) {
  aliases.each([](const CheckedField& alias) {
    const CheckedField address = alias["ip"];
    address.require_valid(ip_errors(address.text()));
    const CheckedField names = alias["hostnames"];
    names.each([](const CheckedField& name) { name.require_valid(api::dns1123_subdomain_errors(name.text())); });
  });
}

}  // namespace spillway::apiserver::kinds
