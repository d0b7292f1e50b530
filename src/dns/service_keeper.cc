#include "dns/service_keeper.h"

#include "api/json/json.h"
#include "api/text/dns_identity.h"
#include "api/text/ip_address.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::dns {
namespace {

using api::Json;
using api::kDnsNamespace;
using api::kDnsService;

constexpr Duration kRetryAfter = seconds(5);
constexpr std::int64_t kDnsPort = 53;

Json metadata(std::string_view name, Json labels) {
  return Json::object({{"name", name}, {"namespace", kDnsNamespace}, {"labels", std::move(labels)}});
}

Json list(Json first, Json second) {
  Json made = Json::array();
  made.if_array()->push_back(std::move(first));
  made.if_array()->push_back(std::move(second));
  return made;
}

Json service_port(std::string_view name, std::string_view protocol, std::uint16_t target) {
  return Json::object(
      {{"name", name}, {"protocol", protocol}, {"port", kDnsPort}, {"targetPort", std::int64_t{target}}});
}

Json slice_port(std::string_view name, std::string_view protocol, std::uint16_t port) {
  return Json::object({{"name", name}, {"protocol", protocol}, {"port", std::int64_t{port}}});
}

Json service_document(const ServiceKeeper::Options& options) {
  Json spec = Json::object(
      {{"clusterIP", options.cluster_ip},
       {"ports", list(service_port("dns", "UDP", options.port), service_port("dns-tcp", "TCP", options.port))}});
  return Json::object({{"apiVersion", "v1"},
                       {"kind", "Service"},
                       {"metadata", metadata(kDnsService, Json::object({{"k8s-app", kDnsService},
                                                                        {"kubernetes.io/cluster-service", "true"}}))},
                       {"spec", std::move(spec)}});
}

Json slice_document(const ServiceKeeper::Options& options) {
  Json addresses = Json::array();
  addresses.if_array()->emplace_back(options.address);
  Json endpoints = Json::array();
  endpoints.if_array()->push_back(
      Json::object({{"addresses", std::move(addresses)}, {"conditions", Json::object({{"ready", true}})}}));
  return Json::object(
      {{"apiVersion", "discovery.k8s.io/v1"},
       {"kind", "EndpointSlice"},
       {"metadata", metadata(options.slice, Json::object({{"kubernetes.io/service-name", kDnsService},
                                                          {kSliceManagedBy, kSliceManager}}))},
       {"addressType", options.address.contains(':') ? "IPv6" : "IPv4"},
       {"endpoints", std::move(endpoints)},
       {"ports", list(slice_port("dns", "UDP", options.port), slice_port("dns-tcp", "TCP", options.port))}});
}

std::string services_path() {
  return client::object_path("v1", "services", kDnsNamespace);
}

std::string slices_path(std::string_view name) {
  return client::object_path("discovery.k8s.io/v1", "endpointslices", kDnsNamespace, name);
}

}  // namespace

ServiceKeeper::ServiceKeeper(Options options, Rng rng, telemetry::Log log)
    : options_(std::move(options)), log_(std::move(log)), client_("spillway-dns", rng) {}

void ServiceKeeper::start(Now now) {
  client_.start(now);
  find_service();
}

/// A Service that exists has the address: creating it again is refused for that (kInvalid), not for its name.
void ServiceKeeper::find_service() {
  client_.get(fmt::format("{}?fieldSelector=metadata.name%3D{}", services_path(), kDnsService),
              [this](Result<Json> found, Now now) { on_found(found, now); });
}

void ServiceKeeper::on_found(const Result<Json>& found, Now now) {
  if (!found) return retry("the Service kube-dns could not be read", found.error(), &ServiceKeeper::find_service, now);
  const Json* items = found->find("items");
  const bool is_there = items != nullptr && items->if_array() != nullptr && !items->if_array()->empty();
  is_there ? begin_slice() : create_service();
}

void ServiceKeeper::create_service() {
  client_.create(services_path(), service_document(options_),
                 [this](Result<Json> made, Now now) { on_created(made, now); });
}

void ServiceKeeper::on_created(const Result<Json>& made, Now now) {
  if (!made && made.error().code != ErrorCode::kAlreadyExists)
    return retry("service kube-dns not created", made.error(), &ServiceKeeper::find_service, now);
  begin_slice();
}

void ServiceKeeper::begin_slice() {
  const auto address = api::parse_ip(options_.address);
  if (address && !address->is_loopback() && !address->is_unspecified()) return create_slice();
  log_.warning("kube-dns has no endpoint: the server listens where no pod can reach it",
               {{"address", options_.address}});
}

void ServiceKeeper::create_slice() {
  client_.create(slices_path({}), slice_document(options_), [this](Result<Json> made, Now now) {
    if (made || ending_) return;
    if (made.error().code == ErrorCode::kAlreadyExists) return replace_slice();
    retry("endpoints of kube-dns not written", made.error(), &ServiceKeeper::create_slice, now);
  });
}

void ServiceKeeper::replace_slice() {
  client_.update(slices_path(options_.slice), slice_document(options_), [this](Result<Json> made, Now now) {
    if (!made) retry("endpoints of kube-dns not written", made.error(), &ServiceKeeper::create_slice, now);
  });
}

void ServiceKeeper::end(std::function<void()> done) {
  ending_ = true;
  client_.remove(slices_path(options_.slice), Json::object({}),
                 [done = std::move(done)](Result<Json>, Now) { done(); });
}

void ServiceKeeper::retry(std::string_view doing, const Error& error, void (ServiceKeeper::*step)(), Now now) {
  if (ending_) return;
  log_.warning(doing, {{"error", error.text()}});
  client_.at(now.mono + kRetryAfter, [this, step](Now) {
    if (!ending_) (this->*step)();
  });
}

}  // namespace spillway::dns
