#include "policy/workloads/deployment_plan.h"

#include "policy/workloads/deployment_status.h"
#include "policy/workloads/pod_template.h"
#include "policy/workloads/rollout_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::workloads {

namespace {

enum class Missing { kCreate, kIgnore };

/// The old and the new ReplicaSets as they were read: writes of this sync change neither.
struct Generations {
  ReplicaSetPtr latest;
  ReplicaSets old;

  ReplicaSets all() const {
    ReplicaSets sets = old;
    if (latest) sets.push_back(latest);
    return sets;
  }
};

class DeploymentPlanner {
 public:
  DeploymentPlanner(const DeploymentView& view, WallTime now) : view_(view), d_(view.deployment), now_(now) {}

  Result<DeploymentPlan> plan() {
    if (d_.selector.is_everything()) {
      refuse_everything();
      return std::move(plan_);
    }
    claim();
    latest_ = find_new(d_, sets_);
    old_ = all_but(latest_, sets_);
    if (d_.metadata.deletion_timestamp) {
      const Generations sets = *generations(Missing::kIgnore);
      write_counted(sets);
      return std::move(plan_);
    }
    mark_pause();
    const Outcome done = d_.paused || is_scaled() ? scale() : roll_out();
    if (!done) return done.error();
    return std::move(plan_);
  }

 private:
  void refuse_everything() {
    plan_.selects_everything = true;
    if (d_.status.observed_generation >= d_.metadata.generation) return;
    d_.status.observed_generation = d_.metadata.generation;
    write_status();
  }

  void write_status() {
    std::optional<std::string> revision;
    const auto written = d_.metadata.annotations.find(kRevision);
    if (written != d_.metadata.annotations.end()) revision = written->second;
    plan_.writes.emplace_back(WriteDeploymentStatus{d_.status, std::move(revision)});
  }

  // Ownership.

  void claim() {
    for (const ReplicaSetPtr& set : view_.sets) {
      const api::OwnerReference* owner = api::controller_of(set->metadata);
      const bool matches = d_.selector.matches(set->metadata.labels);
      const bool deployment_leaves = d_.metadata.deletion_timestamp.has_value();
      if (owner != nullptr) {
        if (owner->uid != d_.metadata.uid) continue;
        if (matches) {
          sets_.push_back(set);
        } else if (!deployment_leaves) {
          plan_.writes.emplace_back(ReleaseReplicaSet{set});
        }
      } else if (matches && !deployment_leaves && !set->metadata.deletion_timestamp) {
        plan_.writes.emplace_back(AdoptReplicaSet{set});
        sets_.push_back(set);
      }
    }
  }

  // The new ReplicaSet and the revision.

  /// Updates the new ReplicaSet; if that is up to date, the Deployment's revision.
  Result<Generations> generations(Missing missing) {
    Generations sets{latest_, old_};
    const std::int64_t revision = max_revision(sets.old) + 1;
    if (sets.latest) {
      sets.latest = kept_current(sets.latest, revision);
      return sets;
    }
    if (created_ && missing == Missing::kCreate) sets.latest = created_;
    if (sets.latest || missing == Missing::kIgnore) return sets;
    const auto made = create(sets.old, revision);
    if (!made) return made.error();
    sets.latest = *made;
    return sets;
  }

  ReplicaSetPtr kept_current(const ReplicaSetPtr& present, std::int64_t revision) {
    if (updated_) return updated_;
    api::ReplicaSet set = *present;
    const bool recorded = record_revision(set, d_, revision, Written::kYes);
    if (recorded || set.min_ready_seconds != d_.min_ready_seconds) {
      set.min_ready_seconds = d_.min_ready_seconds;
      plan_.writes.emplace_back(UpdateReplicaSet{set, std::nullopt});
      updated_ = std::make_shared<const api::ReplicaSet>(std::move(set));
      return updated_;
    }
    bool changed = false;
    const auto written = set.metadata.annotations.find(kRevision);
    if (written != set.metadata.annotations.end()) changed = record_own_revision(written->second);
    if (has_progress_deadline(d_) && find_condition(d_.status.conditions, kProgressing) == nullptr) {
      set_condition(d_.status.conditions,
                    progress_condition("True", "FoundNewReplicaSet",
                                       fmt::format("Found new replica set \"{}\"", set.metadata.name), now_));
      changed = true;
    }
    if (changed) write_status();
    return std::make_shared<const api::ReplicaSet>(std::move(set));
  }

