#include "apiserver/collect/service_addresses.h"

#include "api/text/ip_address.h"
#include "apiserver/collect/bootstrap.h"
#include "apiserver/resource/object_condition.h"
#include "apiserver/resource/service_range.h"
#include "policy/addresses/ip_blocks.h"

#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr std::string_view kRangeName = "kubernetes";
constexpr std::string_view kReady = "Ready";
constexpr std::string_view kReadyMessage = "Kubernetes default Service CIDR is ready";
constexpr std::string_view kAddressManager = "spillway";

/// The addresses of a Service, in the form in which IPAddresses are named.
std::vector<std::string> service_addresses(const Json& service) {
  std::vector<std::string> found;
  const Json* listed = service.at({"spec", "clusterIPs"});
  if (listed == nullptr || listed->if_array() == nullptr) return found;
  for (const Json& each : *listed->if_array()) {
    if (const auto address = api::parse_ip(each.string_at({}))) found.push_back(addresses::to_text(*address));
  }
  return found;
}

bool has_ready_condition(const Json& range) {
  const Json* list = range.at({"status", "conditions"});
  if (list == nullptr || list->if_array() == nullptr) return false;
  for (const Json& condition : *list->if_array()) {
    if (condition.string_at({"type"}) == kReady) return condition.string_at({"status"}) == "True";
  }
  return false;
}

bool has_own_range(const Json& range) {
  const Json* listed = range.at({"spec", "cidrs"});
  return listed != nullptr && *listed == Json::array({kServiceRange});
}

Json range_document() {
  return Json::object({{"apiVersion", "networking.k8s.io/v1"},
                       {"kind", "ServiceCIDR"},
                       {"metadata", Json::object({{"name", kRangeName}})},
                       {"spec", Json::object({{"cidrs", Json::array({kServiceRange})}})}});
}

}  // namespace

ServiceAddresses::ServiceAddresses(Core& core, Writer& writer, Remover& remover)
    : core_(core),
      writer_(writer),
      remover_(remover),
      services_(core.cache.of(core.registry.get("services"))),
      addresses_(core.cache.of(core.registry.get("ipaddresses.networking.k8s.io"))),
      ranges_(core.cache.of(core.registry.get("servicecidrs.networking.k8s.io"))) {}

void ServiceAddresses::announce() {
  if (!std::exchange(is_announced_, true)) run();
}

void ServiceAddresses::load() {
  owners_.clear();
  due_.clear();
  unread_ = &services_;
  last_read_.clear();
  is_range_due_ = true;
}

void ServiceAddresses::on_event(const ResourceCache& cache, const EventPtr& event) {
  const StoredObject& subject = event->object ? *event->object : *event->previous;
  if (&cache == &services_) {
    if (event->previous) drop_service(*event->previous);
    if (event->object) add_service(*event->object);
  } else if (&cache == &addresses_) {
    due_.insert(subject.name);
  } else if (&cache == &ranges_ && subject.name == kRangeName) {
    is_range_due_ = true;
  }
}

void ServiceAddresses::add_service(const StoredObject& service) {
  for (std::string& address : service_addresses(service.document())) {
    due_.insert(address);
    owners_.insert_or_assign(std::move(address), Owner{.ns = service.ns, .name = service.name});
  }
}

void ServiceAddresses::drop_service(const StoredObject& service) {
  const Owner owner{.ns = service.ns, .name = service.name};
  for (const std::string& address : service_addresses(service.document())) {
    const auto found = owners_.find(address);
    if (found == owners_.end() || found->second != owner) continue;
    owners_.erase(found);
    due_.insert(address);
  }
}

bool ServiceAddresses::has_work() const {
  if ((is_range_due_ && !is_range_busy_) || unread_ != nullptr) return true;
  return !due_.empty() && busy_.size() < kCollectorWritesMax;
}

/// A slice is a turn of its own, so that many calls of one turn are one slice.
void ServiceAddresses::act() {
  if (!is_announced_ || !has_work() || std::exchange(is_armed_, true)) return;
  core_.timers.at(core_.now.mono, [this] {
    is_armed_ = false;
    if (acts()) act_in_slice();
  });
}

/// No address is compared before all Services are read: its Service may be among the rest.
void ServiceAddresses::act_in_slice() {
  if (is_range_due_ && !is_range_busy_) sync_range();
  SliceBudget budget;
  if (!read_on(budget)) return run();
  while (!due_.empty() && busy_.size() < kCollectorWritesMax) {
    if (!take(budget, cost_of(*due_.begin()))) break;
    const std::string address = *due_.begin();
    due_.erase(due_.begin());
    if (!busy_.contains(address)) sync_address(address);
  }
  run();
}

