// The content of an archive of images as a plan: which blobs to store, children first, and which names images get.
// Reads OCI archives (index.json), of `docker save`, `ctr images export`, `podman save --format oci-archive`, `skopeo`,
// and older archives of `docker save` and `podman save` (manifest.json). Thread: any (pure). Source: OCI Image Layout
// Specification; OCI Image Format Specification, "Image Index", "Image Manifest"; Docker Image Specification v1.2,
// "Combined Image JSON + Filesystem Changeset Format".
#pragma once

#include "api/json/json.h"
#include "base/error.h"
#include "host/containerd/content_store.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::host {

/// Sizes of the files in an archive, in bytes, by name.
using ArchiveFiles = std::map<std::string, std::uint64_t>;

/// The text of a file of an archive. Errors name it.
using ReadArchived = std::function<Result<std::string>(const std::string& name)>;

struct PlannedBlob {
  StoredBlob blob;
  std::string file;   // a name in the archive; empty: `bytes`
  std::string bytes;  // content that the import makes itself
};

struct ImportPlan {
  std::vector<PlannedBlob> blobs;                          // each blob once; those that others refer to come first
  std::vector<std::pair<std::string, StoredBlob>> images;  // full names, sorted
};

// images in one archive, with or without a name
inline constexpr std::size_t kImportImagesMax = 1'000;
inline constexpr std::size_t kImportDepthMax = 4;                          // indexes in indexes
inline constexpr std::size_t kImportTextBytesMax = std::size_t{64} << 20;  // JSON that is parsed, repetitions too

/// True for letters, digits and "._-/:@+": a name that means nothing to a terminal or a shell.
bool is_image_name(std::string_view name);

/// "busybox" → "docker.io/library/busybox:latest", as container runtimes complete names.
std::string full_image_name(std::string_view name);

/// `name`: for an archive of one image, in place of its own; empty: the archive's names. kInvalid: it is no archive of
/// images, something is missing in it, or an image has no name.
Result<ImportPlan> plan_import(const ArchiveFiles& files, const ReadArchived& read, std::string_view name);

}  // namespace spillway::host
