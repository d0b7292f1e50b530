// vectors/workloads: deployment_rollout, fenceposts, revision, pod_template_hash.
#include "api/codec/codec.h"
#include "api/text/time_text.h"
#include "policy/workloads/deployment_plan.h"
#include "policy/workloads/deployment_revisions.h"
#include "policy/workloads/pod_template.h"
#include "policy/workloads/rollout_bounds.h"
#include "support/vectors.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace spillway::workloads {
namespace {

using api::Json;
using support::Mismatch;

template <typename... Ts>
struct ByKind : Ts... {
  using Ts::operator()...;
};

/// Go prints nil values as null, as empty or not at all: here they are left out.
Json without_empty(const Json& value) {
  if (const Json::Array* list = value.if_array()) {
    Json::Array out;
    for (const Json& each : *list) out.push_back(without_empty(each));
    return out;
  }
  if (value.if_object() == nullptr) return value;
  Json out = Json::object();
  for (const auto& [key, member] : *value.if_object()) {
    const bool empty = member.is_null() || (member.is_array() && member.if_array()->empty()) ||
                       (member.is_object() && member.if_object()->empty());
    if (!empty) out[key] = without_empty(member);
  }
  return out;
}

std::optional<Mismatch> compare(const Json& want, const Json& got) {
  return support::compare(without_empty(want), without_empty(got));
}

WallTime now_of(const Json& in) {
  return api::parse_time(in.string_at({"now"})).value();
}

api::Deployment deployment_of(const Json& in) {
  return api::decode<api::Deployment>(*in.find("deployment")).value();
}

ReplicaSets sets_of(const Json& in) {
  ReplicaSets sets;
  const Json* list = in.find("replicasets");
  if (list == nullptr || !list->is_array()) return sets;
  for (const Json& each : *list->if_array()) {
    sets.push_back(std::make_shared<const api::ReplicaSet>(api::decode<api::ReplicaSet>(each).value()));
  }
  return sets;
}

OldPods old_pods_of(const Json& in, const api::Deployment& deployment, const ReplicaSets& sets) {
  const Json* pods = in.find("pods");
  if (pods == nullptr || !pods->is_array()) return OldPods::kNone;
  const ReplicaSetPtr latest = find_new(deployment, sets);
  for (const Json& each : *pods->if_array()) {
    const api::Pod pod = api::decode<api::Pod>(each).value();
    const api::OwnerReference* owner = api::controller_of(pod.metadata);
    const bool of_ours = owner != nullptr && std::ranges::any_of(sets, [owner](const ReplicaSetPtr& set) {
                           return set->metadata.uid == owner->uid;
                         });
    if (of_ours && !(latest && latest->metadata.uid == owner->uid) && !api::is_terminal(pod)) return OldPods::kRunning;
  }
  return OldPods::kNone;
}

Json strings(const api::StringMap& map) {
  Json object = Json::object();
  for (const auto& [key, value] : map) object[key] = value;
  return object;
}

Json owner_json(const api::Deployment& deployment) {
  return Json::array({Json::object({{"apiVersion", "apps/v1"},
                                    {"blockOwnerDeletion", true},
                                    {"controller", true},
                                    {"kind", "Deployment"},
                                    {"name", deployment.metadata.name},
                                    {"uid", deployment.metadata.uid}})});
}

Json set_digest(const api::ReplicaSet& set, Json selector, Json owners, const api::StringMap& template_labels) {
  Json out = Json::object({{"annotations", strings(set.metadata.annotations)},
                           {"labels", strings(set.metadata.labels)},
                           {"minReadySeconds", set.min_ready_seconds},
                           {"replicas", set.replicas},
                           {"selector", std::move(selector)},
                           {"templateLabels", strings(template_labels)}});
  if (owners.is_array()) out["ownerReferences"] = std::move(owners);
  return out;
}

Json status_digest(const api::DeploymentStatus& status, WallTime now) {
  api::Deployment bare;
  bare.status = status;
  Json encoded = api::encode(bare);
  Json out = encoded["status"];
  if (out.is_null()) out = Json::object();
  Json* conditions = out.find("conditions");
  if (conditions == nullptr) return out;
  for (Json& each : *conditions->if_array()) {
    if (each.string_at({"type"}) == "ReplicaFailure") continue;  // its times are those of the ReplicaSet
    for (const std::string_view field : {"lastTransitionTime", "lastUpdateTime"}) {
      if (each.string_at({field}) == api::format_time(now)) each[field] = "NOW";
    }
  }
  return out;
}

Json write(std::string_view verb, std::string_view resource, const std::string& name, Json object) {
  Json out = Json::object({{"verb", verb}, {"resource", resource}, {"name", name}});
  if (!object.is_null()) out["object"] = std::move(object);
  return out;
}

Json event(std::string_view type, std::string_view reason, std::string message) {
  return Json::object({{"type", type}, {"reason", reason}, {"message", std::move(message)}});
}

/// The plan in the form of the rows.
struct Digest {
  Json::Array writes;
  Json::Array events;
};

Digest digest_of(const DeploymentPlan& plan, const api::Deployment& deployment, WallTime now) {
  Digest out;
  if (plan.selects_everything) {
    out.events.push_back(
        event("Warning", "SelectingAll", "This deployment is selecting all pods. A non-empty selector is required."));
  }
  const auto scaled = [&out](const api::ReplicaSet& set, std::int32_t from) {
    out.events.push_back(event("Normal", "ScalingReplicaSet", scaling_message(set, from)));
  };
  std::set<std::string> adopted;
  for (const DeploymentWrite& each : plan.writes) {
    std::visit(ByKind{[&](const AdoptReplicaSet& adopt) {
                        adopted.insert(adopt.set->metadata.name);
                        out.writes.push_back(
                            write("patch", "replicasets", adopt.set->metadata.name,
                                  Json::object({{"metadata", Json::object({{"ownerReferences", owner_json(deployment)},
                                                                           {"uid", adopt.set->metadata.uid}})}})));
                      },
                      [&](const ReleaseReplicaSet& release) {
                        Json owner = Json::object({{"$patch", "delete"}, {"uid", deployment.metadata.uid}});
                        out.writes.push_back(
                            write("patch", "replicasets", release.set->metadata.name,
                                  Json::object({{"metadata", Json::object({{"ownerReferences", Json::array({owner})},
                                                                           {"uid", release.set->metadata.uid}})}})));
                      },
                      [&](const CreateReplicaSet& creation) {
                        api::ReplicaSet set = creation.set;
                        out.writes.push_back(
                            write("create", "replicasets", set.metadata.name,
                                  set_digest(set, creation.selector, owner_json(deployment), set.pod_template.labels)));
                        if (set.replicas > 0) scaled(set, 0);
                      },
                      [&](const UpdateReplicaSet& update) {
                        const Json encoded = api::encode(update.set);
                        const Json* owners = encoded.at({"metadata", "ownerReferences"});
                        out.writes.push_back(
                            write("update", "replicasets", update.set.metadata.name,
                                  set_digest(update.set, api::label_selector_to_json(update.set.selector),
                                             owners != nullptr ? *owners : Json(), update.set.pod_template.labels)));
                        if (update.scaled_from) scaled(update.set, *update.scaled_from);
                      },
                      [&](const DeleteReplicaSet& removal) {
                        out.writes.push_back(write("delete", "replicasets", removal.set->metadata.name, {}));
                      },
                      [&](const WriteDeploymentStatus& status) {
                        api::StringMap annotations = deployment.metadata.annotations;
                        if (status.revision) annotations[std::string(kRevision)] = *status.revision;
                        Json object = Json::object({{"status", status_digest(status.status, now)}});
                        if (!annotations.empty()) object["annotations"] = strings(annotations);
                        out.writes.push_back(
                            write("update", "deployments/status", deployment.metadata.name, std::move(object)));
                      }},
               each);
  }
  return out;
}

/// Upstream writes the annotations of the new ReplicaSet once per look-up within a sync, we once per sync.
Json without_repetitions(const Json& writes) {
  Json::Array out;
  for (const Json& each : *writes.if_array()) {
    const bool repeats = each.string_at({"resource"}) == "replicasets" && std::ranges::find(out, each) != out.end();
    if (!repeats) out.push_back(each);
  }
  return out;
}

std::optional<Mismatch> check_sync(const Json& in, const Json& want) {
  const api::Deployment deployment = deployment_of(in);
  const ReplicaSets sets = sets_of(in);
  const auto plan = plan_deployment({deployment, sets, old_pods_of(in, deployment, sets)}, now_of(in));
  if (!plan) return Mismatch{api::to_text(want), plan.error().text()};
  Digest got = digest_of(*plan, deployment, now_of(in));
  Json wanted = Json::object(
      {{"writes", want.find("writes") != nullptr ? without_repetitions(*want.find("writes")) : Json::array()},
       {"events", want.find("events") != nullptr ? *want.find("events") : Json::array()}});
  return compare(wanted, Json::object({{"writes", std::move(got.writes)}, {"events", std::move(got.events)}}));
}

/// A Deployment whose ReplicaSets reach their sizes at once.
class Trace {
 public:
  explicit Trace(const Json& in) : in_(in), deployment_(deployment_of(in)), sets_(sets_of(in)), now_(now_of(in)) {}

