// A store that no server uses, read key by key; and a new one that is made of keys and values from elsewhere, and has
// its name only when it is complete.
// Thread: any that may wait for the disk. Invariant: the revision of a store that is made lies far ahead of whatever a
// client may have seen. Source: spec "etcd as the store", 11.7; backup.h.
#pragma once

#include "base/error.h"
#include "store/sqlite/directory_lock.h"
#include "store/sqlite/ledger.h"
#include "store/sqlite/snapshot.h"
#include "store/sqlite/upkeep/backup.h"
#include "store/sqlite/upkeep/new_file.h"
#include "store/store.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace spillway::store::sqlite {

class StoreReader {
 public:
  /// kNotFound: there is no store. kConflict: a server uses it. Otherwise as open_to_examine().
  static Result<std::unique_ptr<StoreReader>> open(const std::string& store);

  /// Reads up to `limit` keys behind `start_after`, in their order.
  Result<RangeResult> read(const std::string& start_after, std::size_t limit);

 private:
  explicit StoreReader(DirectoryLock lock, Connection connection)
      : lock_(std::move(lock)), connection_(std::move(connection)) {}

  DirectoryLock lock_;
  Connection connection_;  // outlives the snapshot
  Snapshot snapshot_;
};

class StoreMaker {
 public:
  /// `keep_as`: the name for the store that is there; empty: it must not be there (kAlreadyExists). kConflict: a server
  /// uses it.
  static Result<std::unique_ptr<StoreMaker>> make(const std::string& store, const std::string& keep_as);

  /// Adds keys, which must not exist yet.
  Outcome add(const std::vector<Entry>& entries);
  /// Reads the entries added so far, as StoreReader::read().
  Result<RangeResult> read(const std::string& start_after, std::size_t limit);
  /// The store has its name. Its first write gets the revision after the one that is answered, which lies beyond
  /// `seen` and whatever the replaced store has given out. Nothing may be added afterwards.
  Result<Revision> finish(Revision seen);

 private:
  StoreMaker(std::string store, std::string keep_as, DirectoryLock lock, NewFile file)
      : store_(std::move(store)), keep_as_(std::move(keep_as)), lock_(std::move(lock)), file_(std::move(file)) {}

  std::string store_;
  std::string keep_as_;
  DirectoryLock lock_;
  NewFile file_;
  std::unique_ptr<Ledger> ledger_;
};

}  // namespace spillway::store::sqlite
