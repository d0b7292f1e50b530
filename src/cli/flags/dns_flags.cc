#include "api/text/ip_address.h"
#include "base/ascii.h"
#include "cli/flags/checks.h"
#include "cli/flags/flags.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <utility>

namespace spillway::cli {
namespace {

constexpr std::size_t kServersMax = 15;  // as CoreDNS: more are of no use
constexpr std::uint32_t kTtlMaxSeconds = 3600;
constexpr std::size_t kDomainMax = 200;  // leaves room for the names of a Service and its namespace

/// "ADDRESS:PORT", "[ADDRESS]:PORT"; "ADDRESS" if there is a default port.
Result<ListenPlace> parse_place(const std::string& text, std::optional<std::uint16_t> port) {
  if (port && api::parse_ip(text)) return ListenPlace{text, *port};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return invalid({}, "expected ADDRESS:PORT, got \"{}\"", text);
  SPILLWAY_TRY(number, parse_port(text.substr(colon + 1)));
  std::string address = text.substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']')) address = address.substr(1, address.size() - 2);
  SPILLWAY_TRY(parsed, parse_address(address));
  return ListenPlace{std::move(parsed), number};
}

Result<std::vector<ListenPlace>> parse_places(const std::string& text, std::optional<std::uint16_t> port) {
  std::vector<ListenPlace> places;
  for (const std::string& each : CLI::detail::split(text, ',')) {
    SPILLWAY_TRY(place, parse_place(each, port));
    places.push_back(std::move(place));
  }
  if (places.size() <= kServersMax) return places;
  return invalid({}, "expected at most {} addresses, got {}", kServersMax, places.size());
}

Result<std::vector<ListenPlace>> parse_listen(const std::string& text) {
  return parse_places(text, std::nullopt);
}

Result<std::vector<ListenPlace>> parse_servers(const std::string& text) {
  return parse_places(text, kDnsPort);
}

Result<std::vector<std::string>> parse_ranges(const std::string& text) {
  std::vector<std::string> ranges = CLI::detail::split(text, ',');
  for (const std::string& each : ranges)
    if (!api::parse_ip_range(each))
      return invalid({}, "expected a range of addresses, for example 10.244.0.0/16; got \"{}\"", each);
  return ranges;
}

/// Labels of letters, digits and dashes.
Result<std::string> parse_domain(const std::string& text) {
  std::string domain = lower_case(text);
  if (domain.ends_with('.')) domain.pop_back();
  bool good = !domain.empty() && domain.size() <= kDomainMax;
  for (const std::string& label : CLI::detail::split(domain, '.')) {
    const auto fits = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || c == '-'; };
    good = good && !label.empty() && label.size() <= 63 && std::ranges::all_of(label, fits) &&
           !label.starts_with('-') && !label.ends_with('-');
  }
  if (good) return domain;
  return invalid({}, "expected a domain, for example cluster.local; got \"{}\"", text);
}

}  // namespace

void add_dns(CLI::App& app, DnsArgs& args, const std::string& prefix, const std::string& shown_listen) {
  const auto flag = [&](const std::string& name) { return "--" + prefix + name; };
  add_parsed(app, prefix.empty() ? "--cluster-domain" : "--dns-domain", args.cluster_domain, parse_domain,
             "Domain of the cluster's names", "DOMAIN", "cluster.local");
  add_parsed(app, flag("listen"), args.listen, parse_listen,
             "Address to listen on, by UDP and TCP; port 0: any free one", "ADDRESS:PORT,...", shown_listen);
  add_parsed(app, flag("allow-from"), args.allow_from, parse_ranges,
             "Address ranges of clients that get answers, besides this machine", "CIDR,...", "none");
  app.add_option(flag("resolv-conf"), args.resolv_conf,
                 "File that names the servers for names outside the cluster (resolv.conf); empty: none")
      ->type_name("FILE")
      ->capture_default_str();
  add_parsed(app, flag("upstream"), args.upstream, parse_servers,
             "Servers for names outside the cluster, in place of those in that file", "ADDRESS[:PORT],...", "");
  app.add_option(flag("pod-names"), args.pod_names,
                 "Answers for names of pods: insecure (any address), verified (addresses of existing pods) or disabled")
      ->check(one_of({"insecure", "verified", "disabled"}))
      ->capture_default_str();
  app.add_option(flag("ttl"), args.ttl_seconds, "Lifetime in seconds of the cluster's answers in clients' caches")
      ->check(between(0, kTtlMaxSeconds))
      ->capture_default_str();
  app.add_option(flag("client-rate"), args.client_rate, "Queries per second of one address; further ones get no answer")
      ->check(above_zero())
      ->capture_default_str();
}

}  // namespace spillway::cli
