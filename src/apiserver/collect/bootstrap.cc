#include "apiserver/collect/bootstrap.h"

#include "apiserver/roles/missing_grants.h"
#include "apiserver/roles/role_documents.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr std::string_view kPart = "system:aggregate-to-";

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

/// Counts the open writes of one part; `done` is called when all have ended.
struct Progress {
  std::move_only_function<void(Outcome)> done;
  std::size_t open = 1;  // until all are begun
  Outcome outcome;

  /// Ends one write. An object that another client has created or deleted meanwhile is no failure.
  void end(const StatusResult<Written>& result) {
    const bool failed = !result && result.error().reason != "AlreadyExists" && result.error().code != 404;
    if (failed && outcome) outcome = api::to_error(result.error());
    end_one();
  }

  void end_one() {
    if (--open == 0) done(std::move(outcome));
  }
};

/// True if the object was refused, while the store works.
bool is_refusal(const api::Status& status) {
  constexpr int kForbidden = 403;  // for example, a quota of the namespace
  constexpr int kTooLarge = 413;
  constexpr int kInvalid = 422;
  return status.code == kForbidden || status.code == kTooLarge || status.code == kInvalid;
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

bool is_of_roles(const Resource& resource) {
  return resource.group == "rbac.authorization.k8s.io";
}

/// True for a ClusterRole that others aggregate.
bool is_part(const Json& document) {
  return document.string_at({"kind"}) == "ClusterRole" && document.string_at({"metadata", "name"}).starts_with(kPart);
}

/// The roles that others aggregate. Rules that an administrator gave `admin`, `edit` or `view` before these aggregated
/// others are kept.
std::vector<Wanted> wanted_parts(const Core& core) {
  const Resource& resource = core.registry.get("clusterroles.rbac.authorization.k8s.io");
  std::map<std::string, Json, std::less<>> parts;
  for (const Json& document : bootstrap_roles()) {
    if (is_part(document)) parts.emplace(document.string_at({"metadata", "name"}), document);
  }
  std::vector<Wanted> wanted;
  Json::Array gathered;  // in this order: each aggregates the ones before
  for (const std::string_view gatherer : {"view", "edit", "admin"}) {
    const auto part = parts.find(std::string(kPart) + std::string(gatherer));
    if (part == parts.end()) continue;
    const Json* const rules = std::as_const(part->second).find("rules");
    gathered.insert(gathered.end(), rules->if_array()->begin(), rules->if_array()->end());
    const ObjectPtr there = core.cache.of(resource).find(std::string(gatherer));
    wanted.push_back({&resource, there ? with_rules_of_old(part->second, there->document(), gathered) : part->second});
  }
  return wanted;
}

std::vector<Wanted> wanted_objects(const Core& core, const std::vector<Json>& more) {
  std::vector<Wanted> wanted;
  for (const Json& document : more) {
    const Resource* resource =
        core.registry.find_kind(document.string_at({"apiVersion"}), document.string_at({"kind"}));
    if (resource != nullptr) wanted.push_back({resource, document});
  }
  const Resource& priorities = core.registry.get("priorityclasses.scheduling.k8s.io");
  wanted.push_back({&priorities, priority_document("system-cluster-critical", 2'000'000'000,
                                                   "Used for system critical pods that must run in the cluster, but "
                                                   "can be moved to another node if necessary.")});
  wanted.push_back({&priorities, priority_document("system-node-critical", 2'000'001'000,
                                                   "Used for system critical pods that must not be moved from their "
                                                   "current node.")});
  for (const Json& document : bootstrap_roles()) {
    const Resource* resource = core.registry.find_kind("rbac.authorization.k8s.io/v1", document.string_at({"kind"}));
    if (!is_part(document)) wanted.push_back({resource, document});
  }
  return wanted;
}

/// Logs a refusal; the server starts nevertheless.
WriteDone end_of(const Core& core, std::shared_ptr<Progress> progress, std::string name, std::string_view refused) {
  return [progress = std::move(progress), log = &core.log, name = std::move(name),
          refused](const StatusResult<Written>& result) {
    if (result || !is_refusal(result.error())) return progress->end(result);
    log->warning(refused, {{"name", name}, {"error", result.error().message}});
    progress->end_one();
  };
}

/// Adds missing rules or subjects to a role or binding.
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
  // The update fails if other clients have grown the object to its limit.
  writer.update(std::move(job),
                end_of(core, progress, name, "a default role or binding is incomplete and could not be updated"));
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
      std::string name(wanted.document.string_at({"metadata", "name"}));
      WriteDone ended = [progress](const StatusResult<Written>& result) { progress->end(result); };
      if (is_of_roles(*wanted.resource))
        ended = end_of(core, progress, std::move(name), "a default role or binding cannot be made");
      writer.create({wanted.resource, ns, std::move(wanted.document), false, {server_user(), "spillway", false}},
                    std::move(ended));
    } else if (is_of_roles(*wanted.resource) && with_missing_grants(there->document(), wanted.document)) {
      ++progress->open;
      complete(core, writer, std::move(wanted), progress);
    }
  }
  progress->end_one();
}

/// Aggregated roles are created before those that aggregate them: if the start ends in between, no rule is lost.
void make_objects(const Core& core, Writer& writer, std::vector<Json> more,
                  std::move_only_function<void(Outcome)> done) {
  make(core, writer, wanted_parts(core),
       [&core, &writer, more = std::move(more), done = std::move(done)](Outcome made) mutable {
         if (!made) return done(std::move(made));
         make(core, writer, wanted_objects(core, more), std::move(done));
       });
}

}  // namespace

api::UserInfo server_user() {
  return {"system:apiserver", {}, {"system:masters"}};
}

void create_cluster_objects(Core& core, Writer& writer, std::vector<Json> more,
                            std::move_only_function<void(Outcome)> done) {
  make(core, writer, wanted_namespaces(core.registry),
       [&core, &writer, more = std::move(more), done = std::move(done)](Outcome made) mutable {
         if (!made) return done(std::move(made));
         if (!core.store.is_shared()) return make_objects(core, writer, std::move(more), std::move(done));
         // Objects that another server has just made must be in this cache before the first write to them.
         core.cache.of(core.registry.get("namespaces"))
             .origin()
             .barrier([&core, &writer, more = std::move(more),
                       done = std::move(done)](const Result<store::Revision>&) mutable {
               make_objects(core, writer, std::move(more), std::move(done));
             });
       });
}

}  // namespace spillway::apiserver
