#include "apps/commands/local_storage_part.h"

#include "controllers/storage/local_provisioner.h"
#include "host/volumes/provisioned_directory.h"

#include <cstddef>
#include <utility>

namespace spillway::apps {
namespace {

constexpr std::size_t kDirectoriesWaitingMax = 64;  // more than the provisioner requests at a time

}  // namespace

LocalStoragePart::Directories::Directories(runtime::Loop& loop) : thread_(loop, kDirectoriesWaitingMax) {}

void LocalStoragePart::Directories::make(const std::string& folder, const std::string& name, Done done) {
  run([folder, name] { return host::make_provisioned(folder, name); }, done);
}

void LocalStoragePart::Directories::remove(const std::string& folder, const std::string& name, Done done) {
  run([folder, name] { return host::remove_provisioned(folder, name); }, done);
}

/// An answer of the thread is dropped with the thread, and a step that begins during another waits for its end.
void LocalStoragePart::Directories::run(std::function<Outcome()> act, const Done& done) {
  const auto answer = [this, done](const Outcome& outcome) {
    driver_->step([done, outcome](Now now) { done(outcome, now); });
  };
  const bool queued = thread_.submit([act = std::move(act), answer]() -> runtime::Loop::Task {
    return [answer, outcome = act()] { answer(outcome); };
  });
  if (!queued) answer(make_error(ErrorCode::kTooManyRequests, "too many directories wait for the disk"));
}

LocalStoragePart::Engine::Engine(runtime::Loop& loop, Directories& directories,
                                 std::unique_ptr<client::ApiEngine> engine,
                                 std::unique_ptr<client::Transport> transport)
    : EnginePart(loop, std::move(engine), std::move(transport)) {
  directories.set_driver(driver());
}

LocalStoragePart::LocalStoragePart(Process& process, storage::LocalFolders folders, Rng rng,
                                   std::unique_ptr<client::Transport> transport)
    : directories_(process.loop()),
      engine_(process.loop(), directories_,
              std::make_unique<controllers::LocalProvisioner>(std::move(folders), directories_, rng, process.log()),
              std::move(transport)) {}

}  // namespace spillway::apps
