#include "host/containerd/import_plan.h"

#include "host/containerd/oci_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>

namespace spillway::host {
namespace {

using api::Json;

constexpr std::string_view kNotAnArchive = "expected an archive of images (index.json or manifest.json in a tar)";
constexpr std::string_view kDockerManifestType = "application/vnd.docker.distribution.manifest.v2+json";
constexpr std::string_view kDockerIndexType = "application/vnd.docker.distribution.manifest.list.v2+json";

bool is_index(std::string_view media_type) {
  return media_type == kOciIndexType || media_type == kDockerIndexType;
}

bool is_manifest(std::string_view media_type) {
  return media_type == kOciManifestType || media_type == kDockerManifestType;
}

const Json::Array& elements_of(const Json& document, std::string_view member) {
  static const Json::Array kNothing;
  const Json* found = document.find(member);
  const Json::Array* list = found == nullptr ? nullptr : found->if_array();
  return list == nullptr ? kNothing : *list;
}

/// Path of a blob in the archive: "blobs/sha256/…" for "sha256:…"; empty: not a digest.
std::string file_of(std::string_view digest) {
  constexpr std::string_view kAlgorithm = "sha256:";
  constexpr std::size_t kDigits = 64;
  if (!digest.starts_with(kAlgorithm) || digest.size() != kAlgorithm.size() + kDigits) return {};
  const std::string_view hex = digest.substr(kAlgorithm.size());
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return std::ranges::all_of(hex, is_digit) ? fmt::format("blobs/sha256/{}", hex) : std::string();
}

class Planner {
 public:
  Planner(const ArchiveFiles& files, const ReadArchived& read) : files_(files), read_(read) {}

  Result<ImportPlan> plan(std::string_view name) {
    if (files_.contains("index.json")) {
      SPILLWAY_TRY_VOID(plan_layout(name));
    } else if (files_.contains("manifest.json")) {
      SPILLWAY_TRY_VOID(plan_docker(name));
    } else {
      return invalid({}, "{}", kNotAnArchive);
    }
    if (plan_.images.empty()) return invalid({}, "no image in it has a name; give one with --name");
    std::ranges::sort(plan_.images, {}, [](const auto& image) { return image.first; });
    return std::move(plan_);
  }

 private:
  /// The text of a file. Several images may name one file: its length counts each time.
  Result<std::string> text_of(const std::string& file) {
    SPILLWAY_TRY(text, read_(file));
    text_bytes_ += text.size();
    if (text_bytes_ > kImportTextBytesMax)
      return invalid(file, "the archive's documents have more than {}Mi", kImportTextBytesMax >> 20U);
    return text;
  }

  Result<Json> document(const std::string& file) {
    SPILLWAY_TRY(text, text_of(file));
    auto parsed = api::parse_json(text);
    if (!parsed) return invalid(file, "{}", parsed.error().message);
    return parsed;
  }

  Outcome add_image(std::string_view name, const StoredBlob& target) {
    if (plan_.images.size() == kImportImagesMax) return invalid({}, "it has more than {} images", kImportImagesMax);
    if (!is_image_name(name)) return invalid({}, "\"{}\" is no name of an image; give one with --name", name);
    plan_.images.emplace_back(full_image_name(name), target);
    return {};
  }

  /// The blob of a descriptor that is in the archive; nullopt: it is not, as those of other platforms may be.
  Result<std::optional<StoredBlob>> find_blob(const Json& descriptor) const {
    const std::string digest(descriptor.string_at({"digest"}));
    const std::string file = file_of(digest);
    if (file.empty()) return invalid("index.json", "expected sha256:… as digest, got \"{}\"", digest);
    const auto found = files_.find(file);
    if (found == files_.end()) return std::optional<StoredBlob>();
    return std::optional(StoredBlob{std::string(descriptor.string_at({"mediaType"})), digest, found->second, {}});
  }

  void add_blob(PlannedBlob blob) {
    if (known_.insert(blob.blob.digest).second) plan_.blobs.push_back(std::move(blob));
  }

