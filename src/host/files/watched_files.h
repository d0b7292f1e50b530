// A few small files that are read again when one of them changes: certificates, keys. Files that are replaced by others
// of their name are followed, and so are links that are (a mounted Secret).
// Thread: loop; files are read on a thread of its own. Bounds: kFileBytesMax of each, one reading at a time, a burst of
// changes is one reading. Where the kernel's notification fails, the periodic reading remains. Source: inotify(7).
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "base/unique_fd.h"
#include "host/kernel/blocking_thread.h"
#include "runtime/loop.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace spillway::host {

class WatchedFiles {
 public:
  /// Texts of the files, in the order of their paths, or why one cannot be read.
  using Texts = std::vector<Result<std::string>>;
  using Listener = std::function<void(const Texts&)>;

  /// As upstream's: a change that the kernel does not report is seen after this time.
  static constexpr Duration kPeriod = minutes(1);

  /// `known`: the texts that the owner has, one for each path. `listener` is called on the loop after each reading that
  /// found others than the one before.
  WatchedFiles(runtime::Loop& loop, std::vector<std::string> paths, Texts known, Listener listener,
               Duration period = kPeriod);
  ~WatchedFiles();
  WatchedFiles(const WatchedFiles&) = delete;
  WatchedFiles& operator=(const WatchedFiles&) = delete;

 private:
  void watch();
  void on_change();
  void read();
  void on_texts(Texts texts);
  void arm(Duration delay);

  runtime::Loop& loop_;
  std::vector<std::string> paths_;
  Texts known_;
  Listener listener_;
  Duration period_;
  UniqueFd inotify_;
  std::optional<runtime::Loop::TimerId> timer_;
  bool again_ = false;         // something changed while a reading was under way
  bool change_waits_ = false;  // the timer is that of a change
  BlockingThread thread_;      // last: its results use the other members
};

}  // namespace spillway::host
