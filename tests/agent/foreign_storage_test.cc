// Goal: what a container runtime says becomes the figures a kubelet would report, and what it does not say stays
// absent.
#include "agent/companion/foreign_storage.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {
namespace {

constexpr std::string_view kImages = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs";
constexpr WallTime kAsked{seconds(1000)};
constexpr WallTime kMeasured{seconds(993)};

FileSystem file_system(std::uint64_t device, std::uint64_t available) {
  FileSystem found;
  found.device = device;
  found.sizes = {.time = kAsked,
                 .available_bytes = available,
                 .capacity_bytes = 1000,
                 .used_bytes = 1000 - available,
                 .inodes_free = 70,
                 .inodes = 100,
                 .inodes_used = 30};
  return found;
}

LayerUsage layer(std::optional<std::uint64_t> bytes, std::optional<std::uint64_t> inodes) {
  return {.mountpoint = std::string(kImages), .at = kMeasured, .used_bytes = bytes, .inodes_used = inodes};
}

api::FsStats files_of(std::uint64_t bytes, std::uint64_t inodes) {
  api::FsStats files;
  files.time = kAsked;
  files.used_bytes = bytes;
  files.inodes_used = inodes;
  return files;
}

/// The reading of a pod "u1" with one running container "app".
StorageReading reading() {
  StorageReading reading;
  reading.runtime.runtime = "containerd 1.6.20";
  reading.runtime.sandboxes = {{"s1", "u1", true, WallTime(seconds(10))}};
  reading.runtime.containers = {{"c1", "s1", "app", true, WallTime(seconds(11))}};
  reading.runtime.writable_layers = {{"c1", layer(400, 4)}};
  reading.runtime.images = layer(600, 60);
  reading.node_device = 1;
  reading.file_systems = {{std::string(kImages), file_system(1, 250)}};
  reading.files["u1"].logs = {{"app", files_of(30, 2)}};
  reading.files["u1"].pod_logs = files_of(7, 1);
  reading.files["u1"].etc_hosts = files_of(5, 1);
  return reading;
}

api::PodStats pod_stats() {
  api::PodStats pod;
  pod.uid = "u1";
  pod.containers.emplace_back().name = "app";
  return pod;
}

TEST(ForeignStorage, AContainersLayerAndLogsAreThoseOfTheRunningOne) {
  StorageReading seen = reading();
  seen.runtime.containers.insert(seen.runtime.containers.begin(),
                                 {"c0", "s1", "app", false, WallTime(seconds(5))});  // the pod's last sandbox
  seen.runtime.writable_layers["c0"] = layer(99999, 9);
  api::PodStats pod = pod_stats();
  const std::optional<api::FsStats> node_fs = file_system(1, 250).sizes;
  describe_pod(pod, "u1", node_fs, seen);
  const api::ContainerStats& container = pod.containers.at(0);
  ASSERT_TRUE(container.rootfs && container.logs);
  EXPECT_EQ(container.rootfs->used_bytes, 400u);
  EXPECT_EQ(container.rootfs->inodes_used, 4u);
  EXPECT_EQ(container.rootfs->available_bytes, 250u) << "of the file system it is on";
  EXPECT_EQ(container.rootfs->inodes_free, 70u);
  EXPECT_EQ(container.rootfs->time, kMeasured) << "as old as the runtime says";
  EXPECT_EQ(container.logs->used_bytes, 30u);
  EXPECT_EQ(container.logs->capacity_bytes, 1000u);
  EXPECT_EQ(container.start_time, WallTime(seconds(11)));
  EXPECT_EQ(pod.start_time, WallTime(seconds(10)));
  ASSERT_TRUE(pod.ephemeral_storage);
  EXPECT_EQ(pod.ephemeral_storage->used_bytes, 400u + 30 + 7 + 5);
  EXPECT_EQ(pod.ephemeral_storage->inodes_used, 4u + 2 + 1 + 1);
  EXPECT_EQ(pod.ephemeral_storage->time, kAsked) << "of its newest part";
}

TEST(ForeignStorage, VolumesOnDiskCount) {
  api::PodStats pod = pod_stats();
  pod.volumes.push_back({"cache", files_of(1000, 10)});
  describe_pod(pod, "u1", std::nullopt, reading());
  EXPECT_EQ(pod.ephemeral_storage->used_bytes, 1442u);
  EXPECT_FALSE(pod.ephemeral_storage->capacity_bytes);
}

TEST(ForeignStorage, WhatTheRuntimeDidNotMeasureIsAbsent) {
  StorageReading seen = reading();
  seen.runtime.writable_layers.clear();
  seen.files.clear();
  api::PodStats pod = pod_stats();
  describe_pod(pod, "u1", file_system(1, 250).sizes, seen);
  EXPECT_FALSE(pod.containers.at(0).rootfs);
  EXPECT_FALSE(pod.containers.at(0).logs);
  EXPECT_FALSE(pod.ephemeral_storage->used_bytes);
  seen.runtime.writable_layers["c1"] = layer(std::nullopt, 4);
  describe_pod(pod, "u1", file_system(1, 250).sizes, seen);
  EXPECT_FALSE(pod.containers.at(0).rootfs->used_bytes) << "inodes alone";
  EXPECT_EQ(pod.containers.at(0).rootfs->inodes_used, 4u);
  seen.file_systems.clear();
  describe_pod(pod, "u1", file_system(1, 250).sizes, seen);
  EXPECT_FALSE(pod.containers.at(0).rootfs->available_bytes) << "its file system could not be looked at";
}

TEST(ForeignStorage, OfSeveralSandboxesTheReadyOnesCountElseTheNewest) {
  StorageReading seen = reading();
  RuntimeReport& report = seen.runtime;
  report.sandboxes = {{"old", "u1", false, WallTime(seconds(1))},
                      {"up", "u1", true, WallTime(seconds(2))},
                      {"new", "u1", false, WallTime(seconds(3))},
                      {"other", "u2", true, WallTime(seconds(4))}};
  report.containers = {{"a", "old", "app", true, {}},
                       {"b", "up", "app", true, {}},
                       {"c", "new", "app", true, {}},
                       {"d", "other", "app", true, {}}};
  EXPECT_EQ(running_containers(report, "u1").at("app")->id, "b");
  report.sandboxes[1].ready = false;
  EXPECT_EQ(running_containers(report, "u1").at("app")->id, "c");
  EXPECT_TRUE(running_containers(report, "u3").empty());
}

TEST(ForeignStorage, WhatEndedContainersWroteIsThereUntilTheyAreDeleted) {
  RuntimeReport report = reading().runtime;
  report.containers[0].running = false;
  report.sandboxes[0].ready = false;
  EXPECT_TRUE(holds_containers(report, "u1"));
  EXPECT_FALSE(holds_containers(report, "u2"));
  report.containers.clear();
  EXPECT_FALSE(holds_containers(report, "u1"));
}

TEST(ForeignStorage, AContainerIsFoundByItsId) {
  const RuntimeReport report = reading().runtime;
  ASSERT_NE(find_container(report, "c1"), nullptr);
  EXPECT_EQ(find_container(report, "c1")->name, "app");
  EXPECT_EQ(find_container(report, "s1"), nullptr) << "a sandbox is no container";
}

TEST(ForeignStorage, VolumesOnDiskAreThoseTheKubeletMakesFilesFor) {
  api::Pod pod;
  pod.spec.volumes = {{"cache", "emptyDir", {}, api::EmptyDirVolume{}},
                      {"fast", "emptyDir", {}, api::EmptyDirVolume{.medium = "Memory", .size_limit = {}}},
                      {"settings", "configMap", {}, {}},
                      {"host", "hostPath", {}, {}},
                      {"key", "secret", {}, {}}};
  EXPECT_EQ(disk_volumes(pod),
            (std::vector<DiskVolume>{{"cache", "kubernetes.io~empty-dir"}, {"settings", "kubernetes.io~configmap"}}));
}

TEST(ForeignStorage, TheLayoutFollowsFromWhatTheFileSystemsAreOn) {
  StorageReading seen = reading();
  EXPECT_EQ(storage_layout(seen), (eviction::StorageLayout{false, false})) << "all on the node's";
  seen.file_systems[std::string(kImages)].device = 2;
  EXPECT_EQ(storage_layout(seen), (eviction::StorageLayout{true, false})) << "images and containers apart from it";
  seen.runtime.containers_apart = layer(1, 1);
  seen.runtime.containers_apart->mountpoint = "/containers";
  EXPECT_FALSE(storage_layout(seen)) << "a file system that was not seen";
  seen.file_systems["/containers"] = file_system(1, 250);
  EXPECT_EQ(storage_layout(seen), (eviction::StorageLayout{true, true})) << "containers on the node's, images apart";
  seen.file_systems["/containers"].device = 2;
  EXPECT_EQ(storage_layout(seen), (eviction::StorageLayout{true, false})) << "two folders of one file system";
  seen.node_device.reset();
  EXPECT_FALSE(storage_layout(seen));
  StorageReading silent = reading();
  silent.runtime.images.reset();
  EXPECT_FALSE(storage_layout(silent));
}

TEST(ForeignStorage, ImagesAndContainersAreOneStoreUnlessTheyDiffer) {
  api::NodeStats node;
  StorageReading seen = reading();
  describe_node(node, &seen);
  ASSERT_TRUE(node.image_fs);
  EXPECT_EQ(node.image_fs->used_bytes, 600u);
  EXPECT_EQ(node.image_fs->available_bytes, 250u);
  EXPECT_EQ(node.image_fs->time, kMeasured);
  EXPECT_EQ(node.container_fs, node.image_fs);
  seen.runtime.containers_apart = layer(44, 2);
  seen.runtime.containers_apart->mountpoint = "/containers";
  seen.file_systems["/containers"] = file_system(1, 900);
  describe_node(node, &seen);
  EXPECT_EQ(node.container_fs->used_bytes, 44u);
  EXPECT_EQ(node.container_fs->available_bytes, 900u);
  describe_node(node, nullptr);
  EXPECT_FALSE(node.image_fs || node.container_fs) << "a runtime that does not answer";
}

TEST(ForeignStorage, NoDiskIsShortWhileTheRuntimeIsSilent) {
  api::Summary summary;
  summary.node.fs = file_system(1, 0).sizes;
  summary.node.memory.emplace();
  remove_disk_usage(summary);
  EXPECT_FALSE(summary.node.fs || summary.node.image_fs || summary.node.container_fs);
  EXPECT_TRUE(summary.node.memory);
}

}  // namespace
}  // namespace spillway::agent