/// Objects that change meanwhile are marked by their events as well, read or not.
bool ServiceAddresses::read_on(SliceBudget& budget) {
  while (unread_ != nullptr) {
    bool has_room = true;
    unread_->visit("", last_read_, [this, &budget, &has_room](const ObjectPtr& object) {
      const bool is_service = unread_ == &services_;
      has_room = take(budget, kVisitCost + (is_service ? object->text->size() : 0));
      if (!has_room) return false;
      if (is_service) {
        add_service(*object);
      } else {
        due_.insert(object->name);
      }
      last_read_ = object->key;
      return true;
    });
    if (!has_room) return false;
    unread_ = unread_ == &services_ ? &addresses_ : nullptr;
    last_read_.clear();
  }
  return true;
}

bool ServiceAddresses::take(SliceBudget& budget, std::size_t cost) {
  const bool has_room = budget.take(cost);
  if (has_room) ++steps_;
  return has_room;
}

std::size_t ServiceAddresses::cost_of(const std::string& address) const {
  const ObjectPtr there = addresses_.find(address);
  const bool is_written = owners_.contains(address) != (there != nullptr);
  return kVisitCost + (there ? there->text->size() : 0) + (is_written ? kSliceCost / kSliceWrites : 0);
}

void ServiceAddresses::sync_address(const std::string& address) {
  const auto owner = owners_.find(address);
  const ObjectPtr there = addresses_.find(address);
  if (!there) {
    if (owner != owners_.end()) create_address(address, owner->second);
    return;
  }
  const Json document = there->document();
  if (there->meta.deleting || !is_of_allocator(document)) return;
  const bool is_right = owner != owners_.end() &&
                        document.string_at({"spec", "parentRef", "namespace"}) == owner->second.ns &&
                        document.string_at({"spec", "parentRef", "name"}) == owner->second.name &&
                        document.string_at({"spec", "parentRef", "resource"}) == "services" &&
                        document.string_at({"spec", "parentRef", "group"}).empty();
  if (!is_right) remove_address(address, *there);
}

void ServiceAddresses::create_address(const std::string& address, const Owner& owner) {
  const bool is_v4 = api::parse_ip(address)->v4;
  Json labels = Json::object({{kIpFamilyLabel, is_v4 ? "IPv4" : "IPv6"}, {kIpManagerLabel, kIpManager}});
  Json parent = Json::object({{"resource", "services"}, {"namespace", owner.ns}, {"name", owner.name}});
  Json document = Json::object({{"apiVersion", "networking.k8s.io/v1"},
                                {"kind", "IPAddress"},
                                {"metadata", Json::object({{"name", address}, {"labels", std::move(labels)}})},
                                {"spec", Json::object({{"parentRef", std::move(parent)}})}});
  busy_.insert(address);
  writer_.create(
      {&addresses_.resource(), "", std::move(document), false, {server_user(), std::string(kAddressManager), false}},
      [this, address](const StatusResult<Written>& result) {
        on_address_done(address, result ? nullptr : &result.error());
      });
}

void ServiceAddresses::remove_address(const std::string& address, const StoredObject& there) {
  busy_.insert(address);
  RemoveJob job{.resource = &addresses_.resource(), .ns = "", .name = address, .options = {}};
  job.options.uid = there.meta.uid;
  remover_.remove(std::move(job), [this, address](const StatusResult<Removed>& result) {
    on_address_done(address, result ? nullptr : &result.error());
  });
}

/// After a success the address is compared once more, since its Service may have changed meanwhile. If another writer
/// was faster, its event follows.
void ServiceAddresses::on_address_done(const std::string& address, const api::Status* failure) {
  busy_.erase(address);
  if (failure == nullptr) {
    due_.insert(address);
  } else if (failure->code != 404 && failure->code != 409) {
    core_.timers.at(core_.now.mono + kRetry, [this, address] {
      due_.insert(address);
      run();
    });
  }
  run();
}

void ServiceAddresses::sync_range() {
  is_range_due_ = false;
  const ObjectPtr there = ranges_.find(kRangeName);
  auto done = [this](const StatusResult<Written>& result) { on_range_done(result); };
  WriteContext context{server_user(), std::string(kAddressManager), false};
  if (!there) {
    is_range_busy_ = true;
    return writer_.create({&ranges_.resource(), "", range_document(), false, std::move(context)}, std::move(done));
  }
  // A client has created the object with another range: no address is from it.
  const Json document = there->document();
  if (there->meta.deleting || has_ready_condition(document) || !has_own_range(document)) return;
  is_range_busy_ = true;
  writer_.update({.resource = &ranges_.resource(),
                  .name = std::string(kRangeName),
                  .part = SubresourceId::kStatus,
                  .change = [this](Json current) -> StatusResult<Json> {
                    set_condition(current, kReady, "True", "", kReadyMessage, core_.now.wall);
                    return current;
                  },
                  .uid = there->meta.uid,
                  .trusted = true,
                  .context = std::move(context)},
                 std::move(done));
}

void ServiceAddresses::on_range_done(const StatusResult<Written>& result) {
  is_range_busy_ = false;
  if (!result && result.error().code != 404 && result.error().code != 409) {
    core_.timers.at(core_.now.mono + kRetry, [this] {
      is_range_due_ = true;
      run();
    });
  }
  run();
}

}  // namespace spillway::apiserver
