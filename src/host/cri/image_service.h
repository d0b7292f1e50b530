// The images of a container runtime, managed over its socket (gRPC, CRI v1).
// Thread: any but the loop: calls wait, each at most kCallMax, a pull at most kPullMax; one at a time. Errors:
// kNotFound: there is no such image; kServiceUnavailable: the runtime cannot be reached; kTimeout; else kInternalError.
// Source: Kubernetes docs, "Container Runtime Interface (CRI)".
#pragma once

#include "base/error.h"
#include "base/time.h"

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace spillway::host {

struct RuntimeImage {
  std::string id;                    // "sha256:…"
  std::vector<std::string> tags;     // names with a tag, sorted
  std::vector<std::string> digests;  // names with a digest, sorted
  std::uint64_t size_bytes = 0;
  bool pinned = false;

  friend bool operator==(const RuntimeImage&, const RuntimeImage&) = default;
};

class ImageService {
 public:
  static constexpr Duration kCallMax = minutes(2);
  static constexpr Duration kPullMax = minutes(30);

  /// `socket`: its path. Connects at the first call.
  explicit ImageService(const std::string& socket);
  ~ImageService();
  ImageService(const ImageService&) = delete;
  ImageService& operator=(const ImageService&) = delete;

  /// The images, sorted by their first tag, then by id.
  Result<std::vector<RuntimeImage>> list();
  Result<bool> has(const std::string& name);
  /// Pulls an image; returns its id.
  Result<std::string> pull(const std::string& name);
  Outcome remove(const std::string& id);
  /// The image of the runtime's sandboxes; empty: the runtime does not report it.
  Result<std::string> sandbox_image();
  /// The images of containers, running or ended, as the runtime writes them: ids, names, digests.
  Result<std::set<std::string>> in_use();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The images that no container uses. Pinned images, and images with a name in `kept`, are left out.
std::vector<RuntimeImage> unused_images(const std::vector<RuntimeImage>& images, const std::set<std::string>& in_use,
                                        const std::set<std::string>& kept);

}  // namespace spillway::host