  bool record_own_revision(const std::string& revision) {
    std::string& present = d_.metadata.annotations[std::string(kRevision)];
    return std::exchange(present, revision) != revision;
  }

  Result<ReplicaSetPtr> create(const ReplicaSets& old, std::int64_t revision) {
    CreateReplicaSet creation;
    creation.pod_template = template_document(d_.pod_template);
    const std::string hash = template_hash(creation.pod_template, d_.status.collision_count);
    creation.pod_template.make({"metadata", "labels", kPodTemplateHash}) = hash;
    creation.selector = d_.selector_document;
    creation.selector.make({"matchLabels", kPodTemplateHash}) = hash;
    api::ReplicaSet& set = creation.set;
    set.metadata.name = fmt::format("{}-{}", d_.metadata.name, hash);
    set.metadata.ns = d_.metadata.ns;
    set.metadata.labels = d_.pod_template.labels;
    set.metadata.labels[std::string(kPodTemplateHash)] = hash;
    set.min_ready_seconds = d_.min_ready_seconds;
    set.pod_template = d_.pod_template;
    set.pod_template.labels = set.metadata.labels;
    set.replicas = 0;
    const auto size = new_size(d_, old, set);
    if (!size) return size.error();
    set.replicas = *size;
    record_revision(set, d_, revision, Written::kNo);
    created_ = std::make_shared<const api::ReplicaSet>(set);
    plan_.writes.emplace_back(std::move(creation));
    bool changed = record_own_revision(std::to_string(revision));
    if (has_progress_deadline(d_)) {
      set_condition(d_.status.conditions,
                    progress_condition("True", "NewReplicaSetCreated",
                                       fmt::format("Created new replica set \"{}\"", created_->metadata.name), now_));
      changed = true;
    }
    if (changed) write_status();
    return created_;
  }

  // Pause and scale.

  void mark_pause() {
    if (!has_progress_deadline(d_)) return;
    const api::WorkloadCondition* present = find_condition(d_.status.conditions, kProgressing);
    if (present != nullptr && present->reason == kProgressDeadlineExceeded) return;
    const bool recorded = present != nullptr && present->reason == kDeploymentPaused;
    if (recorded == d_.paused) return;
    set_condition(d_.status.conditions,
                  d_.paused ? progress_condition("Unknown", kDeploymentPaused, "Deployment is paused", now_)
                            : progress_condition("Unknown", "DeploymentResumed", "Deployment is resumed", now_));
    write_status();
  }

  /// True if an active ReplicaSet was last written for another number of pods than the Deployment has now.
  bool is_scaled() {
    const Generations sets = *generations(Missing::kIgnore);
    return std::ranges::any_of(active_of(sets.all()), [this](const ReplicaSetPtr& set) {
      const auto desired = number_on(set->metadata, kDesiredReplicas);
      return desired && *desired != d_.replicas;
    });
  }

  Outcome scale() {
    const Generations sets = *generations(Missing::kIgnore);
    for (UpdateReplicaSet& update : plan_scale(d_, sets.latest, sets.old, Shares::kPromised))
      plan_.writes.emplace_back(std::move(update));
    if (d_.paused) clean_history(sets.old);
    write_counted(sets);
    return {};
  }

  bool resize(const ReplicaSetPtr& set, std::int64_t size) {
    if (set->replicas == size) return false;
    UpdateReplicaSet update{*set, set->replicas};
    update.set.replicas = static_cast<std::int32_t>(size);
    record_scale(update.set, d_);
    plan_.writes.emplace_back(std::move(update));
    return true;
  }

  void clean_history(const ReplicaSets& old) {
    for (const ReplicaSetPtr& set : beyond_history(d_, old)) plan_.writes.emplace_back(DeleteReplicaSet{set});
  }

  // The strategies.

  Outcome roll_out() {
    if (d_.strategy == kRecreate) return recreate();
    auto sets = generations(Missing::kCreate);
    if (!sets) return sets.error();
    const auto grown = grow(*sets);
    if (!grown) return grown.error();
    if (!*grown && !shrink(*sets) && is_complete(d_, d_.status)) clean_history(sets->old);
    write_rollout(*sets);
    return {};
  }

