// Reads what the variables of a container refer to, before it starts: ConfigMaps, Secrets, files of its pod's volumes.
// Thread: loop. Bounds: one record per reading under way; kEnvironmentWrittenMax bytes for one container.
#pragma once

#include "agent/containers/container_env.h"
#include "agent/contract/context.h"
#include "agent/contract/volume_ports.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace spillway::agent {

class EnvReader {
 public:
  /// The result. Objects and files that are not there are left out; `error`: something could not be read, or all of it
  /// is too large.
  struct Read {
    EnvSources sources;
    EnvFiles files;
    std::optional<Error> error;
  };

  using Done = std::function<void(const Read& read, Now now)>;

  explicit EnvReader(AgentContext& context) : context_(context) {}

  /// `done` is called once, later, when all is read; at least one reference or file is given. `ns`: of the references.
  void read(const std::string& uid, const std::string& ns, const std::set<DataReference>& references,
            const std::set<EnvFile>& files, Done done);

  void on_file(const VolumeFileRead& event, Now now);

 private:
  struct Reading {
    std::size_t left = 0;
    std::size_t bytes = 0;
    Read read;
    Done done;
  };

  struct File {
    EnvFile file;
    std::shared_ptr<Reading> reading;
  };

  static void on_object(Reading& reading, const DataReference& reference, const Result<api::Json>& answer, Now now);
  static void take(Reading& reading, std::size_t bytes, Now now);

  AgentContext& context_;
  std::map<std::uint64_t, File> files_;  // requested, by id
  std::uint64_t last_id_ = 0;
};

}  // namespace spillway::agent