  Json::Array steps() {
    Json::Array out;
    for (std::int64_t i = 0; i < in_.find("steps")->if_int64().value(); ++i) {
      const auto plan = plan_deployment({deployment_, sets_}, now_);
      if (!plan) break;
      const Digest digest = digest_of(*plan, deployment_, now_);
      for (const DeploymentWrite& write : plan->writes) apply(write);
      report();
      out.push_back(step(digest));
      if (plan->writes.empty()) break;
    }
    return out;
  }

 private:
  void replace(const std::string& name, const std::function<void(api::ReplicaSet&)>& change) {
    for (ReplicaSetPtr& set : sets_) {
      if (set->metadata.name != name) continue;
      api::ReplicaSet copy = *set;
      change(copy);
      set = std::make_shared<const api::ReplicaSet>(std::move(copy));
    }
  }

  void apply(const DeploymentWrite& write) {
    std::visit(ByKind{[](const AdoptReplicaSet&) {}, [](const ReleaseReplicaSet&) {},
                      [this](const CreateReplicaSet& creation) {
                        Json document = api::encode(creation.set);
                        document.make({"metadata", "uid"}) = creation.set.metadata.name + "-uid";
                        document.make({"metadata", "ownerReferences"}) = owner_json(deployment_);
                        document.make({"spec"})["selector"] = creation.selector;
                        document.make({"spec"})["template"] = creation.pod_template;
                        api::ReplicaSet set = api::decode<api::ReplicaSet>(document).value();
                        set.metadata.creation_timestamp = now_ + seconds(++created_);
                        sets_.push_back(std::make_shared<const api::ReplicaSet>(std::move(set)));
                      },
                      [this](const UpdateReplicaSet& update) {
                        replace(update.set.metadata.name, [&update](api::ReplicaSet& set) {
                          set.replicas = update.set.replicas;
                          set.min_ready_seconds = update.set.min_ready_seconds;
                          set.metadata.annotations = update.set.metadata.annotations;
                        });
                      },
                      [this](const DeleteReplicaSet& removal) {
                        std::erase_if(
                            sets_, [&](const auto& set) { return set->metadata.name == removal.set->metadata.name; });
                      },
                      [this](const WriteDeploymentStatus& status) {
                        deployment_.status = status.status;
                        if (status.revision)
                          deployment_.metadata.annotations[std::string(kRevision)] = *status.revision;
                      }},
               write);
  }

