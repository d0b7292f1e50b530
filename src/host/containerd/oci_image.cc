#include "host/containerd/oci_image.h"

#include "api/json/json.h"
#include "base/check.h"
#include "base/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace spillway::host {
namespace {

using api::Json;

constexpr std::size_t kTarBlock = 512;
constexpr std::size_t kTarNameMax = 100;
constexpr std::size_t kTagDigits = 12;
constexpr std::string_view kPauseRepository = "spillway.dev/pause";

/// Fields of a header, which ends in NUL bytes up to kTarBlock.
struct HeaderField {
  std::size_t at;
  std::size_t size;
};

constexpr HeaderField kNameField{0, kTarNameMax};
constexpr HeaderField kModeField{100, 8};
constexpr HeaderField kOwnerField{108, 8};
constexpr HeaderField kGroupField{116, 8};
constexpr HeaderField kSizeField{124, 12};
constexpr HeaderField kModifiedField{136, 12};
constexpr HeaderField kChecksumField{148, 8};
constexpr HeaderField kTypeField{156, 1};
constexpr HeaderField kMagicField{257, 8};

void put(std::string& header, HeaderField field, std::string_view text) {
  SPILLWAY_CHECK(text.size() <= field.size);
  std::ranges::copy(text, header.begin() + static_cast<std::ptrdiff_t>(field.at));
}

void put_octal(std::string& header, HeaderField field, std::size_t value) {
  put(header, field, fmt::format("{:0{}o}", value, field.size - 1));
}

std::string header_of(std::string_view name, std::size_t size) {
  std::string header(kTarBlock, '\0');
  put(header, kNameField, name);
  put_octal(header, kModeField, 0755);
  put_octal(header, kOwnerField, 0);
  put_octal(header, kGroupField, 0);
  put_octal(header, kSizeField, size);
  put_octal(header, kModifiedField, 0);
  put(header, kTypeField, "0");
  put(header, kMagicField,
      std::string_view("ustar\0"
                       "00",
                       kMagicField.size));
  put(header, kChecksumField, std::string(kChecksumField.size, ' '));
  const std::size_t sum = std::accumulate(header.begin(), header.end(), std::size_t{0}, [](std::size_t so_far, char c) {
    return so_far + static_cast<unsigned char>(c);
  });
  put(header, kChecksumField, fmt::format("{:06o}{}", sum, std::string_view("\0 ", 2)));
  return header;
}

OciBlob blob_of(std::string_view media_type, std::string bytes) {
  std::string digest = digest_of(bytes);
  return {std::string(media_type), std::move(digest), std::move(bytes)};
}

Json descriptor_of(const OciBlob& blob) {
  return Json::object({{"mediaType", blob.media_type},
                       {"digest", blob.digest},
                       {"size", static_cast<std::int64_t>(blob.bytes.size())}});
}

}  // namespace

std::string digest_of(std::string_view bytes) {
  std::string text = "sha256:";
  for (const std::uint8_t byte : sha256(bytes)) text += fmt::format("{:02x}", byte);
  return text;
}

std::string_view own_architecture() {
#if defined(__aarch64__)
  return "arm64";
#else
  return "amd64";
#endif
}

std::string tar_of_program(std::string_view name, std::string_view program) {
  SPILLWAY_CHECK(!name.empty() && name.size() <= kTarNameMax);
  std::string archive = header_of(name, program.size());
  archive += program;
  archive.resize((archive.size() + kTarBlock - 1) / kTarBlock * kTarBlock, '\0');
  archive.append(2 * kTarBlock, '\0');  // the end of an archive
  return archive;
}

OciImage make_pause_image(std::string_view program) {
  OciImage image;
  image.layer = blob_of(kOciLayerType, tar_of_program("pause", program));
  const Json config =
      Json::object({{"architecture", std::string(own_architecture())},
                    {"os", "linux"},
                    {"config", Json::object({{"Entrypoint", Json::array({"/pause"})}, {"WorkingDir", "/"}})},
                    {"rootfs", Json::object({{"type", "layers"}, {"diff_ids", Json::array({image.layer.digest})}})}});
  image.config = blob_of(kOciConfigType, api::to_text(config));
  const Json manifest = Json::object({{"schemaVersion", 2},
                                      {"mediaType", std::string(kOciManifestType)},
                                      {"config", descriptor_of(image.config)},
                                      {"layers", Json::array({descriptor_of(image.layer)})}});
  image.manifest = blob_of(kOciManifestType, api::to_text(manifest));
  const std::string_view digits = std::string_view(image.manifest.digest).substr(image.manifest.digest.find(':') + 1);
  image.name = fmt::format("{}:{}", kPauseRepository, digits.substr(0, kTagDigits));
  return image;
}

std::vector<std::pair<std::string, std::string>> references_of(const OciImage& image) {
  return {{"containerd.io/gc.ref.content.config", image.config.digest},
          {"containerd.io/gc.ref.content.l.0", image.layer.digest}};
}

}  // namespace spillway::host
