#include "apiserver/collect/root_ca.h"

#include "apiserver/collect/bootstrap.h"

#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr Duration kRootCaRetry = seconds(1);
constexpr std::string_view kName = "kube-root-ca.crt";
constexpr std::string_view kKey = "ca.crt";
// The text of kube-controller-manager, which would replace another one.
constexpr std::string_view kDescription =
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters.";

Json data_of(const std::string& pem) {
  return Json::object({{kKey, pem}});
}

}  // namespace

RootCaPublisher::RootCaPublisher(Core& core, Writer& writer, std::string pem, Others others)
    : core_(core),
      writer_(writer),
      pem_(std::move(pem)),
      others_(others),
      namespaces_(core.cache.of(core.registry.get("namespaces"))),
      maps_(core.cache.of(core.registry.get("configmaps"))) {}

void RootCaPublisher::load() {
  dirty_.clear();
  if (pem_.empty()) return;
  for (const auto& [name, space] : namespaces_.objects()) dirty_.insert(space->name);
}

void RootCaPublisher::on_event(const ResourceCache& cache, const EventPtr& event) {
  if (pem_.empty()) return;
  const StoredObject& object = event->object ? *event->object : *event->previous;
  if (&cache == &namespaces_) dirty_.insert(object.name);
  if (&cache == &maps_ && object.name == kName) dirty_.insert(object.ns);
}

void RootCaPublisher::act() {
  for (auto next = dirty_.begin(); next != dirty_.end() && writing_.size() < kCollectorWritesMax;) {
    if (writing_.contains(*next)) {
      ++next;  // changes during a write are synced after it
      continue;
    }
    const std::string ns = *next;
    next = dirty_.erase(next);
    sync(ns);
  }
}

void RootCaPublisher::sync(const std::string& ns) {
  const ObjectPtr space = namespaces_.find(ns);
  if (!space || space->meta.deleting) return;
  const ObjectPtr map = maps_.find(object_key(ns, kName));
  if (!map) return create(ns);
  if (others_ == Others::kMayAct || map->meta.deleting) return;
  const Json document = map->document();
  const Json* data = document.find("data");
  if (data == nullptr || !(*data == data_of(pem_))) put_right(ns, map->meta.uid);
}

void RootCaPublisher::create(const std::string& ns) {
  writing_.insert(ns);
  Json map = Json::object(
      {{"apiVersion", "v1"},
       {"kind", "ConfigMap"},
       {"metadata", Json::object({{"name", kName},
                                  {"namespace", ns},
                                  {"annotations", Json::object({{"kubernetes.io/description", kDescription}})}})},
       {"data", data_of(pem_)}});
  writer_.create({&maps_.resource(), ns, std::move(map), false, {server_user(), {}, false}},
                 [this, ns](const StatusResult<Written>& result) { on_written(ns, result); });
}

void RootCaPublisher::put_right(const std::string& ns, const std::string& uid) {
  writing_.insert(ns);
  UpdateJob job{.resource = &maps_.resource(),
                .ns = ns,
                .name = std::string(kName),
                .change = [this, uid](const Json& current) -> StatusResult<Json> {
                  Json document = current;
                  if (current.string_at({"metadata", "uid"}) == uid) document["data"] = data_of(pem_);
                  return document;
                },
                .trusted = true,
                .context = {server_user(), {}, false}};
  writer_.update(std::move(job), [this, ns](const StatusResult<Written>& result) { on_written(ns, result); });
}

/// Requeues the namespace, unless a retry would fail in the same way.
void RootCaPublisher::on_written(const std::string& ns, const StatusResult<Written>& result) {
  writing_.erase(ns);
  const bool is_done = result || result.error().reason == "AlreadyExists" || result.error().reason == "Invalid" ||
                       result.error().code == 404 || result.error().code == 403;
  if (is_done) return run();
  core_.timers.at(core_.now.mono + kRootCaRetry, [this, ns] {
    dirty_.insert(ns);
    run();
  });
}

}  // namespace spillway::apiserver
