// Files below the node's folder of logs, as clients name them. A link is followed if it leads to another place below
// the folder; nothing outside of it is opened, and nothing but regular files and folders, whatever is renamed
// meanwhile. Thread: any; calls wait for the disk. Bounds: kListedFilesMax entries of a list. Source: Kubernetes docs,
// "System Logs"; openat2(2).
#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace spillway::host {

inline constexpr std::size_t kListedFilesMax = 10'000;

struct NodeLogFile {
  UniqueFd opened;
  bool is_folder = false;
  std::uint64_t size = 0;  // a file's, when it was opened
};

/// Opens a path below `folder`; empty: the folder itself. kNotFound: there is no such file or folder there; the text is
/// "stat FOLDER/PATH: REASON".
Result<NodeLogFile> open_node_log(const std::string& folder, const std::string& below);

/// Reads at most `bytes_max` bytes at `at`; fewer at the end of the file.
Result<std::string> read_node_log(const NodeLogFile& file, std::uint64_t at, std::size_t bytes_max);

/// Lists a folder as a page of links in the order of names. `prefix`: the start of each link, with a slash at its end,
/// or empty.
Result<std::string> list_node_logs(const NodeLogFile& folder, const std::string& prefix);

}  // namespace spillway::host
