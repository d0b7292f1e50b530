#include "agent/containers/dns_config.h"

#include "base/split.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace spillway::agent {
namespace {

constexpr std::size_t kServersMax = 3;
constexpr std::size_t kSearchesMax = 32;
constexpr std::size_t kSearchLineMax = 2048;
constexpr std::size_t kSearchMax = 253;
constexpr std::size_t kClusterSearches = 3;  // of_cluster() puts these search domains before the machine's
constexpr std::string_view kBlanks = " \t\r\f\v";

void add_once(std::vector<std::string>& list, std::string value) {
  if (std::ranges::find(list, value) == list.end()) list.push_back(std::move(value));
}

/// Adds an option. An option of the same name is replaced in its place.
void add_option(std::vector<std::string>& options, std::string option) {
  const auto name_of = [](std::string_view text) { return text.substr(0, text.find(':')); };
  const auto same =
      std::ranges::find_if(options, [&](const std::string& each) { return name_of(each) == name_of(option); });
  if (same == options.end()) {
    options.push_back(std::move(option));
  } else {
    *same = std::move(option);
  }
}

Result<DnsConfig> parse_resolv_conf(std::string_view text) {
  DnsConfig config;
  for (const std::string_view line : words_in(text, "\n")) {
    const std::vector<std::string_view> fields = words_in(line, kBlanks);
    if (fields.empty() || fields.front().starts_with('#')) continue;
    if (fields.front() == "nameserver") {
      if (fields.size() < 2) return invalid({}, "nameserver list is empty ");
      config.servers.emplace_back(fields[1]);
    } else if (fields.front() == "search") {
      config.searches.clear();
      for (std::size_t i = 1; i < fields.size(); ++i) {
        std::string_view each = fields[i];
        if (each == ".") continue;
        if (each.ends_with('.')) each.remove_suffix(1);
        config.searches.emplace_back(each);
      }
    } else if (fields.front() == "options") {
      for (std::size_t i = 1; i < fields.size(); ++i) add_option(config.options, std::string(fields[i]));
    }
  }
  return config;
}

enum class Source { kNone, kHost, kCluster };

Source source_of(const api::Pod& pod) {
  const std::string& policy = pod.spec.dns_policy;
  if (policy == "None") return Source::kNone;
  if (policy == "Default" || (policy == "ClusterFirst" && pod.spec.host_network)) return Source::kHost;
  return Source::kCluster;
}

DnsConfig of_cluster(const api::Pod& pod, const DnsFacts& facts, const std::vector<std::string>& host_searches) {
  DnsConfig config{.servers = facts.cluster_dns, .searches = {}, .options = {"ndots:5"}};
  if (facts.cluster_domain.empty()) {
    config.searches = host_searches;
    return config;
  }
  config.searches = {fmt::format("{}.svc.{}", pod.metadata.ns, facts.cluster_domain),
                     fmt::format("svc.{}", facts.cluster_domain), facts.cluster_domain};
  for (const std::string& each : host_searches) add_once(config.searches, each);
  return config;
}

void use_loopback(const DnsFacts& facts, DnsConfig& config) {
  for (const std::string& ip : facts.node_ips) config.servers.emplace_back(ip.contains(':') ? "::1" : "127.0.0.1");
  if (facts.node_ips.empty()) config.servers.emplace_back("127.0.0.1");
  config.searches = {"."};
}

void add_own(const api::Json& own, DnsConfig& config) {
  const auto strings = [&](std::string_view member) {
    std::vector<std::string> found;
    const api::Json* list = own.find(member);
    if (list == nullptr || list->if_array() == nullptr) return found;
    for (const api::Json& each : *list->if_array()) found.emplace_back(each.string_at({}));
    return found;
  };
  for (auto& each : strings("nameservers")) add_once(config.servers, std::move(each));
  for (auto& each : strings("searches")) add_once(config.searches, std::move(each));
  const api::Json* options = own.find("options");
  if (options == nullptr || options->if_array() == nullptr) return;
  for (const api::Json& each : *options->if_array()) {
    const std::string_view value = each.string_at({"value"});
    add_option(config.options, value.empty() ? std::string(each.string_at({"name"}))
                                             : fmt::format("{}:{}", each.string_at({"name"}), value));
  }
}

std::vector<std::string> without_repeats(const std::vector<std::string>& list) {
  std::vector<std::string> kept;
  for (const std::string& each : list) add_once(kept, each);
  return kept;
}

void cut_servers(PodDns& made) {
  std::vector<std::string>& servers = made.config.servers;
  if (servers.size() <= kServersMax) return;
  servers.resize(kServersMax);
  made.warnings.push_back(
      {"DNSConfigForming", fmt::format("Nameserver limits were exceeded, some nameservers have been omitted, the "
                                       "applied nameserver line is: {}",
                                       fmt::join(servers, " "))});
}

void cut_searches(PodDns& made) {
  std::vector<std::string>& searches = made.config.searches;
  const std::size_t asked = searches.size();
  if (asked > kSearchesMax) searches.resize(kSearchesMax);
  std::erase_if(searches, [](const std::string& each) { return each.size() > kSearchMax; });
  while (fmt::format("{}", fmt::join(searches, " ")).size() > kSearchLineMax) searches.pop_back();
  if (searches.size() == asked) return;
  made.warnings.push_back(
      {"DNSConfigForming", fmt::format("Search Line limits were exceeded, some search paths have been omitted, the "
                                       "applied search line is: {}",
                                       fmt::join(searches, " "))});
}

}  // namespace

