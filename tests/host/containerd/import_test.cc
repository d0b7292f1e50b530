// Archives of images: the places of their files, and the blobs that are stored.
#include "base/file.h"
#include "host/containerd/import_plan.h"
#include "host/containerd/oci_image.h"
#include "host/containerd/tar_archive.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

namespace spillway::host {
namespace {

using api::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

std::string blob_file(const std::string& digest) {
  return "blobs/sha256/" + digest.substr(digest.find(':') + 1);
}

Json descriptor(const std::string& type, const std::string& bytes) {
  return Json::object(
      {{"mediaType", type}, {"digest", digest_of(bytes)}, {"size", static_cast<std::int64_t>(bytes.size())}});
}

/// Files of an archive by name.
using Archive = std::map<std::string, std::string>;

Result<ImportPlan> plan_of(const Archive& archive, std::string_view name = {}) {
  ArchiveFiles files;
  for (const auto& [file, bytes] : archive) files[file] = bytes.size();
  return plan_import(
      files,
      [&archive](const std::string& file) -> Result<std::string> {
        const auto found = archive.find(file);
        if (found == archive.end()) return Error{ErrorCode::kNotFound, "it is missing from the archive", file};
        return found->second;
      },
      name);
}

/// An OCI archive with one image of one layer.
Archive oci_archive(const std::string& name_annotation, const std::string& name) {
  const std::string layer = "the layer";
  const std::string config = R"({"rootfs":{"type":"layers"}})";
  const std::string manifest =
      api::to_text(Json::object({{"schemaVersion", 2},
                                 {"config", descriptor(std::string(kOciConfigType), config)},
                                 {"layers", Json::array({descriptor(std::string(kOciLayerType), layer)})}}));
  Json entry = descriptor(std::string(kOciManifestType), manifest);
  entry["annotations"] = Json::object({{name_annotation, name}});
  return {{"oci-layout", "{}"},
          {"index.json", api::to_text(Json::object({{"manifests", Json::array({entry})}}))},
          {blob_file(digest_of(layer)), layer},
          {blob_file(digest_of(config)), config},
          {blob_file(digest_of(manifest)), manifest}};
}

TEST(ImportPlan, OfAnOciArchiveStoresWhatOthersReferToFirst) {
  const auto plan = plan_of(oci_archive("io.containerd.image.name", "registry.test/app:1"));
  ASSERT_TRUE(plan) << plan.error().text();
  ASSERT_EQ(plan->blobs.size(), 3U);
  EXPECT_EQ(plan->blobs[0].blob.media_type, kOciConfigType);
  EXPECT_EQ(plan->blobs[1].blob.media_type, kOciLayerType);
  const StoredBlob& manifest = plan->blobs[2].blob;
  EXPECT_EQ(manifest.media_type, kOciManifestType);
  EXPECT_THAT(manifest.labels, ElementsAre(Pair("containerd.io/gc.ref.content.config", plan->blobs[0].blob.digest),
                                           Pair("containerd.io/gc.ref.content.l.0", plan->blobs[1].blob.digest)));
  ASSERT_EQ(plan->images.size(), 1U);
  EXPECT_EQ(plan->images[0].first, "registry.test/app:1");
  EXPECT_EQ(plan->images[0].second.digest, manifest.digest);
}

TEST(ImportPlan, OfAnImageForSeveralPlatformsTakesThoseThatAreThere) {
  Archive archive = oci_archive("x", "x");
  const Json own = *(*Json(*api::parse_json(archive.at("index.json"))).find("manifests")->if_array()).begin();
  const Json absent = descriptor(std::string(kOciManifestType), "another platform");
  const std::string index = api::to_text(Json::object({{"manifests", Json::array({own, absent})}}));
  Json entry = descriptor(std::string(kOciIndexType), index);
  entry["annotations"] = Json::object({{"io.containerd.image.name", "app:1"}});
  archive["index.json"] = api::to_text(Json::object({{"manifests", Json::array({entry})}}));
  archive[blob_file(digest_of(index))] = index;
  const auto plan = plan_of(archive);
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan->blobs.size(), 4U);
  EXPECT_THAT(plan->blobs.back().blob.labels,
              ElementsAre(Pair("containerd.io/gc.ref.content.m.0", std::string(own.string_at({"digest"})))));
  EXPECT_EQ(plan->images[0].first, "docker.io/library/app:1");
}

TEST(ImportPlan, OfAnOlderArchiveMakesTheManifest) {
  const std::string layer = "the layer";
  const std::string config = api::to_text(
      Json::object({{"rootfs", Json::object({{"type", "layers"}, {"diff_ids", Json::array({digest_of(layer)})}})}}));
  const Archive archive = {
      {"abc.json", config},
      {"one/layer.tar", layer},
      {"manifest.json",
       R"([{"Config":"abc.json","RepoTags":["busybox:1.36","team/box"],"Layers":["one/layer.tar"]}])"}};
  const auto plan = plan_of(archive);
  ASSERT_TRUE(plan) << plan.error().text();
  ASSERT_EQ(plan->blobs.size(), 3U);
  EXPECT_EQ(plan->blobs[1].file, "one/layer.tar");
  EXPECT_EQ(plan->blobs[1].blob.digest, digest_of(layer));
  EXPECT_EQ(plan->blobs[2].blob.digest, digest_of(plan->blobs[2].bytes));
  ASSERT_EQ(plan->images.size(), 2U);
  EXPECT_EQ(plan->images[0].first, "docker.io/library/busybox:1.36");
  EXPECT_EQ(plan->images[1].first, "docker.io/team/box:latest");
}

TEST(ImportPlan, AGivenNameTakesThePlaceOfTheArchives) {
  const auto plan = plan_of(oci_archive("org.opencontainers.image.ref.name", "1.0"), "app");
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan->images[0].first, "docker.io/library/app:latest");
}