  void report() {
    const ReplicaSetPtr latest = find_new(deployment_, sets_);
    const Json* most = in_.find("new_available_max");
    for (const ReplicaSetPtr& each : ReplicaSets(sets_)) {
      replace(each->metadata.name, [&](api::ReplicaSet& set) {
        set.status.replicas = set.status.ready_replicas = set.status.available_replicas = set.replicas;
        if (most == nullptr || !latest || latest->metadata.name != set.metadata.name) return;
        set.status.available_replicas = std::min(set.replicas, static_cast<std::int32_t>(*most->if_int64()));
        set.status.ready_replicas = set.status.available_replicas;
      });
    }
  }

  Json step(const Digest& digest) const {
    Json sizes = Json::object();
    for (const ReplicaSetPtr& set : sets_) sizes[set->metadata.name] = set->replicas;
    Json events = Json::array();
    for (const Json& each : digest.events) events.if_array()->push_back(each.string_at({"message"}));
    Json conditions = Json::object();
    for (const api::WorkloadCondition& each : deployment_.status.conditions) {
      conditions[each.type] = each.status + " " + each.reason;
    }
    const api::DeploymentStatus& status = deployment_.status;
    return Json::object({{"sizes", std::move(sizes)},
                         {"events", std::move(events)},
                         {"conditions", std::move(conditions)},
                         {"status", Json::array({status.replicas, status.updated_replicas, status.ready_replicas,
                                                 status.available_replicas, status.unavailable_replicas})}});
  }

