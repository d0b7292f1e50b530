#include "apiserver/write/remover.h"

#include "api/json/json_values.h"
#include "api/object/meta.h"
#include "api/text/time_text.h"
#include "apiserver/read/object_converter.h"
#include "apiserver/resource/object_condition.h"
#include "apiserver/webhooks/admission_options.h"
#include "base/step_list.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::Status;
using api::StatusResult;

constexpr int kAttempts = 64;  // races that one deletion may lose; then the client gets a conflict
// the same limit where webhooks are called for each attempt: calls are slow and costly
constexpr int kAskedDeletionAttempts = 5;
constexpr std::string_view kOrphan = "orphan";
constexpr std::string_view kForeground = "foregroundDeletion";

/// Seconds that a pod has to end by itself; 0 for kinds without a grace period.
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
struct DeletionStep {
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

DeletionStep next_step(const Resource& resource, Json object, const DeleteOptions& options, WallTime now) {
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
        return {DeletionStep::Act::kPut, marked(std::move(object), grace, begun, std::move(finalizers), resource)};
      }
      // The shorter period has passed already: the deletion is due now.
      Json due = marked(std::move(object), 0, now, std::move(finalizers), resource);
      due["metadata"]["deletionGracePeriodSeconds"] = 1;
      return {DeletionStep::Act::kPut, std::move(due)};
    }
  }
  if (grace == 0 && !held) {
    if (!resource.graceful) return {DeletionStep::Act::kErase, {}};
    Json last = std::move(object);
    if (!deleting) count_deletion(resource, last);
    if (!deleting) last["metadata"]["deletionTimestamp"] = api::format_time(now);
    last["metadata"]["deletionGracePeriodSeconds"] = 0;
    return {DeletionStep::Act::kErase, std::move(last)};
  }
  return {DeletionStep::Act::kPut, marked(std::move(object), grace, now, std::move(finalizers), resource)};
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

/// One deletion, as a list of steps (docs/adr/0072-writes-as-lists-of-steps.md). Every wait keeps it alive.
class Remover::Removal : public std::enable_shared_from_this<Removal> {
 public:
  Removal(Remover& remover, RemoveJob job, RemoveDone done, ObjectPtr current)
      : core_(remover.core_),
        committer_(remover.committer_),
        webhooks_(remover.webhooks_),
        job_(std::move(job)),
        done_(std::move(done)),
        current_(std::move(current)) {}

  void advance() {
    Next next = Next::kStep;
    while (next == Next::kStep) next = run(steps_.take());
  }

 private:
  enum class Step : std::uint8_t { kTarget, kRequestedForm, kMutatingWebhooks, kValidatingWebhooks, kCommit };

  static constexpr std::array kSteps{Step::kTarget, Step::kRequestedForm, Step::kMutatingWebhooks,
                                     Step::kValidatingWebhooks, Step::kCommit};

  Next run(Step step) {
    switch (step) {
      case Step::kTarget:
        return check_target();
      case Step::kRequestedForm:
        return convert_current();
      case Step::kMutatingWebhooks:
        return ask_mutating_webhooks();
      case Step::kValidatingWebhooks:
        return ask_validating_webhooks();
      case Step::kCommit:
        return commit();
    }
    return Next::kEnd;
  }

  Next check_target() {
    const Resource& resource = stored();
    if (!current_) return end(api::not_found_status(resource.group_resource(), job_.name));
    if (const auto held = check_preconditions(resource, *current_, job_.options); !held) return end(held.error());
    if (webhooks_ != nullptr) {
      admission_ = webhooks_->begin(job_.asked, webhooks::Operation::kDelete, job_.ns, job_.name, job_.options.dry_run);
    }
    if (!admission_) steps_.go_to(Step::kCommit);
    return Next::kStep;
  }