TEST(ImportPlan, RefusesWhatItCannotStore) {
  const Archive good = oci_archive("io.containerd.image.name", "registry.test/app:1");
  const auto error = [](const Archive& archive) {
    const auto plan = plan_of(archive);
    return plan ? std::string() : plan.error().text();
  };
  EXPECT_THAT(error({{"etc/passwd", ""}}), HasSubstr("expected an archive of images"));
  EXPECT_THAT(error(oci_archive("org.opencontainers.image.ref.name", "latest")), HasSubstr("--name"));
  for (const auto& [file, bytes] : good) {
    if (!file.starts_with("blobs/")) continue;
    Archive archive = good;
    archive.erase(file);
    EXPECT_THAT(error(archive), HasSubstr("missing")) << file;
  }
  Archive archive = good;
  archive["index.json"] = R"({"manifests":[{"digest":"sha256:../../etc/shadow"}]})";
  EXPECT_THAT(error(archive), HasSubstr("as digest"));
  archive["index.json"] = "no JSON";
  EXPECT_THAT(error(archive), HasSubstr("index.json"));
}

TEST(ImportPlan, IndexesThatNameEachOtherAreWalkedOnce) {
  // Each index names the next one 2,000 times: walked each time, these are 2,000 to the fourth power.
  Archive archive = oci_archive("io.containerd.image.name", "registry.test/app:1");
  const auto index_of = [](const Json& entry) {
    Json list = Json::array();
    for (int i = 0; i < 2'000; ++i) list.if_array()->push_back(entry);
    return api::to_text(Json::object({{"manifests", std::move(list)}}));
  };
  const Json index = api::parse_json(archive.at("index.json")).value();
  std::string text = index_of(index.find("manifests")->if_array()->front());
  for (int depth = 0; depth < 3; ++depth) {
    const Json entry = descriptor(std::string(kOciIndexType), text);
    archive[blob_file(digest_of(text))] = text;
    text = index_of(entry);
  }
  Json root = descriptor(std::string(kOciIndexType), text);
  root["annotations"] = Json::object({{"io.containerd.image.name", "registry.test/app:1"}});
  archive[blob_file(digest_of(text))] = text;
  archive["index.json"] = api::to_text(Json::object({{"manifests", Json::array({root})}}));
  const auto plan = plan_of(archive);
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan->blobs.size(), 7U);
}

TEST(ImportPlan, AnIndexThatNamesItselfEnds) {
  const std::string digest = "sha256:" + std::string(64, 'a');
  const Json entry = Json::object({{"mediaType", std::string(kOciIndexType)}, {"digest", digest}, {"size", 1}});
  const std::string text = api::to_text(Json::object({{"manifests", Json::array({entry, entry})}}));
  EXPECT_THAT(plan_of({{"index.json", text}, {blob_file(digest), text}}).error().text(), HasSubstr("name"));
}

