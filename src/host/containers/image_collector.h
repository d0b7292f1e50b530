// Removes images that no container uses from a container runtime: every five minutes those that are too old or above
// the thresholds, and all of them when the node reclaims. The image of the sandboxes stays, pinned or not, and so does
// one from which a container is being started. Each removal is logged before it begins. Thread: loop. Bounds: one pass
// at a time, one removal at a time, a deadline on every call. Source: Kubernetes docs, "Garbage Collection", container
// image lifecycle; spec "Node agent", 17; docs/adr/0011-container-runtime.md.
#pragma once

#include "agent/garbage/image_gc.h"
#include "api/json/json.h"
#include "base/alive.h"
#include "base/error.h"
#include "base/time.h"
#include "host/cri/cri_calls.h"
#include "policy/eviction/reclaim.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::host {

/// An image in the runtime's list.
struct ListedImage {
  std::string id;
  std::vector<std::string> names;  // tags and digests
};

class ImageCollector {
 public:
  static constexpr Duration kInterval = minutes(5);

  struct Ports {
    RuntimeCalls& calls;
    /// Reads the last known state of the file system that holds images.
    std::function<Result<agent::ImageFileSystem>()> file_system;
    /// True if a container is being started from the image.
    std::function<bool(const ListedImage&)> is_wanted;
    /// Records an event about the node.
    std::function<void(agent::GcEvent)> record_event;
  };

  struct Reclaimed {
    std::int64_t images = 0;
    std::int64_t bytes = 0;
    std::string problem;  // why some were not removed; empty: none
  };

  ImageCollector(runtime::Loop& loop, Ports ports, telemetry::Log log, agent::ImageGcPolicy policy);
  ImageCollector(const ImageCollector&) = delete;
  ImageCollector& operator=(const ImageCollector&) = delete;

  /// Starts a pass every kInterval. The first one only records the existing images.
  void start();

  /// Removes every unused image that is old enough; after the pass under way, if there is one.
  void reclaim(std::function<void(Reclaimed)> done);

 private:
  struct Seen {
    std::vector<agent::ImageOnNode> images;
    std::vector<ListedImage> listed;
  };

  struct Pass;
  enum class Kind { kDetect, kPeriodic, kReclaim };

  void run_later();
  void begin(Kind kind);
  void ask_sandbox_image();
  void ask_images();
  void ask_containers(api::Json images);
  Seen seen_in(const api::Json& images, const api::Json& containers) const;
  void on_seen(Seen seen);
  void remove_next();
  void remove(const std::string& id);
  void end(std::optional<Error> error);
  void report(const std::optional<Error>& error);
  void call(std::string_view method, api::Json request, RuntimeCalls::Answer answer);

  runtime::Loop& loop_;
  Ports ports_;
  telemetry::Log log_;
  agent::ImageGcPolicy policy_;
  agent::ImageGc images_;
  std::optional<std::string> sandbox_image_;  // absent: not read yet; empty: the runtime does not report it
  std::shared_ptr<Pass> pass_;                // null: none is under way
  std::vector<std::function<void(Reclaimed)>> waiting_;
  int failures_ = 0;  // in a row
  Alive alive_;
};

}  // namespace spillway::host
