// Selects images for removal, in order, when their file system is full or they have been unused for too long. Thread:
// any. A class that keeps when each image was first seen and last used. Source: Kubernetes docs, "Garbage Collection",
// unused container images; spec "Node agent", 17; vectors node-agent/image_gc.
#pragma once

#include "agent/contract/image_settings.h"
#include "base/error.h"
#include "base/time.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::agent {

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

class ImageGc;

/// One pass: requests one removal after the other, each of which may be slow. The whole plan is made before. The
/// images' records must outlive it.
class ImageGcPass {
 public:
  /// The id of the image to remove next; "": the pass is over. The same until on_removed().
  const std::string& next();

  /// The result of removing next(); an error keeps the image.
  void on_removed(const Outcome& removed);

  /// The result of the pass, once it is over.
  const ImageGcResult& result() const { return result_; }

  /// The ids of the images still to be removed, in order, if every removal succeeds.
  std::vector<std::string> plan() const;

 private:
  friend class ImageGc;

  enum class Step { kOld, kSpace, kOver };
  enum class Aim { kThresholds, kEverything };

  struct Candidate {
    std::string id;
    ImageRecord record;
  };

  ImageGcPass(ImageGc& images, Aim aim, Result<ImageFileSystem> fs, std::vector<Candidate> candidates, Instant now);

  void begin_space();
  void finish();
  void fail(std::string reason, std::string message);
  bool is_old(const Candidate& candidate) const;
  bool is_due(const Candidate& candidate) const;

  ImageGc& images_;
  Aim aim_;
  Result<ImageFileSystem> fs_;
  std::vector<Candidate> candidates_;
  Instant now_;
  Step step_ = Step::kOver;
  std::size_t at_ = 0;
  std::vector<std::string> errors_;
  std::int64_t wanted_bytes_ = 0;
  std::int64_t freed_bytes_ = 0;  // for the space that is wanted
  ImageGcResult result_;
  bool rehearses_ = false;  // for plan(): records are not changed
};

class ImageGc {
 public:
  ImageGc(ImageGcPolicy policy, Instant started) : policy_(policy), started_(started) {}

  void restore(const std::string& id, const ImageRecord& record) { records_[id] = record; }

  /// Records which images exist and which are in use.
  void detect(const std::vector<ImageOnNode>& images, Instant now);
  /// Called after detect(): removes images that are too old, then as many as the thresholds require.
  ImageGcPass collect(Result<ImageFileSystem> fs, const std::vector<ImageOnNode>& images, Instant now);
  /// Called after detect(): removes every unused image that is old enough.
  ImageGcPass remove_unused(const std::vector<ImageOnNode>& images, Instant now);

  const std::map<std::string, ImageRecord>& records() const { return records_; }

 private:
  friend class ImageGcPass;

  std::vector<ImageGcPass::Candidate> candidates(const std::vector<ImageOnNode>& images) const;

  ImageGcPolicy policy_;
  Instant started_;
  std::map<std::string, ImageRecord> records_;
};

}  // namespace spillway::agent
