// Applies the objects of a folder's files, and again when the files change. The folder is read every two seconds, on a
// thread of its own. Thread: loop.
#pragma once

#include "apps/commands/manifest_folder.h"
#include "apps/process/engine_part.h"
#include "controllers/manifests/manifest_applier.h"
#include "host/kernel/blocking_thread.h"

#include <memory>
#include <optional>
#include <string>

namespace spillway::apps {

class ManifestsPart final : public EnginePart {
 public:
  ManifestsPart(Process& process, std::string folder, Rng rng, std::unique_ptr<client::Transport> transport);

  void stop(runtime::Loop::Task done) override;

 private:
  void read();
  void on_read(ManifestFolder::Change change);

  Process& process_;
  controllers::ManifestApplier& applier_;
  std::shared_ptr<ManifestFolder> folder_;  // used on the thread
  std::optional<runtime::Loop::TimerId> timer_;
  host::BlockingThread thread_;  // last, because its results use the other members
};

}  // namespace spillway::apps
