// Commands to the machine to make volumes, and the mounts that containers get of them. Thread: any (values). Source:
// spec "Pod lifecycle", 6.10, 7.
#pragma once

#include "base/bytes.h"
#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace spillway::agent {

/// A directory that is empty at first and is deleted with the pod.
struct EmptyDirectory {
  bool in_memory = false;
  std::optional<Bytes> size;  // size of a volume in memory; absent: half of the machine's memory

  friend bool operator==(const EmptyDirectory&, const EmptyDirectory&) = default;
};

/// A file or directory of the machine; never removed, its owner never changed.
struct HostPath {
  std::string path;
  std::string type;  // "", Directory, DirectoryOrCreate, File, FileOrCreate, Socket, CharDevice, BlockDevice

  friend bool operator==(const HostPath&, const HostPath&) = default;
};

/// A directory of the machine, which must exist; never removed.
struct LocalDirectory {
  std::string path;

  friend bool operator==(const LocalDirectory&, const LocalDirectory&) = default;
};

struct VolumeFile {
  std::string content;
  std::uint32_t mode = 0644;
  std::optional<std::int64_t> owner;  // a user id of the pod; absent: its root

  friend bool operator==(const VolumeFile&, const VolumeFile&) = default;
};

/// Files by their paths below the volume, changed all at once.
struct VolumeFiles {
  std::map<std::string, VolumeFile> files;
  bool in_memory = true;

  friend bool operator==(const VolumeFiles&, const VolumeFiles&) = default;
};

struct VolumeSetup {
  std::string name;
  std::string plugin;  // "empty-dir", "configmap", …: part of the directory's path
  std::variant<EmptyDirectory, HostPath, VolumeFiles, LocalDirectory> content;
  std::optional<std::uint32_t> fs_group;  // a group id of the pod

  friend bool operator==(const VolumeSetup&, const VolumeSetup&) = default;
};

/// Makes volumes of a pod that was created, or brings their files up to date; existing ones that match are left alone.
/// Answered by VolumesSetUp with the same id.
struct SetUpVolumes {
  std::string uid;
  std::uint64_t id = 0;
  std::vector<VolumeSetup> volumes;
};

struct VolumeFailure {
  std::string volume;
  std::string message;

  friend bool operator==(const VolumeFailure&, const VolumeFailure&) = default;
};

/// Volumes that are not named could be made.
struct VolumesSetUp {
  std::string uid;
  std::uint64_t id = 0;
  std::vector<VolumeFailure> failures;
};

/// No environment file is longer. Source: KEP-3721.
inline constexpr std::size_t kVolumeFileMax = 64 * 1024;

/// Reads a file of an emptyDir volume of the pod; no link leads out of the volume. Answered by VolumeFileRead with the
/// same id.
struct ReadVolumeFile {
  std::string uid;
  std::uint64_t id = 0;
  std::string volume;
  std::string path;  // below the volume
};

/// kNotFound: the file does not exist. kRequestEntityTooLarge: it has more than kVolumeFileMax bytes.
struct VolumeFileRead {
  std::string uid;
  std::uint64_t id = 0;
  Result<std::string> text;
};

enum class Propagation { kNone, kHostToContainer, kBidirectional };

/// The mount of a volume of the pod, or of a part of it, in a container.
struct VolumeBinding {
  std::string volume;
  std::string sub_path;  // below the volume; made if it is not there; empty: the whole volume
  std::string container_path;
  bool read_only = false;
  bool recursively = false;  // read-only with everything that is mounted below it
  Propagation propagation = Propagation::kNone;

  friend bool operator==(const VolumeBinding&, const VolumeBinding&) = default;
};

/// A file that the agent writes for one container, at its own path there.
struct ManagedFile {
  std::string container_path;  // "/etc/hosts"
  std::string content;
  std::string machine_file = {};  // the content is read when the container starts; empty: none
  std::string more = {};          // follows then
  bool is_message = false;        // termination message: written by the container, read when it has ended

  friend bool operator==(const ManagedFile&, const ManagedFile&) = default;
};

}  // namespace spillway::agent
