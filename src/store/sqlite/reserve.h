// Space put aside beside the database, and given up when the disk is full: requests that free space need some first.
// Thread: the writer's. Bounds: an eighth of the free space when it is made, kReserveMax at most.
#pragma once

#include "base/bytes.h"
#include "base/error.h"

#include <string>

namespace spillway::store::sqlite {

inline constexpr Bytes kReserveMax = mebibytes(32);

class Reserve {
 public:
  /// `path`: a separate file on the database's disk. Nothing is allocated yet.
  explicit Reserve(std::string path) : path_(std::move(path)) {}

  /// Puts the space aside, unless it is already: as much as the first time, or at least half of that. False: the disk
  /// has not so much left besides `free`.
  bool hold(Bytes free);
  /// Frees the space, so that the database can grow into it.
  void release();

  /// The bytes that the last hold() put aside.
  Bytes size() const { return kept_; }

 private:
  std::string path_;
  Bytes size_{};  // wanted size, chosen by the first hold()
  Bytes kept_{};
  bool held_ = false;
};

/// Bytes that an ordinary user may still write to the file system of `path`; very many if unknown.
Bytes free_space(const std::string& path);

}  // namespace spillway::store::sqlite
