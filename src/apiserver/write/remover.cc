#include "apiserver/write/remover.h"

#include "api/json/json_values.h"
#include "api/object/meta.h"
#include "api/text/time_text.h"
#include "apiserver/read/object_converter.h"
#include "apiserver/resource/object_condition.h"
#include "apiserver/webhooks/admission_options.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::Status;
using api::StatusResult;

constexpr int kAttempts = 64;              // races lost
constexpr int kAskedDeletionAttempts = 5;  // by deletions that webhooks were asked about
constexpr std::string_view kOrphan = "orphan";
constexpr std::string_view kForeground = "foregroundDeletion";

/// Seconds a pod is left to end by itself; 0 for everything that is not graceful.
std::int64_t wanted_grace(const Resource& resource, const Json& object, const DeleteOptions& options) {
  if (!resource.graceful) return 0;
  const std::string_view phase = object.string_at({"status", "phase"});
  if (object.string_at({"spec", "nodeName"}).empty() || phase == "Succeeded" || phase == "Failed") return 0;
  const std::int64_t grace =
      options.grace_period_seconds.value_or(api::integer_at(object, {"spec", "terminationGracePeriodSeconds"}, 30));
  return grace < 0 ? 1 : std::min(grace, kGraceSecondsMax);  // pods may request any number
}

std::vector<std::string> finalizers_of(const Json& object) {
  std::vector<std::string> names;
  const Json* list = object.at({"metadata", "finalizers"});
  if (list == nullptr || list->if_array() == nullptr) return names;
  for (const Json& name : *list->if_array()) {
    if (name.if_string() != nullptr) names.push_back(*name.if_string());
  }
  return names;
}

bool is_policy(const std::string& finalizer) {
  return finalizer == kOrphan || finalizer == kForeground;
}

/// Finalizers after the propagation policy has been recorded in them. Finalizers that are set already override the
/// default of the kind.
std::vector<std::string> with_policy(const Resource& resource, std::vector<std::string> names,
                                     Propagation propagation) {
  if (propagation == Propagation::kUnset) {
    if (!resource.orphans_by_default || std::ranges::any_of(names, is_policy)) return names;
    propagation = Propagation::kOrphan;
  }
  std::erase_if(names, is_policy);
  if (propagation == Propagation::kOrphan) names.emplace_back(kOrphan);
  if (propagation == Propagation::kForeground) names.emplace_back(kForeground);
  return names;
}

bool is_namespace_kind(const Resource& resource) {
  return resource.is("", "Namespace");
}

bool holds_content(const Resource& resource, const Json& object) {
  const Json* list = object.at({"spec", "finalizers"});
  return is_namespace_kind(resource) && list != nullptr && list->if_array() != nullptr && !list->if_array()->empty();
}

WallTime whole_seconds(WallTime time) {
  return std::chrono::floor<seconds>(time);
}

/// The action of one attempt on the object.
struct Step {
  enum class Act { kNothing, kPut, kErase };
  Act act = Act::kNothing;
  Json object;
};

void count_deletion(const Resource& resource, Json& object) {
  if (!resource.counts_generation) return;
  object["metadata"]["generation"] = api::integer_at(object, {"metadata", "generation"}, 0) + 1;
}

/// Marks a deletion that has to wait.
Json marked(Json object, std::int64_t grace, WallTime now, std::vector<std::string> finalizers,
            const Resource& resource) {
  Json& metadata = object["metadata"];
  if (metadata.find("deletionTimestamp") == nullptr) count_deletion(resource, object);
  metadata["deletionTimestamp"] = api::format_time(whole_seconds(now) + seconds(grace));
  if (!is_namespace_kind(resource)) metadata["deletionGracePeriodSeconds"] = grace;
  if (finalizers.empty()) {
    metadata.erase({"finalizers"});
  } else {
    metadata["finalizers"] = Json::Array(finalizers.begin(), finalizers.end());
  }
  if (is_namespace_kind(resource)) object.make({"status", "phase"}) = "Terminating";
  if (!resource.cleanup_finalizer.empty()) {
    set_condition(object, "Terminating", "True", "InstanceDeletionPending",
                  "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon", now);
  }
  return object;
}

Step next_step(const Resource& resource, Json object, const DeleteOptions& options, WallTime now) {
  const std::string deletion(object.string_at({"metadata", "deletionTimestamp"}));
  const bool deleting = !deletion.empty();
  std::vector<std::string> finalizers = finalizers_of(object);
  if (!deleting) finalizers = with_policy(resource, std::move(finalizers), options.propagation);
  if (!deleting && !resource.cleanup_finalizer.empty() &&
      std::ranges::find(finalizers, resource.cleanup_finalizer) == finalizers.end()) {
    finalizers.emplace_back(resource.cleanup_finalizer);
  }
  const bool held = !finalizers.empty() || holds_content(resource, object);

  std::int64_t grace = wanted_grace(resource, object, options);
  if (deleting) {
    const std::int64_t running = std::clamp<std::int64_t>(
        api::integer_at(object, {"metadata", "deletionGracePeriodSeconds"}, 0), 0, kGraceSecondsMax);
    if (running == 0 && held) return {};
    // A repeated deletion may only shorten the grace period.
    if (grace != 0 && (!options.grace_period_seconds || grace >= running)) return {};
    if (grace != 0) {
      const Result<WallTime> end = api::parse_time(deletion);
      const WallTime begun = end ? *end - seconds(running) : whole_seconds(now);
      if (begun + seconds(grace) > now) {
        return {Step::Act::kPut, marked(std::move(object), grace, begun, std::move(finalizers), resource)};
      }
      // The shorter period has passed already: the deletion is due now.
      Json due = marked(std::move(object), 0, now, std::move(finalizers), resource);
      due["metadata"]["deletionGracePeriodSeconds"] = 1;
      return {Step::Act::kPut, std::move(due)};
    }
  }
  if (grace == 0 && !held) {
    if (!resource.graceful) return {Step::Act::kErase, {}};
    Json last = std::move(object);
    if (!deleting) count_deletion(resource, last);
    if (!deleting) last["metadata"]["deletionTimestamp"] = api::format_time(now);
    last["metadata"]["deletionGracePeriodSeconds"] = 0;
    return {Step::Act::kErase, std::move(last)};
  }
  return {Step::Act::kPut, marked(std::move(object), grace, now, std::move(finalizers), resource)};
}

