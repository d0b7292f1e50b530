// Objects in the files of a folder: .yaml, .yml and .json, in the order of their names, not in folders below. A
// document that is a List stands for its items. Folder and files belong to root, to the user of this process or to the
// user who called sudo, and not every user can write them; a link leads to such a file. Thread: any one thread (reading
// waits for the disk). Bounds: 1,000 files, 4 MiB and 1,000 documents in a file, 10,000 objects in all.
#pragma once

#include "base/error.h"
#include "controllers/manifests/manifest.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace spillway::apps {

/// kInvalid: `folder` is not a folder that this process can read, or users can write there who have no other right to
/// the cluster. An empty name is no error: no folder is wanted.
Outcome check_manifest_folder(const std::string& folder);

/// The objects of a text. kInvalid: the first mistake, with file and line, or file and document.
Result<std::vector<controllers::Manifest>> parse_manifests(const std::string& file, const std::string& text);

class ManifestFolder {
 public:
  explicit ManifestFolder(std::string folder) : folder_(std::move(folder)) {}

  struct Change {
    std::vector<controllers::Manifest> manifests;  // all files together
    std::vector<Error> problems;                   // mistakes in the files that were read now
    bool any = false;                              // false: nothing has changed since the last call, the rest is empty
  };

  /// Reads the files that have changed since the last call. Of one with a mistake the objects of its last sound version
  /// count; of one that has gone, none.
  Change read();

 private:
  /// Differs after every write and change of owner or mode: inode, size, time of the last change (ctime) in ns.
  using Version = std::tuple<std::uint64_t, std::uint64_t, std::int64_t>;

  struct File {
    Version version;
    std::vector<controllers::Manifest> manifests;
  };

  Result<std::map<std::string, Version>> versions() const;

  std::string folder_;
  std::string failure_;  // the text of the last problem of the folder itself
  std::map<std::string, File> files_;
};

}  // namespace spillway::apps