  Result<StoredBlob> need_blob(const Json& descriptor) {
    SPILLWAY_TRY(blob, find_blob(descriptor));
    if (!blob) return invalid(file_of(descriptor.string_at({"digest"})), "it is missing from the archive");
    return *std::move(blob);
  }

  Outcome add_manifest(StoredBlob& blob) {
    SPILLWAY_TRY(manifest, document(file_of(blob.digest)));
    const Json* config = manifest.find("config");
    if (config == nullptr) return invalid(file_of(blob.digest), "expected a manifest with a config");
    SPILLWAY_TRY(settings, need_blob(*config));
    add_blob({settings, file_of(settings.digest), {}});
    blob.labels.emplace_back("containerd.io/gc.ref.content.config", settings.digest);
    std::size_t number = 0;
    for (const Json& each : elements_of(manifest, "layers")) {
      SPILLWAY_TRY(layer, need_blob(each));
      blob.labels.emplace_back(fmt::format("containerd.io/gc.ref.content.l.{}", number++), layer.digest);
      add_blob({layer, file_of(layer.digest), {}});
    }
    return {};
  }

  Outcome add_index(StoredBlob& blob, std::size_t depth) {
    SPILLWAY_TRY(index, document(file_of(blob.digest)));
    std::size_t number = 0;
    for (const Json& each : elements_of(index, "manifests")) {
      SPILLWAY_TRY(child, find_blob(each));
      if (!child) continue;
      blob.labels.emplace_back(fmt::format("containerd.io/gc.ref.content.m.{}", number++), child->digest);
      SPILLWAY_TRY_VOID(add_tree(*child, depth + 1));
    }
    if (number == 0) return invalid(file_of(blob.digest), "none of its manifests is in the archive");
    return {};
  }

  Outcome add_tree(StoredBlob& blob, std::size_t depth) {
    if (depth > kImportDepthMax) return invalid("index.json", "indexes in more than {} indexes", kImportDepthMax);
    if (!begun_.insert(blob.digest).second) return {};
    if (is_manifest(blob.media_type)) {
      SPILLWAY_TRY_VOID(add_manifest(blob));
    } else if (is_index(blob.media_type)) {
      SPILLWAY_TRY_VOID(add_index(blob, depth));
    } else {
      return invalid("index.json", "\"{}\" is no type of an image's manifest", blob.media_type);
    }
    add_blob({blob, file_of(blob.digest), {}});
    return {};
  }

  static std::string name_in(const Json& descriptor) {
    std::string name(descriptor.string_at({"annotations", "io.containerd.image.name"}));
    if (name.empty()) name = descriptor.string_at({"annotations", "org.opencontainers.image.ref.name"});
    return name;
  }

  Outcome plan_layout(std::string_view name) {
    SPILLWAY_TRY(index, document("index.json"));
    const Json::Array& manifests = elements_of(index, "manifests");
    if (manifests.size() > kImportImagesMax) return invalid({}, "it has more than {} images", kImportImagesMax);
    if (!name.empty() && manifests.size() != 1)
      return invalid("--name", "the archive has {} images, expected one", manifests.size());
    for (const Json& each : manifests) {
      SPILLWAY_TRY(root, need_blob(each));
      SPILLWAY_TRY_VOID(add_tree(root, 0));
      const std::string own = name.empty() ? name_in(each) : std::string(name);
      // A tag alone names no image.
      if (own.find_first_of("/:") == std::string::npos && name.empty()) continue;
      SPILLWAY_TRY_VOID(add_image(own, root));
    }
    return {};
  }

  /// Docker's archives hold layers that are not compressed: their digests are the configuration's diff_ids.
  Outcome plan_docker(std::string_view name) {
    SPILLWAY_TRY(list, document("manifest.json"));
    const Json::Array* images = list.if_array();
    if (images == nullptr) return invalid("manifest.json", "expected a list of images");
    if (images->size() > kImportImagesMax) return invalid({}, "it has more than {} images", kImportImagesMax);
    if (!name.empty() && images->size() != 1)
      return invalid("--name", "the archive has {} images, expected one", images->size());
    for (const Json& each : *images) SPILLWAY_TRY_VOID(plan_docker_image(each, name));
    return {};
  }

