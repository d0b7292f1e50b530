#include "agent/containers/pod_hosts.h"

#include "agent/containers/container_mounts.h"
#include "api/text/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace spillway::agent {
namespace {

constexpr std::size_t kLabelMax = 63;
constexpr std::size_t kHostNameMax = 64;  // the kernel's limit (sethostname(2))
constexpr std::string_view kOwnNetwork =
    "# Kubernetes-managed hosts file.\n"
    "127.0.0.1\tlocalhost\n"
    "::1\tlocalhost ip6-localhost ip6-loopback\n"
    "fe00::0\tip6-localnet\n"
    "fe00::0\tip6-mcastprefix\n"
    "fe00::1\tip6-allnodes\n"
    "fe00::2\tip6-allrouters\n";
constexpr std::string_view kHostNetwork = "# Kubernetes-managed hosts file (host network).\n";

std::string cut(std::string name) {
  if (name.size() <= kLabelMax) return name;
  name.resize(kLabelMax);
  while (name.ends_with('-') || name.ends_with('.')) name.pop_back();
  return name;
}

/// A name of several labels has an error text of its own.
std::string label_problem(std::string_view text) {
  const auto problems = api::dns1123_label_errors(text);
  if (problems.empty()) return {};
  if (text.contains('.') && text.size() <= kLabelMax && api::dns1123_subdomain_errors(text).empty())
    return "must not contain dots";
  return fmt::format("{}", fmt::join(problems, ";"));
}

std::string aliases_of(const api::Json& aliases) {
  const api::Json::Array* list = aliases.if_array();
  if (list == nullptr || list->empty()) return {};
  std::string text = "\n# Entries added by HostAliases.\n";
  for (const api::Json& each : *list) {
    std::vector<std::string_view> names;
    const api::Json* listed = each.find("hostnames");
    if (listed != nullptr && listed->if_array() != nullptr)
      for (const api::Json& name : *listed->if_array()) names.push_back(name.string_at({}));
    text += fmt::format("{}\t{}\n", each.string_at({"ip"}), fmt::join(names, "\t"));
  }
  return text;
}

}  // namespace

Result<PodNames> names_of(const api::Pod& pod, const std::string& cluster_domain) {
  if (!pod.spec.hostname_override.empty()) return PodNames{.host = pod.spec.hostname_override, .domain = {}};
  PodNames names{.host = pod.metadata.name, .domain = {}};
  if (!pod.spec.hostname.empty()) {
    const std::string problem = label_problem(pod.spec.hostname);
    if (!problem.empty())
      return invalid({}, "pod Hostname \"{}\" is not a valid DNS label: {}", pod.spec.hostname, problem);
    names.host = pod.spec.hostname;
  }
  names.host = cut(names.host);
  if (pod.spec.subdomain.empty()) return names;
  if (const std::string problem = label_problem(pod.spec.subdomain); !problem.empty())
    return invalid({}, "pod Subdomain \"{}\" is not a valid DNS label: {}", pod.spec.subdomain, problem);
  names.domain = fmt::format("{}.{}.svc.{}", pod.spec.subdomain, pod.metadata.ns, cluster_domain);
  return names;
}

Result<std::string> kernel_host_name(const api::Pod& pod, const PodNames& names) {
  if (!pod.spec.set_hostname_as_fqdn.value_or(false) || names.domain.empty()) return names.host;
  std::string whole = fmt::format("{}.{}", names.host, names.domain);
  if (whole.size() > kHostNameMax)
    return invalid({},
                   "failed to construct FQDN from pod hostname and cluster domain, FQDN {} is too long ({} characters "
                   "is the max, {} characters requested)",
                   whole, kHostNameMax, whole.size());
  return whole;
}

std::optional<ManagedFile> hosts_file(const api::Pod& pod, const PodNames& names,
                                      const std::vector<std::string>& pod_ips) {
  if (pod_ips.empty() && !pod.spec.host_network) return std::nullopt;
  ManagedFile file{.container_path = std::string(kHostsPath), .content = {}, .machine_file = {}, .more = {}};
  if (pod.spec.host_network) {
    file.content = kHostNetwork;
    file.machine_file = kHostsPath;
  } else {
    file.content = kOwnNetwork;
    for (const std::string& ip : pod_ips)
      file.content += names.domain.empty() ? fmt::format("{}\t{}\n", ip, names.host)
                                           : fmt::format("{}\t{}.{}\t{}\n", ip, names.host, names.domain, names.host);
  }
  file.more = aliases_of(pod.spec.host_aliases);
  return file;
}

}  // namespace spillway::agent
