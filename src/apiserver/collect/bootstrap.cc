#include "apiserver/collect/bootstrap.h"

#include "apiserver/collect/bootstrap_roles.h"
#include "apiserver/collect/missing_grants.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

Json namespace_document(std::string_view name) {
  return Json::object(
      {{"apiVersion", "v1"},
       {"kind", "Namespace"},
       {"metadata", Json::object({{"name", name}, {"labels", Json::object({{"kubernetes.io/metadata.name", name}})}})},
       {"spec", Json::object({{"finalizers", Json::array({"kubernetes"})}})},
       {"status", Json::object({{"phase", "Active"}})}});
}

Json priority_document(std::string_view name, std::int64_t value, std::string_view description) {
  return Json::object({{"apiVersion", "scheduling.k8s.io/v1"},
                       {"kind", "PriorityClass"},
                       {"metadata", Json::object({{"name", name}})},
                       {"value", value},
                       {"preemptionPolicy", "PreemptLowerPriority"},
                       {"description", description}});
}

struct Progress {
  std::move_only_function<void(Outcome)> done;
  std::size_t open = 0;
  Outcome outcome;

  /// One that somebody else has made, or deleted, meanwhile is no failure.
  void end(const StatusResult<Written>& result) {
    const bool failed = !result && result.error().reason != "AlreadyExists" && result.error().code != 404;
    if (failed && outcome) outcome = api::to_error(result.error());
    end_one();
  }

  void end_one() {
    if (--open == 0) done(std::move(outcome));
  }
};

/// The object as it would be is not accepted; nothing is wrong with the store.
bool is_refusal(const api::Status& status) {
  constexpr int kTooLarge = 413;
  constexpr int kInvalid = 422;
  return status.code == kTooLarge || status.code == kInvalid;
}

std::vector<std::pair<const Resource*, Json>> wanted_objects(const ResourceRegistry& registry) {
  std::vector<std::pair<const Resource*, Json>> wanted;
  for (const std::string_view name : {"default", "kube-system", "kube-public", "kube-node-lease"}) {
    wanted.emplace_back(&registry.get("namespaces"), namespace_document(name));
  }
  const Resource& priorities = registry.get("priorityclasses.scheduling.k8s.io");
  wanted.emplace_back(&priorities, priority_document("system-cluster-critical", 2'000'000'000,
                                                     "Used for system critical pods that must run in the cluster, but "
                                                     "can be moved to another node if necessary."));
  wanted.emplace_back(&priorities, priority_document("system-node-critical", 2'000'001'000,
                                                     "Used for system critical pods that must not be moved from their "
                                                     "current node."));
  for (Json& document : bootstrap_roles()) {
    const Resource* resource = registry.find_kind("rbac.authorization.k8s.io/v1", document.string_at({"kind"}));
    wanted.emplace_back(resource, std::move(document));
  }
  return wanted;
}

}  // namespace

api::UserInfo server_user() {
  return {"system:apiserver", {}, {"system:masters"}};
}

void create_cluster_objects(Core& core, Writer& writer, std::move_only_function<void(Outcome)> done) {
  auto progress = std::make_shared<Progress>();
  progress->done = std::move(done);
  ++progress->open;  // until all are begun
  for (auto& [resource, document] : wanted_objects(core.registry)) {
    const ResourceCache& cache = core.cache.of(*resource);
    const std::string name(document.string_at({"metadata", "name"}));
    if (cache.find_unreadable(name) != nullptr) continue;
    const ObjectPtr there = cache.find(name);
    if (there == nullptr) {
      ++progress->open;
      writer.create({resource, {}, std::move(document), false, {server_user(), "spillway", false}},
                    [progress](const StatusResult<Written>& result) { progress->end(result); });
    } else if (resource->group == "rbac.authorization.k8s.io" && with_missing_grants(there->document(), document)) {
      ++progress->open;
      UpdateJob job{.resource = resource,
                    .ns = {},
                    .name = name,
                    .change = [wanted = std::move(document)](const Json& current) -> StatusResult<Json> {
                      return with_missing_grants(current, wanted).value_or(current);
                    },
                    .trusted = true,
                    .context = {server_user(), "spillway", false}};
      writer.update(std::move(job), [progress, log = &core.log, name](const StatusResult<Written>& result) {
        if (result || !is_refusal(result.error())) return progress->end(result);
        // What others have made of it does not let it grow. The server serves as it is.
        log->warning("a default role or binding lacks what it should have, and cannot be given it",
                     {{"name", name}, {"error", result.error().message}});
        progress->end_one();
      });
    }
  }
  progress->end_one();
}

}  // namespace spillway::apiserver
