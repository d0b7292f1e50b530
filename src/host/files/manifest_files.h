// The files of a directory (or one file) that hold pods of this node, read again whenever one changes.
// Thread: loop; files are read and parsed on a thread of its own. Bounds: 256 files of at most 1 MiB, one reading at a
// time, a burst of changes is one reading. Files whose names start with a point are left out. Where the kernel's
// notification fails, the periodic reading remains. Source: Kubernetes docs, "Create static Pods"; spec "Node agent",
// 16.1; inotify(7).
#pragma once

#include "agent/contract/static_manifests.h"
#include "api/json/json.h"
#include "base/error.h"
#include "base/time.h"
#include "base/unique_fd.h"
#include "host/kernel/blocking_thread.h"
#include "runtime/loop.h"

#include <functional>
#include <optional>
#include <string>

namespace spillway::host {

inline constexpr std::size_t kManifestsMax = 256;
inline constexpr std::size_t kManifestBytesMax = 1024 * 1024;

class ManifestFiles {
 public:
  /// Parses the text of a file to a document; runs on the reading thread.
  using Parse = Result<api::Json> (*)(const std::string& file, const std::string& text);
  using Listener = std::function<void(const agent::StaticManifests&)>;

  struct Options {
    std::string path;
    Duration period = seconds(20);  // between unprompted readings
    Parse parse = nullptr;
  };

  /// Reads at once; `listener` is called on the loop after every reading.
  ManifestFiles(runtime::Loop& loop, Options options, Listener listener);
  ~ManifestFiles();
  ManifestFiles(const ManifestFiles&) = delete;
  ManifestFiles& operator=(const ManifestFiles&) = delete;

 private:
  void watch();
  void on_change();
  void read();
  void arm(Duration delay);

  runtime::Loop& loop_;
  Options options_;
  Listener listener_;
  UniqueFd inotify_;
  std::optional<runtime::Loop::TimerId> timer_;
  bool again_ = false;     // something changed while a reading was under way
  BlockingThread thread_;  // last: its results use the other members
};

/// The present manifests. A path that does not exist holds no files.
agent::StaticManifests read_manifests(const std::string& path, ManifestFiles::Parse parse);

}  // namespace spillway::host
