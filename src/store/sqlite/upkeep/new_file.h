// A file that is made under another name, and appears under its own when it is complete and on the disk: until commit()
// it is not visible, and without commit() nothing of it is left. Two makers of one file meet: the second is refused.
// Thread: any that may wait for the disk.
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "base/unique_fd.h"

#include <string>
#include <string_view>

namespace spillway::store::sqlite {

/// The treatment of an existing file of that name by commit().
enum class Existing { kKept, kReplaced };

class NewFile {
 public:
  /// Makes the empty file "PATH.SUFFIX" with mode 0600; one that an earlier maker has left is taken over. Objects hold
  /// secrets: only the owner may read it. kConflict: another process is making it. kForbidden: it is another user's.
  static Result<NewFile> make(const std::string& path, std::string_view suffix);
  ~NewFile();
  NewFile(NewFile&& other) noexcept = default;
  NewFile& operator=(NewFile&& other) = delete;

  /// The path of the file that is being written.
  const std::string& path() const { return partial_; }

  Bytes size() const;

  /// kAlreadyExists: the name is taken, and `existing` is kKept. Afterwards the file is on the disk.
  Outcome commit(Existing existing);

 private:
  NewFile(std::string path, std::string partial, UniqueFd lock)
      : path_(std::move(path)), partial_(std::move(partial)), lock_(std::move(lock)) {}

  std::string path_;
  std::string partial_;
  UniqueFd lock_;  // keeps other processes from writing the file
};

/// Flushes the directory that holds `path`: its entries survive a loss of power.
Outcome sync_directory_of(const std::string& path);

/// Removes the journal of a database before another file takes its place: it belongs to the old file, and would be
/// taken for one of the new file.
Outcome drop_journal(const std::string& database);

}  // namespace spillway::store::sqlite