  const Json& in_;
  api::Deployment deployment_;
  ReplicaSets sets_;
  WallTime now_;
  int created_ = 0;
};

std::optional<Mismatch> check_rollout(const Json& row) {
  const Json& in = *row.find("in");
  const Json& want = *row.find("want");
  if (row.string_at({"op"}) == "sync") return check_sync(in, want);
  return compare(*want.find("steps"), Trace(in).steps());
}

std::optional<Mismatch> check_fenceposts(const Json& row) {
  const Json& in = *row.find("in");
  const Json& want = *row.find("want");
  if (row.string_at({"op"}) == "resolve") {
    const auto member = [&in](std::string_view name) { return in.find(name) != nullptr ? *in.find(name) : Json(); };
    const std::int64_t replicas = in.find("replicas")->if_int64().value();
    const auto posts = fenceposts(member("maxSurge"), member("maxUnavailable"), replicas);
    if (!posts) return compare(want, Json::object({{"error", posts.error().message}}));
    api::Deployment deployment;
    deployment.strategy = kRollingUpdate;
    deployment.replicas = static_cast<std::int32_t>(replicas);
    deployment.max_surge = member("maxSurge");
    deployment.max_unavailable = member("maxUnavailable");
    const RolloutBounds bounds = rollout_bounds(deployment);
    return compare(want, Json::object({{"surge", posts->surge},
                                       {"unavailable", posts->unavailable},
                                       {"max_surge", bounds.surge_max},
                                       {"max_unavailable", bounds.unavailable_max},
                                       {"min_available", bounds.available_min}}));
  }
  const api::Deployment deployment = deployment_of(in);
  ReplicaSets sets = sets_of(in);
  if (row.string_at({"op"}) == "new_size") {
    const auto size = new_size(deployment, sets, *sets.back());
    return compare(want, size ? Json::object({{"replicas", *size}}) : Json::object({{"error", size.error().message}}));
  }
  const ReplicaSetPtr latest = sets.back();
  sets.pop_back();
  Json updates = Json::array();
  Json events = Json::array();
  for (const UpdateReplicaSet& update : plan_scale(deployment, latest, sets, Shares::kProportional)) {
    const api::StringMap& annotations = update.set.metadata.annotations;
    updates.if_array()->push_back(
        Json::object({{"name", update.set.metadata.name},
                      {"set", Json::object({{"desired", annotations.at(std::string(kDesiredReplicas))},
                                            {"max", annotations.at(std::string(kMaxReplicas))},
                                            {"replicas", update.set.replicas}})}}));
    if (update.scaled_from) {
      events.if_array()->push_back(
          event("Normal", "ScalingReplicaSet", scaling_message(update.set, *update.scaled_from)));
    }
  }
  return compare(want, Json::object({{"updates", std::move(updates)}, {"events", std::move(events)}}));
}

Json names_of(const ReplicaSets& sets) {
  Json names = Json::array();
  for (const ReplicaSetPtr& set : sets) names.if_array()->push_back(set->metadata.name);
  return names;
}

Json name_or_null(const ReplicaSetPtr& set) {
  return set ? Json(set->metadata.name) : Json();
}

std::optional<Mismatch> check_revision(const Json& row) {
  const Json& in = *row.find("in");
  const Json& want = *row.find("want");
  const api::Deployment deployment = deployment_of(in);
  if (row.string_at({"op"}) == "annotations") {
    api::ReplicaSet set = api::decode<api::ReplicaSet>(*in.find("replicaset")).value();
    const Written written = in.find("exists")->if_bool().value() ? Written::kYes : Written::kNo;
    const bool changed =
        record_revision(set, deployment, std::stoll(std::string(in.string_at({"newRevision"}))), written);
    return compare(want, Json::object({{"annotations", strings(set.metadata.annotations)}, {"changed", changed}}));
  }
  const ReplicaSets sets = sets_of(in);
  if (row.string_at({"op"}) == "cleanup") {
    return compare(want, Json::object({{"deleted", names_of(beyond_history(deployment, sets))}}));
  }
  const ReplicaSetPtr latest = find_new(deployment, sets);
  const ReplicaSets old = all_but(latest, sets);
  const Json got = Json::object({{"new", name_or_null(latest)},
                                 {"old", names_of(old)},
                                 {"old_with_pods", names_of(active_of(old))},
                                 {"max_revision", max_revision(sets)},
                                 {"last_revision", last_revision(sets)},
                                 {"active_or_latest", name_or_null(active_or_latest(latest, old))}});
  return compare(want, got);
}

std::optional<Mismatch> check_pod_template_hash(const Json& row) {
  const Json& in = *row.find("in");
  const Json& want = *row.find("want");
  if (row.string_at({"op"}) == "safe_encode") {
    return compare(want, Json::object({{"text", safe_encode(in.string_at({"text"}))}}));
  }
  if (row.string_at({"op"}) == "equal_ignore_hash") {
    return compare(want, Json::object({{"equal", same_template(*in.find("a"), *in.find("b"))}}));
  }
  std::optional<std::int32_t> collisions;
  if (const Json* count = in.find("collisionCount"); count != nullptr && !count->is_null()) {
    collisions = static_cast<std::int32_t>(count->if_int64().value());
  }
  Json got = Json::object({{"hash", template_hash(*in.find("template"), collisions)}});
  if (want.find("text") != nullptr) got["text"] = template_text(*in.find("template"));
  return compare(want, got);
}

const bool kRollout = support::add_vector_check("workloads/deployment_rollout", check_rollout);
const bool kFenceposts = support::add_vector_check("workloads/fenceposts", check_fenceposts);
const bool kRevisionRows = support::add_vector_check("workloads/revision", check_revision);
const bool kHash = support::add_vector_check("workloads/pod_template_hash", check_pod_template_hash);

}  // namespace
}  // namespace spillway::workloads