TEST(ImportPlan, ListsOfImagesAreBounded) {
  Json images = Json::array();
  for (std::size_t i = 0; i <= kImportImagesMax; ++i)
    images.if_array()->push_back(Json::object({{"Config", "c"}, {"Layers", Json::array()}}));
  const std::string config = R"({"rootfs":{"diff_ids":[]},"x":")" + std::string(1 << 20, 'x') + R"("})";
  const auto error = [&] { return plan_of({{"manifest.json", api::to_text(images)}, {"c", config}}).error().text(); };
  EXPECT_THAT(error(), HasSubstr("more than 1000 images"));
  images.if_array()->pop_back();
  EXPECT_THAT(error(), HasSubstr("more than 64Mi"));
}

TEST(ImportPlan, NamesThatATerminalWouldObeyAreRefused) {
  for (const std::string name : {"a:\x1b[2J", "a:1\nb:2", "a:$(id)", "a:1 b"}) {
    const auto plan = plan_of(oci_archive("io.containerd.image.name", name));
    ASSERT_FALSE(plan) << name;
    EXPECT_THAT(plan.error().text(), HasSubstr("is no name of an image"));
  }
}

TEST(ImageNames, AreCompletedAsRuntimesDo) {
  EXPECT_EQ(full_image_name("busybox"), "docker.io/library/busybox:latest");
  EXPECT_EQ(full_image_name("busybox:1"), "docker.io/library/busybox:1");
  EXPECT_EQ(full_image_name("team/app"), "docker.io/team/app:latest");
  EXPECT_EQ(full_image_name("registry.test/app"), "registry.test/app:latest");
  EXPECT_EQ(full_image_name("localhost/app:1"), "localhost/app:1");
  EXPECT_EQ(full_image_name("registry:5000/team/app"), "registry:5000/team/app:latest");
  EXPECT_EQ(full_image_name("app@sha256:00"), "docker.io/library/app@sha256:00");
}

class TarFile : public ::testing::Test {
 protected:
  TarFile() { std::filesystem::create_directories(folder_); }

  ~TarFile() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& bytes) const {
    std::ofstream(folder_ + "/archive.tar", std::ios::binary) << bytes;
    return folder_ + "/archive.tar";
  }

  std::string folder_ = ::testing::TempDir() + "spillway-tar-" + std::to_string(::getpid());
};

TEST_F(TarFile, GivesTheBytesOfItsFiles) {
  const std::string program(1000, 'p');
  const auto archive = TarArchive::open(write(tar_of_program("pause", program)));
  ASSERT_TRUE(archive) << archive.error().text();
  EXPECT_THAT(archive->files(), ElementsAre(Pair("pause", 1000U)));
  EXPECT_EQ(*archive->read("pause", 0, 10'000), program);
  EXPECT_EQ(*archive->read("pause", 990, 5), "ppppp");
  EXPECT_THAT(*archive->read("pause", 1000, 5), IsEmpty());
  EXPECT_FALSE(archive->read("other", 0, 5));
}

TEST_F(TarFile, RefusesWhatIsNone) {
  const auto error = [this](const std::string& bytes) {
    const auto archive = TarArchive::open(write(bytes));
    return archive ? std::string() : archive.error().text();
  };
  EXPECT_THAT(error("#!/bin/sh\necho no archive\n"), HasSubstr("expected a tar archive"));
  EXPECT_THAT(error("\x1f\x8b\x08 compressed"), HasSubstr("gunzip"));
  EXPECT_THAT(error(""), HasSubstr("expected a tar archive"));
  const std::string whole = tar_of_program("pause", std::string(5000, 'p'));
  EXPECT_THAT(error(whole.substr(0, 2048)), HasSubstr("archive.tar"));
  EXPECT_FALSE(TarArchive::open(folder_ + "/absent.tar"));
}

TEST(OciImage, IsTheSameForTheSameProgram) {
  const OciImage image = make_pause_image("program");
  EXPECT_EQ(image.manifest.digest, make_pause_image("program").manifest.digest);
  EXPECT_NE(image.name, make_pause_image("another").name);
  EXPECT_THAT(image.name, ::testing::MatchesRegex("spillway.dev/pause:[0-9a-f]{12}"));
  const auto manifest = api::parse_json(image.manifest.bytes);
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->string_at({"config", "digest"}), image.config.digest);
  const auto config = api::parse_json(image.config.bytes);
  ASSERT_TRUE(config);
  EXPECT_EQ(*config->at({"rootfs", "diff_ids"})->if_array()->front().if_string(), image.layer.digest);
}

TEST(OciImage, NamesBytesByTheirSha256) {
  EXPECT_EQ(digest_of(""), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace spillway::host
