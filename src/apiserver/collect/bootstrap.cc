#include "apiserver/collect/bootstrap.h"

#include "apiserver/collect/bootstrap_roles.h"

#include <memory>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

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
};

}  // namespace

api::UserInfo server_user() {
  return {"system:apiserver", {}, {"system:masters"}};
}

void create_cluster_objects(Core& core, Writer& writer, std::move_only_function<void(Outcome)> done) {
  std::vector<std::pair<const Resource*, Json>> wanted;
  for (const std::string_view name : {"default", "kube-system", "kube-public", "kube-node-lease"}) {
    wanted.emplace_back(&core.registry.get("namespaces"), namespace_document(name));
  }
  const Resource& priorities = core.registry.get("priorityclasses.scheduling.k8s.io");
  wanted.emplace_back(&priorities, priority_document("system-cluster-critical", 2'000'000'000,
                                                     "Used for system critical pods that must run in the cluster, but "
                                                     "can be moved to another node if necessary."));
  wanted.emplace_back(&priorities, priority_document("system-node-critical", 2'000'001'000,
                                                     "Used for system critical pods that must not be moved from their "
                                                     "current node."));
  for (Json& document : bootstrap_roles()) {
    const Resource* resource = core.registry.find_kind("rbac.authorization.k8s.io/v1", document.string_at({"kind"}));
    wanted.emplace_back(resource, std::move(document));
  }
  std::erase_if(wanted, [&](const auto& one) {
    const ResourceCache& cache = core.cache.of(*one.first);
    const std::string_view name = one.second.string_at({"metadata", "name"});
    return cache.find(name) != nullptr || cache.find_unreadable(name) != nullptr;
  });
  auto progress = std::make_shared<Progress>();
  progress->done = std::move(done);
  progress->open = wanted.size();
  if (wanted.empty()) return progress->done({});
  for (auto& [resource, document] : wanted) {
    writer.create({resource, {}, std::move(document), false, {server_user(), "spillway", false}},
                  [progress](api::StatusResult<Written> result) {
                    if (!result && result.error().reason != "AlreadyExists" && progress->outcome) {
                      progress->outcome = api::to_error(result.error());
                    }
                    if (--progress->open == 0) progress->done(std::move(progress->outcome));
                  });
  }
}

}  // namespace spillway::apiserver
