#include "host/companion/pod_files.h"

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kStatBlockBytes = 512;

struct Listing {
  std::optional<api::FsStats> files;  // usage of files directly in the directory; absent: there are none
  std::vector<std::string> folders;
};

void add_file(std::optional<api::FsStats>& sum, const std::string& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0 || S_ISDIR(status.st_mode)) return;  // removed meanwhile
  if (!sum) sum.emplace();
  sum->used_bytes = sum->used_bytes.value_or(0) + static_cast<std::uint64_t>(status.st_blocks) * kStatBlockBytes;
  sum->inodes_used = sum->inodes_used.value_or(0) + 1;
}

/// The entries of a directory; nullopt: it cannot be read, or has too many.
std::optional<Listing> list(const std::string& path) {
  Listing listing;
  std::size_t entries = 0;
  std::error_code error;
  for (fs::directory_iterator each(path, error), end; !error && each != end; each.increment(error)) {
    if (++entries > kEntriesMax) return std::nullopt;
    std::error_code unknown;
    if (each->is_directory(unknown) && !each->is_symlink(unknown)) {
      listing.folders.push_back(each->path().filename().string());
    } else {
      add_file(listing.files, each->path().string());
    }
  }
  if (error) return std::nullopt;
  return listing;
}

}  // namespace

agent::PodFiles read_pod_files(const PodFolder& folder) {
  agent::PodFiles found;
  add_file(found.etc_hosts, folder.directory + "/etc-hosts");
  const std::optional<Listing> top = list(folder.logs);
  if (!top) return found;
  found.pod_logs = top->files;
  for (const std::string& container : top->folders) {
    const std::optional<Listing> logs = list(folder.logs + "/" + container);
    if (logs && logs->files) found.logs.emplace(container, *logs->files);
  }
  return found;
}

}  // namespace spillway::host
