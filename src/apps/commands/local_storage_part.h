// The provisioner of the class local-path as a part of a process, with a thread of its own that makes and removes the
// directories. Thread: loop. Bounds: 64 directories wait for the thread.
#pragma once

#include "apps/process/engine_part.h"
#include "controllers/storage/local_directories.h"
#include "host/kernel/blocking_thread.h"
#include "policy/storage/local_path.h"

#include <functional>
#include <memory>
#include <string>

namespace spillway::apps {

class LocalStoragePart final : public Part {
 public:
  LocalStoragePart(Process& process, storage::LocalFolders folders, Rng rng,
                   std::unique_ptr<client::Transport> transport);

  void stop(runtime::Loop::Task done) override { engine_.stop(std::move(done)); }

 private:
  class Directories final : public controllers::LocalDirectories {
   public:
    explicit Directories(runtime::Loop& loop);

    /// Steps of the engine are made through it from now on.
    void set_driver(runtime::EngineDriver& driver) { driver_ = &driver; }

    void make(const std::string& folder, const std::string& name, Done done) override;
    void remove(const std::string& folder, const std::string& name, Done done) override;

   private:
    void run(std::function<Outcome()> act, const Done& done);

    runtime::EngineDriver* driver_ = nullptr;
    host::BlockingThread thread_;
  };

  class Engine final : public EnginePart {
   public:
    Engine(runtime::Loop& loop, Directories& directories, std::unique_ptr<client::ApiEngine> engine,
           std::unique_ptr<client::Transport> transport);
  };

  Directories directories_;
  Engine engine_;
};

}  // namespace spillway::apps
