// What a controller has asked for and not seen yet. While something is outstanding its cache is known to be behind, and
// acting on it again would create or delete twice.
// Thread: loop. Bounds: outstanding work expires after five minutes, so that a lost event stops nobody for ever.
// Source: the idea of client-go's controller expectations.
#pragma once

#include "base/time.h"

#include <cstdint>
#include <set>
#include <string>

namespace spillway::controllers {

class Expectations {
 public:
  void expect_creation(Instant now) {
    ++creations_;
    since_ = now;
  }

  void expect_deletion(const std::string& uid, Instant now) {
    deletions_.insert(uid);
    since_ = now;
  }

  /// Seen, or known not to have happened.
  void creation_settled() {
    if (creations_ > 0) --creations_;
  }

  void deletion_settled(const std::string& uid) { deletions_.erase(uid); }

  bool fulfilled(Instant now) const { return (creations_ == 0 && deletions_.empty()) || now - since_ > minutes(5); }

  /// Starts over: before new work once the old has expired.
  void reset() {
    creations_ = 0;
    deletions_.clear();
  }

 private:
  std::int64_t creations_ = 0;
  std::set<std::string> deletions_;
  Instant since_{};
};

}  // namespace spillway::controllers