StatusResult<void> check_preconditions(const Resource& resource, const StoredObject& current,
                                       const DeleteOptions& options) {
  const api::GroupResource by_kind{std::string(resource.group), std::string(resource.kind)};
  if (options.uid && *options.uid != current.meta.uid) {
    return api::conflict_status(by_kind, current.name,
                                "the UID in the precondition (" + *options.uid +
                                    ") does not match the UID in record (" + current.meta.uid +
                                    "). The object might have been deleted and then recreated");
  }
  const std::string version = std::to_string(current.revision.number());
  if (options.resource_version && *options.resource_version != version) {
    return api::conflict_status(by_kind, current.name,
                                "the ResourceVersion in the precondition (" + *options.resource_version +
                                    ") does not match the ResourceVersion in record (" + version +
                                    "). The object might have been modified");
  }
  return {};
}

bool is_protected(const Resource& resource, std::string_view name) {
  return is_namespace_kind(resource) && (name == "default" || name == "kube-system" || name == "kube-public");
}

}  // namespace

struct Remover::Removal {
  RemoveJob job;
  RemoveDone done;
  int attempts = 0;
  AdmissionPtr admission;  // the current attempt's; null: no webhook applies
};

void Remover::remove(RemoveJob job, RemoveDone done) {
  const Resource& resource = core_.cache.of(*job.resource).resource();
  if (is_protected(resource, job.name)) {
    return done(api::forbidden_status(resource.group_resource(), job.name, "this namespace may not be deleted"));
  }
  const ObjectPtr current = core_.cache.of(resource).find(object_key(job.ns, job.name));
  attempt(std::make_shared<Removal>(std::move(job), std::move(done)), current);
}

void Remover::attempt(const std::shared_ptr<Removal>& state, const ObjectPtr& current) {
  const RemoveJob& job = state->job;
  const Resource& resource = core_.cache.of(*job.resource).resource();
  if (!current) return state->done(api::not_found_status(resource.group_resource(), job.name));
  if (const auto held = check_preconditions(resource, *current, job.options); !held) return state->done(held.error());
  if (webhooks_ != nullptr) {
    state->admission = webhooks_->begin(job.asked, webhooks::Operation::kDelete, job.ns, job.name, job.options.dry_run);
    if (state->admission) return ask(state, current);
  }
  carry_out(state, current);
}

/// Webhooks see what is to go, and have nothing to change.
void Remover::ask(const std::shared_ptr<Removal>& state, const ObjectPtr& current) {
  core_.converter->convert(
      *state->job.resource, {current}, ObjectConverter::Of::kObject,
      [this, state, current](const StatusResult<std::vector<ObjectPtr>>& shown) { ask_about(state, current, shown); });
}

/// `shown`: the object in the version of the request.
void Remover::ask_about(const std::shared_ptr<Removal>& state, const ObjectPtr& current,
                        const StatusResult<std::vector<ObjectPtr>>& shown) {
  if (!shown) return state->done(shown.error());
  const Json old = state->job.resource->from_stored(shown->front()->document());
  state->admission->set_options(admission_options(state->job.options));
  state->admission->mutate(Json(), old, [this, state, current, old](const StatusResult<std::optional<Json>>& mutated) {
    if (!mutated) return state->done(mutated.error());
    state->admission->validate(Json(), old, [this, state, current](const StatusResult<void>& result) {
      if (!result) return state->done(result.error());
      carry_out(state, current);
    });
  });
}

void Remover::carry_out(const std::shared_ptr<Removal>& state, const ObjectPtr& current) {
  const RemoveJob& job = state->job;
  const Resource& resource = core_.cache.of(*job.resource).resource();
  Step step = next_step(resource, current->document(), job.options, core_.now.wall);
  if (step.act == Step::Act::kNothing) return state->done(Removed{current, false});
  const bool gone = step.act == Step::Act::kErase;
  if (job.options.dry_run) {
    const ObjectPtr shown = step.object.is_null() ? current : Committer::imagine(resource, step.object);
    return state->done(Removed{shown, gone});
  }
  const auto committed = [this, state, current, gone,
                          step = StoreStep(core_, job.asked, resource)](const StatusResult<Commit>& result) {
    step.end(result);
    if (!result) return state->done(result.error());
    if (result->committed) return state->done(Removed{result->object ? result->object : current, gone});
    const Resource& raced = core_.cache.of(*state->job.resource).resource();
    if (++state->attempts == (state->admission ? kAskedDeletionAttempts : kAttempts)) {
      return state->done(api::stale_version_status(raced.group_resource(), state->job.name));
    }
    attempt(state, result->object);
  };
  if (gone) {
    committer_.erase(resource, current->key, std::move(step.object), current->revision, committed);
  } else {
    committer_.put(resource, current->key, std::move(step.object), current->revision, Committer::Checks::kSkipped,
                   committed);
  }
}

}  // namespace spillway::apiserver
