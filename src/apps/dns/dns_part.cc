#include "apps/dns/dns_part.h"

#include "api/text/ip_address.h"
#include "base/split.h"
#include "host/files/resolver_file.h"
#include "runtime/entropy.h"
#include "wire/dns/datagram.h"
#include "wire/net/socket.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace spillway::apps {
namespace {

dns::PodNames pod_names_of(const std::string& text) {
  if (text == "disabled") return dns::PodNames::kDisabled;
  return text == "verified" ? dns::PodNames::kVerified : dns::PodNames::kInsecure;
}

std::vector<wire::DnsServerPlace> places_of(const std::vector<cli::ListenPlace>& places) {
  std::vector<wire::DnsServerPlace> made;
  for (const cli::ListenPlace& each : places) made.push_back({each.address, each.port});
  return made;
}

Result<std::vector<wire::DnsServerPlace>> servers_of(const cli::DnsArgs& args) {
  if (!args.upstream.empty() || args.resolv_conf.empty()) return places_of(args.upstream);
  const auto text = host::read_resolver_file(args.resolv_conf);
  if (!text) return Error{ErrorCode::kInvalid, text.error().message, "--resolv-conf"};
  std::vector<wire::DnsServerPlace> servers;
  for (const std::string_view line : words_in(*text, "\n")) {
    const std::vector<std::string_view> words = words_in(line, " \t\r");
    if (words.size() < 2 || words.front() != "nameserver") continue;
    if (api::parse_ip(words[1])) servers.push_back({std::string(words[1]), cli::kDnsPort});
  }
  return servers;
}

/// The name server is this one, which would query itself for ever.
bool is_own(const wire::DnsServerPlace& server, const std::vector<cli::ListenPlace>& places,
            const std::set<api::IpAddress>& own) {
  const auto address = api::parse_ip(server.address);
  return std::ranges::any_of(places, [&](const cli::ListenPlace& place) -> bool {
    const auto listens = api::parse_ip(place.address);
    if (!address || !listens || place.port != server.port) return false;
    return *address == *listens || (listens->is_unspecified() && (own.contains(*address) || address->is_loopback()));
  });
}

std::vector<std::string> texts_of(const std::vector<wire::DnsServerPlace>& places) {
  std::vector<std::string> texts;
  for (const wire::DnsServerPlace& each : places) texts.push_back(wire::format_endpoint(each.address, each.port));
  return texts;
}

dns::Resolver::Options resolver_options(const cli::DnsArgs& args, std::size_t servers) {
  dns::Resolver::Options options{.servers = servers, .allowed = {}, .client_rate = args.client_rate};
  options.client_burst = static_cast<int>(std::max(2 * args.client_rate, 1.0F));
  for (const std::string& each : args.allow_from)
    if (const auto range = api::parse_ip_range(each)) options.allowed.push_back(*range);
  return options;
}

}  // namespace

DnsPart::DnsPart(Process& process, const cli::DnsArgs& args, std::size_t servers,
                 std::unique_ptr<client::Transport> transport)
    : process_(process),
      transport_(std::move(transport)),
      feed_({.zone = args.cluster_domain, .ttl_seconds = args.ttl_seconds, .pods = pod_names_of(args.pod_names)},
            Rng(runtime::entropy()).fork("dns records")),
      driver_(process.loop(), feed_, *transport_),
      resolver_(feed_.records(), resolver_options(args, servers), process.metrics()) {
  feed_.when_complete([this](Now) {
    resolver_.set_complete();
    process_.log().info("dns records complete");
  });
}

Result<std::unique_ptr<DnsPart>> DnsPart::create(Process& process, const cli::DnsArgs& args,
                                                 const std::vector<cli::ListenPlace>& places,
                                                 std::unique_ptr<client::Transport> transport) {
  SPILLWAY_TRY(servers, servers_of(args));
  const std::set<api::IpAddress> own = wire::own_addresses();
  const auto loops = [&](const wire::DnsServerPlace& each) { return is_own(each, places, own); };
  if (std::erase_if(servers, loops) > 0)
    process.operator_log().warning("an upstream name server is this server itself; it is ignored",
                                   {{"file", args.resolv_conf}});
  if (servers.empty())
    process.operator_log().warning("no other name servers are configured: names outside of the cluster are refused",
                                   {{"file", args.resolv_conf}});
  std::unique_ptr<DnsPart> part(new DnsPart(process, args, servers.size(), std::move(transport)));
  const std::vector<std::string> asked = texts_of(servers);
  SPILLWAY_TRY(server, wire::DnsServer::start(process.loop(), part->resolver_, places_of(places), std::move(servers)));
  part->server_ = std::move(server);
  process.log().info("dns serving", {{"addresses", fmt::format("{}", fmt::join(texts_of(part->places()), " "))},
                                     {"domain", args.cluster_domain},
                                     {"servers", fmt::format("{}", fmt::join(asked, " "))}});
  part->driver_.start();
  return part;
}

void DnsPart::stop(runtime::Loop::Task done) {
  server_.reset();
  driver_.stop();
  done();
}

}  // namespace spillway::apps
