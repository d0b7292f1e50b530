// The pages from which a recording is fetched: what there is of it as JSON, and one segment as it lies on the disk. The
// ring's thread reads, after it has written what was recorded before; the loop never waits for a disk.
// Thread: loop. Bounds: kWaitingMax answers that are being read, kSegmentAnswerMax bytes of one, kSegmentsShownMax
// segments in a list. Paths below kRecordingPage:
//   ""                     {"segments":[{"name":"7","bytes":4194304}],"kept":[{"name":"…-oom-kill","segments":[…]}]}
//   "/segments/7"          the bytes of that segment
//   "/kept/NAME/7"         the bytes of that segment of a copy
// Source: docs/adr/0062-recordings-by-segment.md, docs/record-replay.md.
#pragma once

#include "api/exchange/exchange.h"
#include "host/files/recording_ring.h"
#include "runtime/loop.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace spillway::host {

inline constexpr std::string_view kRecordingPage = "/debug/spillway/recording";

class RecordingPages {
 public:
  using Answer = std::function<void(api::Response)>;

  static constexpr std::size_t kWaitingMax = 4;
  /// A segment ends after 4 MiB; its first and its last record may go 4 MiB beyond that, each.
  static constexpr std::int64_t kSegmentAnswerMax = std::int64_t{16} << 20U;
  static constexpr std::size_t kSegmentsShownMax = 4096;

  explicit RecordingPages(runtime::Loop& loop);
  ~RecordingPages();
  RecordingPages(const RecordingPages&) = delete;
  RecordingPages& operator=(const RecordingPages&) = delete;

  static bool serves(std::string_view path);

  /// nullptr: nothing is recorded. The ring must outlive the last get().
  void set_ring(RecordingRing* ring) { ring_ = ring; }

  /// Answers now or later, once, unless the pages end before. 404: no such segment (one of the ring may be gone since
  /// it was listed), 429: too many are being read, 503: nothing is recorded here. The caller has authorized.
  void get(std::string_view path, Answer answer);

 private:
  struct Waiting;

  runtime::Loop& loop_;
  RecordingRing* ring_ = nullptr;
  std::shared_ptr<Waiting> waiting_;
};

}  // namespace spillway::host
