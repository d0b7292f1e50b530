#include "apiserver/collect/bootstrap.h"

#include "apiserver/roles/missing_grants.h"
#include "apiserver/roles/role_documents.h"

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

/// Of one part of what is made: `done` when all of it has ended.
struct Progress {
  std::move_only_function<void(Outcome)> done;
  std::size_t open = 1;  // until all are begun
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

struct Wanted {
  const Resource* resource;
  Json document;
};

std::vector<Wanted> wanted_namespaces(const ResourceRegistry& registry) {
  std::vector<Wanted> wanted;
  for (const std::string_view name : {"default", "kube-system", "kube-public", "kube-node-lease"}) {
    wanted.push_back({&registry.get("namespaces"), namespace_document(name)});
  }
  return wanted;
}

/// Rules that somebody gave `admin`, `edit` or `view` when these did not gather rules yet stay theirs.
Json with_earlier_rules(const Core& core, const Resource& resource, Json document) {
  constexpr std::string_view kPrefix = "system:aggregate-to-";
  const std::string_view name = document.string_at({"metadata", "name"});
  if (resource.kind != "ClusterRole" || !name.starts_with(kPrefix)) return document;
  const ResourceCache& roles = core.cache.of(resource);
  const ObjectPtr gatherer = roles.find(name.substr(kPrefix.size()));
  if (gatherer == nullptr || roles.find(name) != nullptr) return document;
  return with_rules_of_old(std::move(document), gatherer->document());
}

std::vector<Wanted> wanted_objects(const Core& core) {
  std::vector<Wanted> wanted;
  const Resource& priorities = core.registry.get("priorityclasses.scheduling.k8s.io");
  wanted.push_back({&priorities, priority_document("system-cluster-critical", 2'000'000'000,
                                                   "Used for system critical pods that must run in the cluster, but "
                                                   "can be moved to another node if necessary.")});
  wanted.push_back({&priorities, priority_document("system-node-critical", 2'000'001'000,
                                                   "Used for system critical pods that must not be moved from their "
                                                   "current node.")});
  for (const Json& document : bootstrap_roles()) {
    const Resource* resource = core.registry.find_kind("rbac.authorization.k8s.io/v1", document.string_at({"kind"}));
    wanted.push_back({resource, with_earlier_rules(core, *resource, document)});
  }
  return wanted;
}

/// Gives a role or binding what it lacks.
void complete(const Core& core, Writer& writer, Wanted wanted, const std::shared_ptr<Progress>& progress) {
  const std::string name(wanted.document.string_at({"metadata", "name"}));
  UpdateJob job{.resource = wanted.resource,
                .ns = std::string(wanted.document.string_at({"metadata", "namespace"})),
                .name = name,
                .change = [document = std::move(wanted.document)](const Json& current) -> StatusResult<Json> {
                  return with_missing_grants(current, document).value_or(current);
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

void make(const Core& core, Writer& writer, std::vector<Wanted> all, std::move_only_function<void(Outcome)> done) {
  auto progress = std::make_shared<Progress>();
  progress->done = std::move(done);
  for (Wanted& wanted : all) {
    const ResourceCache& cache = core.cache.of(*wanted.resource);
    const std::string ns(wanted.document.string_at({"metadata", "namespace"}));
    const std::string key = object_key(ns, wanted.document.string_at({"metadata", "name"}));
    if (cache.find_unreadable(key) != nullptr) continue;
    const ObjectPtr there = cache.find(key);
    if (there == nullptr) {
      ++progress->open;
      writer.create({wanted.resource, ns, std::move(wanted.document), false, {server_user(), "spillway", false}},
                    [progress](const StatusResult<Written>& result) { progress->end(result); });
    } else if (wanted.resource->group == "rbac.authorization.k8s.io" &&
               with_missing_grants(there->document(), wanted.document)) {
      ++progress->open;
      complete(core, writer, std::move(wanted), progress);
    }
  }
  progress->end_one();
}

}  // namespace

api::UserInfo server_user() {
  return {"system:apiserver", {}, {"system:masters"}};
}

void create_cluster_objects(Core& core, Writer& writer, std::move_only_function<void(Outcome)> done) {
  make(core, writer, wanted_namespaces(core.registry), [&core, &writer, done = std::move(done)](Outcome made) mutable {
    if (!made) return done(std::move(made));
    if (!core.store.is_shared()) return make(core, writer, wanted_objects(core), std::move(done));
    // What another server has just made must be seen here, too, before anything is made in it.
    core.cache.of(core.registry.get("namespaces"))
        .origin()
        .barrier([&core, &writer, done = std::move(done)](const Result<store::Revision>&) mutable {
          make(core, writer, wanted_objects(core), std::move(done));
        });
  });
}

}  // namespace spillway::apiserver
