// An OCI image made from bytes: a layer (tar), a configuration and a manifest, each named by its SHA-256.
// Thread: any (pure). Source: OCI Image Format Specification, "Image Manifest", "Image Configuration", "Layer";
// POSIX, "ustar Interchange Format".
#pragma once

#include "base/time.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::host {

inline constexpr std::string_view kOciManifestType = "application/vnd.oci.image.manifest.v1+json";
inline constexpr std::string_view kOciIndexType = "application/vnd.oci.image.index.v1+json";
inline constexpr std::string_view kOciConfigType = "application/vnd.oci.image.config.v1+json";
inline constexpr std::string_view kOciLayerType = "application/vnd.oci.image.layer.v1.tar";

/// "sha256:" and 64 hexadecimal digits.
std::string digest_of(std::string_view bytes);

/// "amd64", "arm64": the processor that this program was built for, in the words of OCI images.
std::string_view own_architecture();

/// A tar archive of one executable file with mode 0755, of root, at the beginning of time. `name`: at most 100 bytes.
std::string tar_of_program(std::string_view name, std::string_view program);

struct OciBlob {
  std::string media_type;
  std::string digest;
  std::string bytes;
};

struct OciImage {
  std::string name;  // with a tag
  OciBlob layer;
  OciBlob config;
  OciBlob manifest;
};

/// The image of the sandboxes: `program` at /pause. Its tag follows from its content, so that a sandbox keeps the image
/// that it was made from when a later version of Spillway has another one.
OciImage make_pause_image(std::string_view program);

/// Labels by which the content store keeps the blobs that a manifest refers to.
std::vector<std::pair<std::string, std::string>> references_of(const OciImage& image);

}  // namespace spillway::host
