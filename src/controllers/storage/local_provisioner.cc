#include "controllers/storage/local_provisioner.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::controllers {
namespace {

constexpr std::string_view kClaims = "claim/";
constexpr std::string_view kVolumes = "volume/";
constexpr std::size_t kTasksMax = 16;
constexpr int kSyncsMax = 256;  // syncs in one step
constexpr Duration kClassRetry = seconds(5);

std::string class_path(std::string_view name) {
  return client::object_path("storage.k8s.io/v1", "storageclasses", {}, name);
}

std::string volume_path(std::string_view name) {
  return client::object_path("v1", "persistentvolumes", {}, name);
}

}  // namespace

LocalProvisioner::LocalProvisioner(storage::LocalFolders folders, LocalDirectories& directories, Rng rng,
                                   telemetry::Log log)
    : folders_(std::move(folders)),
      directories_(directories),
      log_(std::move(log)),
      client_("local-path-provisioner", rng.fork("calls")),
      storage_(client_),
      events_(client_, rng.fork("events"), std::string(storage::kLocalPathProvisioner)) {
  storage_.claims().listen({[this](const auto& before, const auto& after, Now now) {
    touch(kClaims, client::key_of((after ? after : before)->metadata), now);
  }});
  storage_.volumes().listen({[this](const auto& before, const auto& after, Now now) {
    touch(kVolumes, (after ? after : before)->metadata.name, now);
  }});
  storage_.classes().listen({[this](const auto& before, const auto& after, Now now) {
    for (const client::ObjectKey& claim : storage_.waiting((after ? after : before)->metadata.name)) {
      touch(kClaims, claim, now);
    }
  }});
}

void LocalProvisioner::start(Now now) {
  client_.when_synced([this](Now then) {
    synced_ = true;
    create_class();
    for (const auto& [key, claim] : storage_.claims().all()) touch(kClaims, key, then);
    for (const auto& [volume, object] : storage_.volumes().all()) touch(kVolumes, volume, then);
  });
  client_.start(now);
}

void LocalProvisioner::on_api_event(const client::ApiEvent& event, Now now) {
  client_.on_api_event(event, now);
  run(now);
}

void LocalProvisioner::on_wakeup(Now now) {
  client_.on_wakeup(now);
  run(now);
}

/// An existing default class stays the only one.
void LocalProvisioner::create_class() {
  if (storage_.classes().find(std::string(storage::kLocalPathClass))) return;
  const bool is_default = storage_.default_class().empty();
  client_.create(class_path({}), storage::local_path_class(is_default),
                 [this](const Result<api::Json>& made, Now now) { on_class_created(made, now); });
}

void LocalProvisioner::on_class_created(const Result<api::Json>& made, Now now) {
  if (made || made.error().code == ErrorCode::kAlreadyExists) return;
  log_.warning("storage class local-path not created", {{"error", made.error().text()}});
  client_.at(now.mono + kClassRetry, [this](Now) { create_class(); });
}

void LocalProvisioner::touch(std::string_view kind, const std::string& key, Now now) {
  if (synced_) queue_.add(fmt::format("{}{}", kind, key), now.mono);
}

void LocalProvisioner::run(Now now) {
  for (int syncs = 0; syncs < kSyncsMax && tasks_ < kTasksMax; ++syncs) {
    const std::optional<std::string> work = queue_.take(now.mono);
    if (!work) break;
    if (work->starts_with(kClaims)) {
      sync_claim(*work, work->substr(kClaims.size()), now);
    } else {
      sync_volume(*work, work->substr(kVolumes.size()), now);
    }
  }
  const std::optional<Instant> due = tasks_ < kTasksMax ? queue_.next_due() : std::nullopt;
  wake_up_.set(client_, due);
}

void LocalProvisioner::sync_claim(const std::string& work, const client::ObjectKey& key, Now now) {
  using enum storage::ProvisionDecision::Act;
  const ClaimPtr claim = storage_.claims().find(key);
  storage::ProvisionDecision decided;
  if (claim && !storage_.volumes().find(storage::local_volume_name(*claim))) {
    decided = storage::decide_provision(*claim, storage_.classes().find(storage::class_of(*claim)).get(), folders_);
  }
  Making making{.claim = claim, .node = decided.node, .storage_class = {}, .has_directory = false};
  if (decided.act == kRefuse && refused_[work] != decided.why) {
    refused_[work] = decided.why;
    report(work, making, make_error(ErrorCode::kInvalid, "{}", decided.why), now);
  }
  if (decided.act != kRefuse) refused_.erase(work);
  if (decided.act != kMake) {
    queue_.done(work);
    return queue_.forget(work);
  }
  events_.record(client::reference_to(*claim), client::EventType::kNormal, "Provisioning",
                 fmt::format("External provisioner is provisioning volume for claim \"{}\"", key), now);
  ++tasks_;
  makings_.insert_or_assign(work, std::move(making));
  advance(work);
}