  Outcome plan_docker_image(const Json& image, std::string_view name) {
    const std::string config_file(image.string_at({"Config"}));
    SPILLWAY_TRY(text, text_of(config_file));
    auto config = api::parse_json(text);
    if (!config) return invalid(config_file, "{}", config.error().message);
    const Json* rootfs = config->find("rootfs");
    const Json::Array& digests = rootfs == nullptr ? elements_of(*config, "") : elements_of(*rootfs, "diff_ids");
    const Json::Array& layers = elements_of(image, "Layers");
    if (layers.size() != digests.size())
      return invalid(config_file, "it names {} layers, manifest.json {}", digests.size(), layers.size());
    const StoredBlob settings{std::string(kOciConfigType), digest_of(text), text.size(), {}};
    add_blob({settings, config_file, {}});
    StoredBlob target{std::string(kOciManifestType), {}, 0, {{"containerd.io/gc.ref.content.config", settings.digest}}};
    Json parts = Json::array();
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const std::string* file = layers[i].if_string();
      const std::string* digest = digests[i].if_string();
      const auto found = file == nullptr ? files_.end() : files_.find(*file);
      if (found == files_.end() || digest == nullptr || file_of(*digest).empty())
        return invalid("manifest.json", "layer {} is missing in the archive", i);
      const StoredBlob layer{std::string(kOciLayerType), *digest, found->second, {}};
      add_blob({layer, *file, {}});
      target.labels.emplace_back(fmt::format("containerd.io/gc.ref.content.l.{}", i), layer.digest);
      parts.if_array()->push_back(descriptor(layer));
    }
    std::string manifest = api::to_text(Json::object({{"schemaVersion", 2},
                                                      {"mediaType", std::string(kOciManifestType)},
                                                      {"config", descriptor(settings)},
                                                      {"layers", std::move(parts)}}));
    target.digest = digest_of(manifest);
    target.size_bytes = manifest.size();
    add_blob({target, {}, std::move(manifest)});
    if (!name.empty()) return add_image(name, target);
    for (const Json& tag : elements_of(image, "RepoTags"))
      if (tag.if_string() != nullptr) SPILLWAY_TRY_VOID(add_image(*tag.if_string(), target));
    return {};
  }

  static Json descriptor(const StoredBlob& blob) {
    return Json::object({{"mediaType", blob.media_type},
                         {"digest", blob.digest},
                         {"size", static_cast<std::int64_t>(blob.size_bytes)}});
  }

  const ArchiveFiles& files_;
  const ReadArchived& read_;
  ImportPlan plan_;
  std::set<std::string> known_;
  std::set<std::string> begun_;  // digests of manifests and indexes: each is walked once
  std::size_t text_bytes_ = 0;
};

}  // namespace

bool is_image_name(std::string_view name) {
  constexpr std::size_t kNameBytesMax = 1024;
  constexpr std::string_view kSigns = "._-/:@+";
  return !name.empty() && name.size() <= kNameBytesMax && std::ranges::all_of(name, [kSigns](char c) {
    const bool is_alphanumeric = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return is_alphanumeric || kSigns.find(c) != std::string_view::npos;
  });
}

std::string full_image_name(std::string_view name) {
  const std::size_t slash = name.find('/');
  const std::string_view first = name.substr(0, slash);
  const bool has_registry =
      slash != std::string_view::npos && (first.find_first_of(".:") != std::string_view::npos || first == "localhost");
  std::string full(name);
  if (!has_registry) full = (slash == std::string_view::npos ? "docker.io/library/" : "docker.io/") + full;
  const std::string last = full.substr(full.rfind('/') + 1);
  if (last.find_first_of(":@") == std::string::npos) full += ":latest";
  return full;
}

Result<ImportPlan> plan_import(const ArchiveFiles& files, const ReadArchived& read, std::string_view name) {
  return Planner(files, read).plan(name);
}

}  // namespace spillway::host
