#include "controllers/endpoints/machine_balancer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace spillway::controllers {
namespace {

constexpr std::size_t kBalancerWritesMax = 16;
constexpr int kBalancerSyncsMax = 64;  // syncs in one step
// Trying a port at an address takes about 5 us, so the largest Service takes 8 ms; a step ends at the first Service
// that reaches as many. More ports are refused, of more addresses the first ones are used.
constexpr std::size_t kBalancedPortsMax = 100;
constexpr std::size_t kBalancedAddressesMax = 16;
constexpr std::size_t kPortTrialsMax = kBalancedPortsMax * kBalancedAddressesMax;

bool has_too_many_ports(const api::ProxiedService& service) {
  return service.ports.size() > kBalancedPortsMax;
}

bool wants_machine(const api::ProxiedService& service) {
  return service.type == "LoadBalancer" && service.load_balancer_class.empty() && !service.metadata.deletion_timestamp;
}

std::string_view protocol_of(const api::ProxiedPort& port) {
  return port.protocol.empty() ? std::string_view("TCP") : port.protocol;
}

std::vector<std::string> shown_addresses(const api::ProxiedService& service) {
  std::vector<std::string> shown;
  for (const api::IngressAddress& each : service.ingress) shown.push_back(each.ip);
  return shown;
}

std::string status_path(const api::ProxiedService& service) {
  return client::object_path("v1", "services", service.metadata.ns, service.metadata.name) + "/status";
}

api::Json balancer_patch(const api::ProxiedService& service, const std::vector<std::string>& addresses) {
  api::Json ingress = api::Json::array();
  for (const std::string& each : addresses) ingress.if_array()->push_back(api::Json::object({{"ip", each}}));
  api::Json patch;
  patch.make({"metadata", "uid"}) = service.metadata.uid;
  patch.make({"status", "loadBalancer", "ingress"}) = std::move(ingress);
  return patch;
}

}  // namespace

MachineBalancer::MachineBalancer(Options options, Rng rng, telemetry::Log log)
    : options_(std::move(options)),
      log_(std::move(log)),
      client_("machine-balancer", rng.fork("calls")),
      services_(client_, client::object_path("v1", "services", {})),
      events_(client_, rng.fork("events"), "spillway-load-balancer") {
  std::erase_if(options_.addresses, [](const std::string& each) {
    const auto address = api::parse_ip(each);
    return !address || address->is_loopback() || address->is_link_local();
  });
  if (options_.addresses.size() > kBalancedAddressesMax) options_.addresses.resize(kBalancedAddressesMax);
  services_.cache().listen(
      {[this](const ServicePtr& before, const ServicePtr& after, Now now) { on_service(before, after, now); }});
}

void MachineBalancer::start(Now now) {
  client_.start(now);
}

void MachineBalancer::on_api_event(const client::ApiEvent& event, Now now) {
  client_.on_api_event(event, now);
  run(now);
}

void MachineBalancer::on_wakeup(Now now) {
  client_.on_wakeup(now);
  run(now);
}

void MachineBalancer::on_service(const ServicePtr& before, const ServicePtr& after, Now now) {
  const client::ObjectKey key = client::key_of((after ? after : before)->metadata);
  if (before && wants_machine(*before)) release(key, *before, now);
  if (after && wants_machine(*after)) return claim(key, *after, now);
  obstacles_.erase(key);
  queue_.remove(key);
}

/// A younger Service that had a port loses it. A Service with too many ports claims none.
void MachineBalancer::claim(const client::ObjectKey& key, const api::ProxiedService& service, Now now) {
  queue_.add(key, now.mono);
  if (has_too_many_ports(service)) return;
  for (const api::ProxiedPort& port : service.ports) {
    std::set<Claimant>& claimants = claimants_[{std::string(protocol_of(port)), port.port}];
    const auto place = claimants.emplace(service.metadata.creation_timestamp, key).first;
    if (place == claimants.begin() && std::next(place) != claimants.end()) {
      queue_.add(std::next(place)->second, now.mono);
    }
  }
}

/// Ports that a Service gives up are the next one's.
void MachineBalancer::release(const client::ObjectKey& key, const api::ProxiedService& service, Now now) {
  if (has_too_many_ports(service)) return;
  for (const api::ProxiedPort& port : service.ports) {
    const auto claimants = claimants_.find({std::string(protocol_of(port)), port.port});
    if (claimants == claimants_.end()) continue;
    claimants->second.erase({service.metadata.creation_timestamp, key});
    if (claimants->second.empty()) {
      claimants_.erase(claimants);
    } else {
      queue_.add(claimants->second.begin()->second, now.mono);
    }
  }
}

