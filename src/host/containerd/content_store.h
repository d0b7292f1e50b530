// Stores the content of images in a containerd and gives images their names, over its socket (gRPC).
// Thread: any but the loop: calls wait, each at most kCallMax; one at a time. Errors: kServiceUnavailable: it does not
// answer; kInvalid: it refuses the content. Source: containerd API, services content, images and leases.
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "host/containerd/oci_image.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway::host {

/// The namespace of a containerd in which its CRI plug-in has its images.
inline constexpr std::string_view kCriNamespace = "k8s.io";

struct StoredBlob {
  std::string media_type;
  std::string digest;
  std::uint64_t size_bytes = 0;
  // labels with references that containerd's garbage collector follows
  std::vector<std::pair<std::string, std::string>> labels;
};

class ContentStore {
 public:
  static constexpr Duration kCallMax = minutes(10);  // a blob of some gigabytes on a slow disk
  static constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

  /// Reads `bytes` of a blob at `offset`; empty at its end.
  using Read = std::function<Result<std::string>(std::uint64_t offset, std::size_t bytes_max)>;

  /// `socket`: its path. Connects at the first call.
  explicit ContentStore(const std::string& socket);
  ~ContentStore();
  ContentStore(const ContentStore&) = delete;
  ContentStore& operator=(const ContentStore&) = delete;

  /// Until the lease is released, written content stays although no image refers to it yet. `end`: the time at which
  /// the lease expires by itself, as RFC 3339.
  Outcome take_lease(const std::string& id, const std::string& end);
  void release_lease();

  /// Writes a blob, unless it is stored already.
  Outcome write(const StoredBlob& blob, const Read& read);
  /// Lets the image name refer to `target`.
  Outcome name_image(const std::string& name, const StoredBlob& target);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Writes an image that was made here, whole.
Outcome store_image(ContentStore& store, const OciImage& image);

}  // namespace spillway::host