void LocalProvisioner::advance(const std::string& work) {
  const Making& making = makings_.at(work);
  const std::string& folder = folders_.at(making.node);
  if (making.storage_class.is_null()) {
    client_.get(class_path(storage::class_of(*making.claim)),
                [this, work](const Result<api::Json>& read, Now now) { on_class_read(work, read, now); });
  } else if (!making.has_directory) {
    directories_.make(folder, storage::local_volume_name(*making.claim),
                      [this, work](const Outcome& made, Now now) { on_directory_made(work, made, now); });
  } else {
    client_.create(volume_path({}), storage::local_volume(*making.claim, making.storage_class, making.node, folder),
                   [this, work](const Result<api::Json>& made, Now now) { on_volume_created(work, made, now); });
  }
}

void LocalProvisioner::on_class_read(const std::string& work, const Result<api::Json>& read, Now now) {
  if (!read) return finish(work, read.error(), now);
  makings_.at(work).storage_class = *read;
  advance(work);
}

void LocalProvisioner::on_directory_made(const std::string& work, const Outcome& made, Now now) {
  if (made) {
    makings_.at(work).has_directory = true;
    advance(work);
  } else {
    finish(work, made, now);
  }
  run(now);
}

/// The name has the claim's uid: one that exists is this volume.
void LocalProvisioner::on_volume_created(const std::string& work, const Result<api::Json>& made, Now now) {
  const bool is_there = made || made.error().code == ErrorCode::kAlreadyExists;
  finish(work, is_there ? Outcome() : Outcome(made.error()), now);
}

void LocalProvisioner::finish(const std::string& work, const Outcome& outcome, Now now) {
  const auto making = makings_.extract(work);
  report(work, making.mapped(), outcome, now);
  end(work, outcome, now);
}

void LocalProvisioner::report(const std::string& work, const Making& making, const Outcome& outcome, Now now) {
  const api::ObjectReference about = client::reference_to(*making.claim);
  if (outcome) {
    const std::string name = storage::local_volume_name(*making.claim);
    log_.info("volume made", {{"claim", work.substr(kClaims.size())}, {"volume", name}, {"node", making.node}});
    return events_.record(about, client::EventType::kNormal, "ProvisioningSucceeded",
                          fmt::format("Successfully provisioned volume {}", name), now);
  }
  log_.warning("volume not made", {{"claim", work.substr(kClaims.size())}, {"error", outcome.error().text()}});
  events_.record(about, client::EventType::kWarning, "ProvisioningFailed",
                 fmt::format("failed to provision volume with StorageClass \"{}\": {}",
                             storage::class_of(*making.claim), outcome.error().text()),
                 now);
}

void LocalProvisioner::sync_volume(const std::string& work, const std::string& name, Now now) {
  using enum storage::RemovalDecision::Act;
  const storage::VolumePtr volume = storage_.volumes().find(name);
  const storage::RemovalDecision decided = volume && !volume->metadata.deletion_timestamp
                                               ? storage::decide_removal(*volume, folders_)
                                               : storage::RemovalDecision();
  if (decided.act == kRefuse && refused_[work] != decided.why) {
    refused_[work] = decided.why;
    events_.record(client::reference_to(*volume), client::EventType::kWarning, "VolumeFailedDelete", decided.why, now);
  }
  if (decided.act != kRefuse) refused_.erase(work);
  if (decided.act != kRemove) {
    queue_.done(work);
    return queue_.forget(work);
  }
  ++tasks_;
  directories_.remove(decided.folder, name, [this, work, volume](const Outcome& removed, Now then) {
    on_directory_removed(work, volume, removed, then);
  });
}

void LocalProvisioner::on_directory_removed(const std::string& work, const storage::VolumePtr& volume,
                                            const Outcome& removed, Now now) {
  if (removed) {
    api::Json options;
    options.make({"preconditions", "uid"}) = volume->metadata.uid;
    client_.remove(volume_path(volume->metadata.name), std::move(options),
                   [this, work](const Result<api::Json>& gone, Now then) { on_volume_deleted(work, gone, then); });
  } else {
    events_.record(client::reference_to(*volume), client::EventType::kWarning, "VolumeFailedDelete",
                   removed.error().text(), now);
    end(work, removed, now);
  }
  run(now);
}

void LocalProvisioner::on_volume_deleted(const std::string& work, const Result<api::Json>& gone, Now now) {
  const bool is_gone = gone || gone.error().code == ErrorCode::kNotFound;
  if (is_gone) log_.info("volume removed", {{"volume", work.substr(kVolumes.size())}});
  end(work, is_gone ? Outcome() : Outcome(gone.error()), now);
}

void LocalProvisioner::end(const std::string& work, const Outcome& outcome, Now now) {
  --tasks_;
  queue_.done(work);
  if (outcome) return queue_.forget(work);
  queue_.retry(work, now.mono);
}

}  // namespace spillway::controllers
