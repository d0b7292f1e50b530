#include "apiserver/read/component_statuses.h"

#include "api/codec/codec.h"
#include "api/object/lease.h"
#include "api/text/time_text.h"
#include "apiserver/read/rendering.h"
#include "apiserver/read/selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::string_view kDeprecated = "v1 ComponentStatus is deprecated in v1.19+";
constexpr std::array<std::string_view, 2> kControllerLeases{"kube-controller-manager", "spillway-controller"};
constexpr std::array<std::string_view, 2> kSchedulerLeases{"kube-scheduler", "spillway-scheduler"};

Json well() {
  return Json::object({{"type", "Healthy"}, {"status", "True"}, {"message", "ok"}});
}

Json unwell(std::string_view status, std::string_view error) {
  return Json::object({{"type", "Healthy"}, {"status", status}, {"error", error}});
}

bool is_held(const api::Lease& lease, WallTime now) {
  if (lease.holder_identity.value_or("").empty() || !lease.renew_time) return false;
  return now < *lease.renew_time + seconds(lease.lease_duration_seconds.value_or(0));
}

ObjectPtr made(const Resource& resource, std::string_view name, Json condition) {
  Json document = Json::object({{"apiVersion", resource.api_version()},
                                {"kind", resource.kind},
                                {"metadata", Json::object({{"name", name}})},
                                {"conditions", Json::array({std::move(condition)})}});
  Extract meta = extract(resource, document);
  auto object = make_object(std::string(name), to_stored_text(document), store::Revision(0), std::move(meta));
  object->name = name;
  return object;
}

}  // namespace

void ComponentStatuses::read(const ExchangePtr& exchange) const {
  const Route& route = exchange->route;
  const Resource& resource = *route.resource;
  exchange->warnings.emplace_back(kDeprecated);
  const auto selection = parse_selection(route, exchange->target);
  if (!selection) return exchange->fail(selection.error());
  const auto rendering = Rendering::of(resource, exchange->form, exchange->target);
  if (!rendering) return exchange->fail(rendering.error());
  const std::vector<ObjectPtr> objects = all(resource);
  if (route.verb == Verb::kGet) {
    const auto found = std::ranges::find(objects, route.name, [](const ObjectPtr& each) { return each->name; });
    if (found == objects.end()) return exchange->fail(api::not_found_status(resource.group_resource(), route.name));
    return exchange->answer_object(200, rendering->object(**found, core_.now.wall));
  }
  const ListMeta meta{.revision = store::Revision(0), .continue_token = {}};
  std::string text = rendering->list_head(meta);
  bool first = true;
  for (const ObjectPtr& object : objects) {
    if (!selection->matches(*object)) continue;
    rendering->append_item(*object, first, core_.now.wall, text);
    first = false;
  }
  exchange->answer_object(200, rendering->end_list(meta, std::move(text)));
}

std::vector<ObjectPtr> ComponentStatuses::all(const Resource& resource) const {
  const std::optional<std::string> refusing = core_.store.refusing();
  return {made(resource, "controller-manager", by_leases(kControllerLeases)),
          made(resource, "etcd-0", refusing ? unwell("False", *refusing) : well()),
          made(resource, "scheduler", by_leases(kSchedulerLeases))};
}

Json ComponentStatuses::by_leases(std::span<const std::string_view> names) const {
  const ResourceCache& leases = core_.cache.of(core_.registry.get("leases.coordination.k8s.io"));
  std::string lost;
  for (const std::string_view name : names) {
    const ObjectPtr object = leases.find(object_key("kube-system", name));
    if (!object) continue;
    const auto lease = api::decode<api::Lease>(object->document());
    if (!lease) continue;
    if (is_held(*lease, core_.now.wall)) return well();
    lost = lease->renew_time ? fmt::format("no process holds the lease kube-system/{}, last renewed at {}", name,
                                           api::format_time(*lease->renew_time))
                             : fmt::format("no process holds the lease kube-system/{}", name);
  }
  if (components_ == Components::kInProcess) return well();
  if (!lost.empty()) return unwell("False", lost);
  return unwell("Unknown", fmt::format("there is no lease {} in kube-system", fmt::join(names, " or ")));
}

}  // namespace spillway::apiserver
