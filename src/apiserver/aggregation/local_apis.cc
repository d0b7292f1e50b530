#include "apiserver/aggregation/local_apis.h"

#include "apiserver/aggregation/remote_api.h"
#include "apiserver/collect/bootstrap.h"

#include <fmt/format.h>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr std::string_view kManaged = "kube-aggregator.kubernetes.io/automanaged";
constexpr std::string_view kOfBuiltIn = "onstart";
constexpr std::string_view kOfCustom = "true";
constexpr std::string_view kOwnGroup = "apiregistration.k8s.io";  // has no APIService, as upstream

using GroupVersion = std::pair<std::string, std::string>;

std::string api_service_name(std::string_view group, std::string_view version) {
  return fmt::format("{}.{}", version, group);
}

Json api_service_document(std::string_view group, std::string_view version, bool is_built_in) {
  const ApiPriority priority = local_priority(group, version);
  Json spec = Json::object(
      {{"version", version}, {"groupPriorityMinimum", priority.group}, {"versionPriority", priority.version}});
  if (!group.empty()) spec["group"] = group;
  return Json::object(
      {{"apiVersion", "apiregistration.k8s.io/v1"},
       {"kind", "APIService"},
       {"metadata", Json::object({{"name", api_service_name(group, version)},
                                  {"labels", Json::object({{kManaged, is_built_in ? kOfBuiltIn : kOfCustom}})}})},
       {"spec", std::move(spec)}});
}

}  // namespace

std::vector<Json> built_in_api_services(const ResourceRegistry& registry) {
  std::set<GroupVersion> found;
  for (const Resource& row : registry.built_in()) {
    if (row.group != kOwnGroup) found.emplace(row.group, row.version);
  }
  std::vector<Json> documents;
  for (const auto& [group, version] : found) documents.push_back(api_service_document(group, version, true));
  return documents;
}

LocalApis::LocalApis(Core& core, Writer& writer, Remover& remover, Kept kept)
    : core_(core),
      writer_(writer),
      remover_(remover),
      is_kept_(kept == Kept::kYes),
      apis_(core.cache.of(core.registry.get("apiservices.apiregistration.k8s.io"))) {}

void LocalApis::load() {
  is_dirty_ = true;
}

void LocalApis::on_event(const ResourceCache& cache, const EventPtr& event) {
  const bool is_gone = !event->object;
  if (&cache == &apis_ && (is_gone || !event->previous)) is_dirty_ = true;
}

void LocalApis::act() {
  if (!is_kept_ || is_busy_) return;
  if (is_dirty_ || generation_ != core_.registry.generation()) compare();
  if (!create_one()) remove_one();
}

/// Finds APIServices that are missing, and those whose definition was deleted.
void LocalApis::compare() {
  is_dirty_ = false;
  generation_ = core_.registry.generation();
  missing_.clear();
  stale_.clear();
  std::set<std::string> served;
  for (const Resource& row : core_.registry.all()) {
    if (row.group == kOwnGroup) continue;
    std::string name = api_service_name(row.group, row.version);
    if (!served.insert(name).second) continue;
    if (!apis_.find(name)) missing_.emplace(row.group, row.version);
  }
  for (const auto& [name, object] : apis_.objects()) {
    const auto label = object->meta.labels.find(std::string(kManaged));
    const bool is_of_custom = label != object->meta.labels.end() && label->second == kOfCustom;
    if (is_of_custom && !object->meta.deleting && !served.contains(name)) stale_.insert(name);
  }
}

bool LocalApis::create_one() {
  if (missing_.empty()) return false;
  const GroupVersion next = *missing_.begin();
  missing_.erase(missing_.begin());
  is_busy_ = true;
  const bool is_built_in = next.first.empty() || core_.registry.is_built_in_group(next.first);
  writer_.create({&apis_.resource(),
                  {},
                  api_service_document(next.first, next.second, is_built_in),
                  false,
                  {server_user(), {}, false}},
                 [this](const StatusResult<Written>& result) { on_written(result || result.error().code == 409); });
  return true;
}

bool LocalApis::remove_one() {
  if (stale_.empty()) return false;
  const std::string name = *stale_.begin();
  stale_.erase(stale_.begin());
  const ObjectPtr object = apis_.find(name);
  if (!object || object->meta.deleting) return remove_one();
  is_busy_ = true;
  DeleteOptions options;
  options.uid = object->meta.uid;
  options.propagation = Propagation::kBackground;
  remover_.remove({&apis_.resource(), {}, name, options}, [this](const StatusResult<Removed>& result) {
    on_written(result || result.error().code == 404 || result.error().code == 409);
  });
  return true;
}

void LocalApis::on_written(bool is_done) {
  if (is_done) {
    is_busy_ = false;
    return run();
  }
  is_dirty_ = true;
  core_.timers.at(core_.now.mono + kRetry, [this] {
    is_busy_ = false;
    run();
  });
}

}  // namespace spillway::apiserver