  Outcome recreate() {
    auto sets = generations(Missing::kIgnore);
    bool scaled = false;
    for (const ReplicaSetPtr& set : active_of(sets->old)) scaled = resize(set, 0) || scaled;
    const bool old_pods_remain =
        std::ranges::any_of(sets->old, [](const auto& set) { return set->status.replicas > 0; });
    if (scaled || old_pods_remain || view_.old_pods == OldPods::kRunning) {
      write_rollout(*sets);
      return {};
    }
    if (!sets->latest) sets = generations(Missing::kCreate);
    if (!sets) return sets.error();
    resize(sets->latest, d_.replicas);
    if (is_complete(d_, d_.status)) clean_history(sets->old);
    write_rollout(*sets);
    return {};
  }

  Result<bool> grow(const Generations& sets) {
    if (sets.latest->replicas == d_.replicas) return false;
    if (sets.latest->replicas > d_.replicas) return resize(sets.latest, d_.replicas);
    const auto size = new_size(d_, sets.all(), *sets.latest);
    if (!size) return size.error();
    return resize(sets.latest, *size);
  }

  /// The available pods that the ReplicaSet will keep; the others are about to be deleted by an earlier sync. 0 if the
  /// status is older than the last change of its size: it may count pods that are deleted since.
  static std::int64_t staying(const api::ReplicaSet& set) {
    if (set.status.observed_generation < set.metadata.generation) return 0;
    return std::min(set.status.available_replicas, set.replicas);
  }

  /// Scales the old ReplicaSets down by as many pods as the new one allows: first those that are not available.
  bool shrink(const Generations& sets) {
    ReplicaSets old = active_of(sets.old);
    std::int64_t all = sets.latest->replicas;
    std::int64_t available = staying(*sets.latest);
    for (const ReplicaSetPtr& set : old) {
      all += set->replicas;
      available += staying(*set);
    }
    const std::int64_t minimum = rollout_bounds(d_).available_min;
    const std::int64_t missing = sets.latest->replicas - sets.latest->status.available_replicas;
    const std::int64_t room = all - minimum - missing;
    if (old.empty() || room <= 0) return false;
    std::int64_t unhealthy = 0;
    for (ReplicaSetPtr& set : old) {
      const std::int64_t lacking = set->replicas - set->status.available_replicas;
      if (unhealthy >= room || lacking <= 0) continue;
      const std::int64_t taken = std::min(room - unhealthy, lacking);
      resize(set, set->replicas - taken);
      unhealthy += taken;
      set = std::make_shared<const api::ReplicaSet>(std::get<UpdateReplicaSet>(plan_.writes.back()).set);
    }
    std::int64_t healthy = 0;
    for (const ReplicaSetPtr& set : old) {
      const std::int64_t taken = std::min<std::int64_t>(set->replicas, available - minimum - healthy);
      if (taken <= 0) continue;
      resize(set, set->replicas - taken);
      healthy += taken;
    }
    return unhealthy + healthy > 0;
  }

  // The status.

  void write_if_new(api::DeploymentStatus status) {
    plan_.requeue_after = until_deadline(d_, status, now_);
    if (status == d_.status) return;
    d_.status = std::move(status);
    write_status();
  }

  void write_counted(const Generations& sets) {
    write_if_new(counted_status(d_, sets.old, sets.latest, now_));
    plan_.requeue_after.reset();
  }

  void write_rollout(const Generations& sets) { write_if_new(rollout_status(d_, sets.old, sets.latest, now_)); }

  const DeploymentView& view_;
  api::Deployment d_;  // the Deployment with the changes that this sync has written
  WallTime now_;
  ReplicaSets sets_;
  ReplicaSetPtr latest_;
  ReplicaSets old_;
  ReplicaSetPtr updated_;  // the new ReplicaSet, if this sync has written its revision
  ReplicaSetPtr created_;
  DeploymentPlan plan_;
};

}  // namespace

Result<DeploymentPlan> plan_deployment(const DeploymentView& view, WallTime now) {
  return DeploymentPlanner(view, now).plan();
}

api::DeploymentStatus after_collision(const api::Deployment& deployment) {
  api::DeploymentStatus status = deployment.status;
  status.collision_count = status.collision_count.value_or(0) + 1;
  return status;
}

std::optional<api::DeploymentStatus> after_failed_creation(const api::Deployment& deployment,
                                                           const std::string& message, WallTime now) {
  if (!has_progress_deadline(deployment)) return std::nullopt;
  api::DeploymentStatus status = deployment.status;
  set_condition(status.conditions, progress_condition("False", "ReplicaSetCreateError", message, now));
  return status;
}

}  // namespace spillway::workloads