  /// Webhooks see the object in the version of the request.
  Next convert_current() {
    core_.converter->convert(*job_.resource, {current_}, ObjectConverter::Of::kObject,
                             [self = shared_from_this()](const StatusResult<std::vector<ObjectPtr>>& shown) {
                               self->resume(self->on_converted(shown));
                             });
    return Next::kWait;
  }

  Next on_converted(const StatusResult<std::vector<ObjectPtr>>& shown) {
    if (!shown) return end(shown.error());
    old_ = job_.resource->from_stored(shown->front()->document());
    admission_->set_options(admission_options(job_.options));
    return Next::kStep;
  }

  /// A deletion has nothing that these webhooks could change.
  Next ask_mutating_webhooks() {
    admission_->mutate(Json(), old_, [self = shared_from_this()](const StatusResult<std::optional<Json>>& mutated) {
      self->resume(mutated ? Next::kStep : self->end(mutated.error()));
    });
    return Next::kWait;
  }

  Next ask_validating_webhooks() {
    admission_->validate(Json(), old_, [self = shared_from_this()](const StatusResult<void>& result) {
      self->resume(result ? Next::kStep : self->end(result.error()));
    });
    return Next::kWait;
  }

  Next commit() {
    const Resource& resource = stored();
    DeletionStep deletion = next_step(resource, current_->document(), job_.options, core_.now.wall);
    if (deletion.act == DeletionStep::Act::kNothing) return end(Removed{current_, false});
    const bool gone = deletion.act == DeletionStep::Act::kErase;
    if (job_.options.dry_run) {
      const ObjectPtr shown = deletion.object.is_null() ? current_ : Committer::imagine(resource, deletion.object);
      return end(Removed{shown, gone});
    }
    auto committed = [self = shared_from_this(), gone,
                      store_step = StoreStep(core_, job_.asked, resource)](const StatusResult<Commit>& result) {
      store_step.end(result);
      self->resume(self->on_committed(result, gone));
    };
    if (gone) {
      committer_.erase(resource, current_->key, std::move(deletion.object), current_->revision, std::move(committed));
    } else {
      committer_.put(resource, current_->key, std::move(deletion.object), current_->revision,
                     Committer::Checks::kSkipped, std::move(committed));
    }
    return Next::kWait;
  }

  /// Another write came first: the deletion begins again with the object that it left.
  Next on_committed(const StatusResult<Commit>& result, bool gone) {
    if (!result) return end(result.error());
    if (result->committed) return end(Removed{result->object ? result->object : current_, gone});
    if (++attempts_ == (admission_ ? kAskedDeletionAttempts : kAttempts)) {
      return end(api::stale_version_status(stored().group_resource(), job_.name));
    }
    current_ = result->object;
    steps_.go_to(Step::kTarget);
    return Next::kStep;
  }

  void resume(Next next) {
    if (next == Next::kStep) advance();
  }

  Next end(StatusResult<Removed> result) {
    done_(std::move(result));
    return Next::kEnd;
  }

  /// The row of the version in which the object is stored.
  const Resource& stored() const { return core_.cache.of(*job_.resource).resource(); }

  Core& core_;
  Committer& committer_;
  WebhookAdmission* webhooks_;
  const RemoveJob job_;
  RemoveDone done_;
  ObjectPtr current_;
  AdmissionPtr admission_;  // the current attempt's; null: no webhook applies
  Json old_;                // in the version of the request
  int attempts_ = 0;
  StepList<Step> steps_{kSteps};
};

void Remover::remove(RemoveJob job, RemoveDone done) {
  const Resource& resource = core_.cache.of(*job.resource).resource();
  if (is_protected(resource, job.name)) {
    return done(api::forbidden_status(resource.group_resource(), job.name, "this namespace may not be deleted"));
  }
  ObjectPtr current = core_.cache.of(resource).find(object_key(job.ns, job.name));
  std::make_shared<Removal>(*this, std::move(job), std::move(done), std::move(current))->advance();
}

}  // namespace spillway::apiserver