bool has_own_dns(const api::Pod& pod, const DnsFacts& facts) {
  const Source source = source_of(pod);
  if (source == Source::kNone || !pod.spec.dns_config.is_null()) return true;
  return source == Source::kCluster && !facts.cluster_dns.empty();
}

std::string resolv_conf(const DnsConfig& config) {
  std::string text;
  if (!config.searches.empty()) text += fmt::format("search {}\n", fmt::join(config.searches, " "));
  for (const std::string& each : config.servers) text += fmt::format("nameserver {}\n", each);
  if (!config.options.empty()) text += fmt::format("options {}\n", fmt::join(config.options, " "));
  return text;
}

std::optional<std::string> resolver_file_problem(const DnsFacts& facts) {
  if (!facts.resolv_conf) return std::nullopt;
  if (!*facts.resolv_conf) return facts.resolv_conf->error().message;
  const auto parsed = parse_resolv_conf(**facts.resolv_conf);
  if (!parsed) return parsed.error().message;
  const std::vector<std::string>& searches = parsed->searches;
  const std::size_t most = kSearchesMax - (facts.cluster_domain.empty() ? 0 : kClusterSearches);
  if (searches.size() > most)
    return fmt::format("Resolv.conf file '{}' contains search line consisting of more than {} domains!",
                       facts.resolver_path, most);
  if (std::ranges::any_of(searches, [](const std::string& each) { return each.size() > kSearchMax; }))
    return fmt::format("Resolv.conf file \"{}\" contains a search path which length is more than allowed {} chars!",
                       facts.resolver_path, kSearchMax);
  if (fmt::format("{}", fmt::join(searches, " ")).size() > kSearchLineMax)
    return fmt::format("Resolv.conf file '{}' contains search line which length is more than allowed {} chars!",
                       facts.resolver_path, kSearchLineMax);
  return std::nullopt;
}

Result<PodDns> pod_dns(const api::Pod& pod, const DnsFacts& facts) {
  DnsConfig host;
  if (facts.resolv_conf) {
    if (!*facts.resolv_conf) return facts.resolv_conf->error();
    auto parsed = parse_resolv_conf(**facts.resolv_conf);
    if (!parsed)
      return invalid({}, "Encountered error while parsing resolv conf file. Error: {}", parsed.error().message);
    host = *std::move(parsed);
  }
  PodDns made;
  Source source = source_of(pod);
  if (source == Source::kCluster && facts.cluster_dns.empty()) {
    const std::string message =
        "kubelet does not have ClusterDNS IP configured and cannot create Pod using \"ClusterFirst\" policy. Falling "
        "back to \"Default\" policy.";
    made.warnings.push_back({"MissingClusterDNS", message, true});
    made.warnings.push_back({"MissingClusterDNS", fmt::format("pod: \"{}_{}({})\". {}", pod.metadata.name,
                                                              pod.metadata.ns, pod.metadata.uid, message)});
    source = Source::kHost;
  }
  if (source == Source::kCluster) {
    made.config = of_cluster(pod, facts, host.searches);
  } else if (source == Source::kHost) {
    made.config = host;
    if (!facts.resolv_conf) use_loopback(facts, made.config);
  }
  if (!pod.spec.dns_config.is_null()) {
    made.config.servers = without_repeats(made.config.servers);
    made.config.searches = without_repeats(made.config.searches);
    add_own(pod.spec.dns_config, made.config);
  }
  cut_servers(made);
  cut_searches(made);
  return made;
}

}  // namespace spillway::agent
