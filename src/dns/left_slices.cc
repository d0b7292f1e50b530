#include "dns/left_slices.h"

#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "api/text/dns_identity.h"

#include "dns/service_keeper.h"
#include <fmt/format.h>

#include <utility>

namespace spillway::dns {
namespace {

constexpr Duration kSlicesRetryAfter = seconds(5);

std::string left_slices_path(std::string_view name) {
  return client::object_path("discovery.k8s.io/v1", "endpointslices", api::kDnsNamespace, name);
}

}  // namespace

LeftSlices::LeftSlices(std::string own, Rng rng, telemetry::Log log)
    : own_(std::move(own)), log_(std::move(log)), client_("spillway-dns", rng) {}

void LeftSlices::start(Now now) {
  client_.start(now);
  find();
}

void LeftSlices::find() {
  const std::string selector = api::percent_encode(fmt::format("{}={}", kSliceManagedBy, kSliceManager));
  client_.get(left_slices_path({}) + "?labelSelector=" + selector,
              [this](Result<api::Json> found, Now now) { on_found(found, now); });
}

void LeftSlices::on_found(const Result<api::Json>& found, Now now) {
  if (!found) return retry(found.error(), now);
  const api::Json* items = found->find("items");
  if (items == nullptr || items->if_array() == nullptr) return;
  for (const api::Json& each : *items->if_array()) {
    const std::string_view name = each.string_at({"metadata", "name"});
    if (name != own_) return remove(std::string(name));
  }
}

void LeftSlices::remove(const std::string& slice) {
  client_.remove(left_slices_path(slice), api::Json::object({}),
                 [this, slice](Result<api::Json> removed, Now now) { on_removed(slice, removed, now); });
}

void LeftSlices::on_removed(const std::string& slice, const Result<api::Json>& removed, Now now) {
  if (!removed && removed.error().code != ErrorCode::kNotFound) return retry(removed.error(), now);
  log_.info("endpoints of a stopped DNS server were removed", {{"slice", slice}});
  find();  // repeated until no slice is left
}

void LeftSlices::retry(const Error& error, Now now) {
  log_.warning("endpoints of stopped DNS servers could not be removed", {{"error", error.text()}});
  client_.at(now.mono + kSlicesRetryAfter, [this](Now) { find(); });
}

}  // namespace spillway::dns
