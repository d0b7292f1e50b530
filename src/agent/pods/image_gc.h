// Which images go, and in which order, when their file system is full or their time is over.
// Thread: any. A class that keeps when each image was first seen and last used. Source: Kubernetes docs, "Garbage
// Collection", unused container images; spec "Node agent", 17; vectors node-agent/image_gc.
#pragma once

#include "base/error.h"
#include "base/time.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::agent {

struct ImageGcPolicy {
  std::int64_t high_threshold_percent = 85;
  std::int64_t low_threshold_percent = 80;
  Duration min_age = minutes(2);
  Duration max_age{};  // zero: images do not age
};

/// kInvalid: percentages out of range, or the low one above the high one.
Outcome check_policy(const ImageGcPolicy& policy);

struct ImageOnNode {
  std::string id;
  std::int64_t size_bytes = 0;
  bool pinned = false;
  bool in_use = false;  // by any container, a dead one included
};

struct ImageRecord {
  Instant first_detected;
  std::optional<Instant> last_used;  // nullopt: never
  std::int64_t size_bytes = 0;
  bool pinned = false;
};

struct ImageFileSystem {
  std::int64_t capacity_bytes = 0;
  std::int64_t available_bytes = 0;
};

struct GcEvent {
  std::string reason;
  std::string message;
};

struct ImageGcResult {
  std::int64_t freed_bytes = 0;
  std::optional<Error> error;
  std::vector<GcEvent> events;  // warnings
};

class ImageGc {
 public:
  /// Removes one image; an error says why it stays.
  using Remove = std::function<Outcome(const std::string& id)>;

  ImageGc(ImageGcPolicy policy, Instant started) : policy_(policy), started_(started) {}

  void restore(const std::string& id, const ImageRecord& record) { records_[id] = record; }

  /// Notes what is there and what is in use.
  void detect(const std::vector<ImageOnNode>& images, Instant now);
  /// After detect(): removes what is too old, then what the thresholds ask for.
  ImageGcResult collect(const Result<ImageFileSystem>& fs, const std::vector<ImageOnNode>& images, Instant now,
                        const Remove& remove);
  /// After detect(): removes every unused image that is old enough.
  ImageGcResult remove_unused(const std::vector<ImageOnNode>& images, Instant now, const Remove& remove);

  const std::map<std::string, ImageRecord>& records() const { return records_; }

 private:
  struct Candidate {
    std::string id;
    ImageRecord record;
  };

  std::vector<Candidate> candidates(const std::vector<ImageOnNode>& images) const;
  /// Those that stay; an error ends the pass.
  Result<std::vector<Candidate>> remove_old(std::vector<Candidate> candidates, Instant now, const Remove& remove,
                                            ImageGcResult& result);
  ImageGcResult free_space(std::int64_t wanted_bytes, const std::vector<Candidate>& candidates, Instant now,
                           const Remove& remove);

  ImageGcPolicy policy_;
  Instant started_;
  std::map<std::string, ImageRecord> records_;
};

}  // namespace spillway::agent
