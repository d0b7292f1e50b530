// The recording of a node's eviction engine on disk: segment files in a directory of their own, the oldest of which are
// deleted when all together are too long, and requested copies of the whole, as hard links. A thread writes; recording
// never waits for the disk, and records without room are dropped, counted and reported once.
// Thread: loop, except stats(). Bounds: bytes_max on disk and as much again for every copy (kept_max), waiting_max in
// memory. Files have mode 0600, directories 0700. No fsync: a crash of the machine may cost the end.
// Source: docs/adr/0024-recordings.md.
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "base/time.h"
#include "base/unique_fd.h"
#include "runtime/loop_thread.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include "recording/sink.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

class RecordingRing final : public recording::Sink {
 public:
  static constexpr Bytes kBytesMin = mebibytes(1);
  static constexpr Bytes kBytesMax = gibibytes(1);

  struct Options {
    std::string directory;
    Bytes bytes_max = mebibytes(64);  // kBytesMin at least
    std::size_t kept_max = 3;
    Duration keep_interval = minutes(10);  // between two copies: a sooner one would repeat the one before
    std::size_t waiting_max = std::size_t{8} << 20U;
    telemetry::Log log = {};
    telemetry::Registry* metrics = nullptr;  // may be null
  };

  /// Makes the directory; segments of earlier processes count against the bound. kInvalid: it cannot be made, is a link
  /// or belongs to another user.
  static Result<std::unique_ptr<RecordingRing>> open(Options options);
  /// Writes the records that wait.
  ~RecordingRing() override;
  RecordingRing(const RecordingRing&) = delete;
  RecordingRing& operator=(const RecordingRing&) = delete;

  std::size_t segment_bytes() const override;
  bool begin_segment(std::string bytes) override;
  bool append(std::string bytes) override;
  void keep(std::string_view why) override;

  const std::string& directory() const { return options_.directory; }

  /// Calls `done` on the writing thread when everything that was given before is written, or lost. Thread: any.
  void flush(std::function<void()> done);

 private:
  enum class Act { kBegin, kAppend, kKeep };

  struct Item {
    Act act = Act::kAppend;
    std::string bytes;  // for kKeep: the reason
  };

  struct Segment {
    std::uint64_t number = 0;
    std::int64_t bytes = 0;
  };

  explicit RecordingRing(Options options, std::deque<Segment> segments);

  bool enter(Item item);
  // Runs on the thread.
  void drain();
  void carry_out(const Item& item);
  Outcome begin(const std::string& bytes);
  Outcome write(const std::string& bytes);
  Outcome copy(const Item& item);
  void fail(const Error& why);
  void prune(std::int64_t room);
  std::string path_of(std::uint64_t number) const;

  Options options_;
  telemetry::Counter lost_;
  telemetry::Counter kept_;

  std::mutex mutex_;
  std::deque<Item> waiting_;
  std::size_t waiting_bytes_ = 0;
  bool scheduled_ = false;
  std::atomic<bool> broken_{true};  // nothing can be added to the segment

  // Used by the thread alone.
  std::deque<Segment> segments_;  // oldest first
  std::uint64_t next_ = 1;
  UniqueFd file_;
  bool said_ = false;
  std::optional<WallTime> last_copy_;

  runtime::LoopThread thread_;  // last: ends first
};

/// Paths of the segments in `directory`, a ring's or one of its copies, oldest first. kNotFound: there is no such
/// directory.
Result<std::vector<std::string>> recording_segments(const std::string& directory);

/// Names of the copies in a ring's directory, oldest first: "20261124T103000Z-oom-kill".
std::vector<std::string> recording_copies(const std::string& directory);
/// The path of the copy of that name.
std::string recording_copy(const std::string& directory, const std::string& name);
/// The number in a segment's path; nullopt: the path is not a segment's.
std::optional<std::uint64_t> recording_segment_number(const std::string& path);
/// The bytes of a recording or a segment, up to its length when it is opened. kNotFound: it was removed. kInvalid: no
/// ordinary file, or longer than `bytes_max`.
Result<std::string> read_recording_file(const std::string& path, std::int64_t bytes_max);

}  // namespace spillway::host