void MachineBalancer::run(Now now) {
  if (!client_.synced()) return;  // every Service must be known, because the oldest one gets a port
  port_trials_ = 0;
  for (int syncs = 0; syncs < kBalancerSyncsMax && writes_ < kBalancerWritesMax && port_trials_ < kPortTrialsMax;
       ++syncs) {
    const std::optional<std::string> key = queue_.take(now.mono);
    if (!key) break;
    sync(*key, now);
  }
  wake_up_.set(client_, writes_ < kBalancerWritesMax ? queue_.next_due() : std::nullopt);
}

void MachineBalancer::sync(const client::ObjectKey& key, Now now) {
  const ServicePtr service = services_.cache().find(key);
  if (!service || !wants_machine(*service)) {
    queue_.done(key);
    return queue_.forget(key);
  }
  const std::vector<std::string> shown = shown_addresses(*service);
  const std::vector<std::string> addresses = addresses_of(*service);
  std::string why = refusal(key, *service);
  const bool loses = !why.empty() && !addresses.empty() && shown == addresses;
  // A Service keeps its address even if a program begins to listen on its port later.
  if (why.empty() && shown != addresses) why = taken_port(*service, addresses);
  report(key, *service, why, now);
  if (loses || (why.empty() && shown != addresses)) {
    return write(key, service, loses ? std::vector<std::string>() : addresses);
  }
  queue_.done(key);
  why.empty() ? queue_.forget(key) : static_cast<void>(queue_.retry(key, now.mono));
}

void MachineBalancer::report(const client::ObjectKey& key, const api::ProxiedService& service, const std::string& why,
                             Now now) {
  if (why.empty()) return static_cast<void>(obstacles_.erase(key));
  if (std::exchange(obstacles_[key], why) == why) return;
  events_.record(client::reference_to(service), client::EventType::kWarning, "SyncLoadBalancerFailed", why, now);
  log_.info("a Service gets no address of this machine", {{"service", key}, {"why", why}});
}

std::string MachineBalancer::refusal(const client::ObjectKey& key, const api::ProxiedService& service) const {
  if (has_too_many_ports(service)) {
    return fmt::format(
        "the Service has {} ports, and {} are the most for which this machine is its load balancer: "
        "split it, or use type NodePort",
        service.ports.size(), kBalancedPortsMax);
  }
  for (const api::ProxiedPort& port : service.ports) {
    const auto claimants = claimants_.find({std::string(protocol_of(port)), port.port});
    if (claimants == claimants_.end() || claimants->second.begin()->second == key) continue;
    return fmt::format("port {}/{} of this machine belongs to the Service {}, which is older: choose another port",
                       port.port, protocol_of(port), claimants->second.begin()->second);
  }
  return {};
}

std::string MachineBalancer::taken_port(const api::ProxiedService& service, const std::vector<std::string>& addresses) {
  if (addresses.empty()) return "this machine has no address of the Service's families besides those of loopback";
  for (const api::ProxiedPort& port : service.ports) {
    for (const std::string& address : addresses) {
      ++port_trials_;
      if (!options_.is_taken(address, protocol_of(port), port.port)) continue;
      return fmt::format("a program of this machine listens at port {}/{}: stop it, or choose another port", port.port,
                         protocol_of(port));
    }
  }
  return {};
}

std::vector<std::string> MachineBalancer::addresses_of(const api::ProxiedService& service) const {
  std::vector<std::string> found;
  for (const std::string& each : options_.addresses) {
    const std::string_view family = each.contains(':') ? "IPv6" : "IPv4";
    const auto& families = service.ip_families;
    const bool is_wanted = families.empty() ? family == "IPv4" : std::ranges::find(families, family) != families.end();
    if (is_wanted) found.push_back(each);
  }
  return found;
}

void MachineBalancer::write(const client::ObjectKey& key, const ServicePtr& service,
                            const std::vector<std::string>& addresses) {
  ++writes_;
  client_.patch(status_path(*service), client::PatchType::kMerge, balancer_patch(*service, addresses),
                [this, key](const Result<api::Json>& written, Now now) { on_written(key, written, now); });
}

void MachineBalancer::on_written(const client::ObjectKey& key, const Result<api::Json>& written, Now now) {
  --writes_;
  queue_.done(key);
  if (written) {
    log_.info("a Service has the addresses of this machine", {{"service", key}});
    return queue_.forget(key);
  }
  if (written.error().code == ErrorCode::kNotFound) return queue_.forget(key);
  log_.warning("addresses of a Service not written", {{"service", key}, {"error", written.error().text()}});
  queue_.retry(key, now.mono);
}

}  // namespace spillway::controllers
