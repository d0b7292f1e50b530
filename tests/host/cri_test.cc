// Goal: the answers of a runtime on its socket arrive unchanged, a runtime that is silent, absent or of another kind
// leaves figures missing with a reason, and delays no other work. The runtime is a fake that speaks the real protocol.
#include "host/companion/storage_feed.h"
#include "host/cri/cri.grpc.pb.h"
#include "host/cri/cri_client.h"
#include "support/patience.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

namespace cri = ::runtime::v1;
namespace fs = std::filesystem;

constexpr std::int64_t kSecond = 1'000'000'000;

struct Answers {
  cri::ListPodSandboxResponse sandboxes;
  cri::ListContainersResponse containers;
  cri::ListContainerStatsResponse stats;
  cri::ImageFsInfoResponse images;
};

class FakePods final : public cri::RuntimeService::Service {
 public:
  explicit FakePods(Answers& answers) : answers_(answers) {}

  grpc::Status Version(grpc::ServerContext*, const cri::VersionRequest*, cri::VersionResponse* response) override {
    response->set_runtime_name("fake");
    response->set_runtime_version("7");
    return grpc::Status::OK;
  }

  grpc::Status ListPodSandbox(grpc::ServerContext*, const cri::ListPodSandboxRequest*,
                              cri::ListPodSandboxResponse* response) override {
    std::unique_lock lock(mutex_);
    asked_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !silent_; });
    *response = answers_.sandboxes;
    return grpc::Status::OK;
  }

  grpc::Status ListContainers(grpc::ServerContext*, const cri::ListContainersRequest*,
                              cri::ListContainersResponse* response) override {
    *response = answers_.containers;
    return grpc::Status::OK;
  }

  grpc::Status ListContainerStats(grpc::ServerContext*, const cri::ListContainerStatsRequest*,
                                  cri::ListContainerStatsResponse* response) override {
    *response = answers_.stats;
    return grpc::Status::OK;
  }

  void set_silent(bool silent) {
    const std::scoped_lock lock(mutex_);
    silent_ = silent;
    changed_.notify_all();
  }

  void wait_until_asked() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return asked_; });
  }

 private:
  Answers& answers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool silent_ = false;
  bool asked_ = false;
};

class FakeImages final : public cri::ImageService::Service {
 public:
  explicit FakeImages(Answers& answers) : answers_(answers) {}

  grpc::Status ImageFsInfo(grpc::ServerContext*, const cri::ImageFsInfoRequest*,
                           cri::ImageFsInfoResponse* response) override {
    *response = answers_.images;
    return grpc::Status::OK;
  }

 private:
  Answers& answers_;
};

class Cri : public ::testing::Test {
 protected:
  Cri() : pods_(answers_), images_(answers_) {
    std::string pattern = (fs::temp_directory_path() / "spillway-cri-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    socket_ = (folder_ / "runtime.sock").string();
    fs::create_directories(folder_ / "images");
    add_usage(*answers_.images.add_image_filesystems(), "images", 900 * kSecond, 600, 60);
  }

  ~Cri() override {
    pods_.set_silent(false);
    stop_server();
    fs::remove_all(folder_);
  }

  void start_server(bool with_pods = true) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
    if (with_pods) builder.RegisterService(&pods_);
    builder.RegisterService(&images_);
    server_ = builder.BuildAndStart();
    ASSERT_TRUE(server_);
  }

  void stop_server() {
    if (server_) server_->Shutdown(std::chrono::system_clock::time_point{});
    server_.reset();
  }

  void add_usage(cri::FilesystemUsage& usage, const std::string& where, std::int64_t at, std::uint64_t bytes,
                 std::uint64_t inodes) const {
    usage.set_timestamp(at);
    usage.mutable_fs_id()->set_mountpoint((folder_ / where).string());
    usage.mutable_used_bytes()->set_value(bytes);
    usage.mutable_inodes_used()->set_value(inodes);
  }

  /// A pod "u1" with a container that runs and one that has ended.
  void add_pod() {
    cri::PodSandbox& sandbox = *answers_.sandboxes.add_items();
    sandbox.set_id("s1");
    sandbox.mutable_metadata()->set_uid("u1");
    sandbox.set_created_at(5 * kSecond);
    for (const auto& [id, state] : {std::pair("c1", cri::CONTAINER_RUNNING), std::pair("c0", cri::CONTAINER_EXITED)}) {
      cri::Container& container = *answers_.containers.add_containers();
      container.set_id(id);
      container.set_pod_sandbox_id("s1");
      container.mutable_metadata()->set_name("app");
      container.set_state(state);
      container.set_created_at(6 * kSecond);
    }
    cri::ContainerStats& stats = *answers_.stats.add_stats();
    stats.mutable_attributes()->set_id("c1");
    add_usage(*stats.mutable_writable_layer(), "images", 950 * kSecond, 400, 4);
  }

  bool run_until(const std::function<bool()>& done) {
    const Instant limit = loop_.now().mono + support::kPatience;
    bool reached = false;
    while (!(reached = done()) && loop_.now().mono < limit) {
      loop_.at(loop_.now().mono + milliseconds(1), [&] { loop_.stop(); });
      loop_.run({});
    }
    return reached;
  }

  Answers answers_;
  FakePods pods_;
  FakeImages images_;
  fs::path folder_;
  std::string socket_;
  std::unique_ptr<grpc::Server> server_;
  runtime::Loop loop_;
};

TEST_F(Cri, WhatTheRuntimeSaysArrives) {
  add_pod();
  start_server();
  CriClient client(socket_, {}, support::kPatience);
  const auto report = client.report();
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->runtime, "fake 7");
  EXPECT_EQ(report->sandboxes, (std::vector<agent::RuntimeSandbox>{{"s1", "u1", true, WallTime(seconds(5))}}));
  EXPECT_EQ(report->containers,
            (std::vector<agent::RuntimeContainer>{{"c1", "s1", "app", true, WallTime(seconds(6))},
                                                  {"c0", "s1", "app", false, WallTime(seconds(6))}}));
  const agent::LayerUsage layer{(folder_ / "images").string(), WallTime(seconds(950)), 400, 4};
  EXPECT_EQ(report->writable_layers, (std::map<std::string, agent::LayerUsage>{{"c1", layer}}));
  ASSERT_TRUE(report->images);
  EXPECT_EQ(report->images->used_bytes, 600u);
  EXPECT_FALSE(report->containers_apart);
}

TEST_F(Cri, WhatWasNotMeasuredIsMissing) {
  add_pod();
  cri::FilesystemUsage& layer = *answers_.stats.mutable_stats(0)->mutable_writable_layer();
  layer.clear_used_bytes();
  start_server();
  CriClient client(socket_, {}, support::kPatience);
  EXPECT_EQ(client.report().value().writable_layers.at("c1").used_bytes, std::nullopt);
  layer.mutable_used_bytes()->set_value(0);
  layer.set_timestamp(0);
  EXPECT_TRUE(client.report().value().writable_layers.empty()) << "a layer nobody has looked at yet is not empty";
}

TEST_F(Cri, ContainersAreApartOnlyIfStoredElsewhere) {
  add_usage(*answers_.images.add_container_filesystems(), "images", kSecond, 1, 1);
  start_server();
  CriClient client(socket_, {}, support::kPatience);
  EXPECT_FALSE(client.report().value().containers_apart);
  answers_.images.mutable_container_filesystems(0)->mutable_fs_id()->set_mountpoint("/elsewhere");
  EXPECT_EQ(client.report().value().containers_apart.value().mountpoint, "/elsewhere");
}

TEST_F(Cri, AMissingRuntimeIsNamedAndFoundWhenItStarts) {
  CriClient client(socket_, {}, support::kPatience);
  const auto report = client.report();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kServiceUnavailable);
  EXPECT_EQ(report.error().at, socket_);
  start_server();
  EXPECT_TRUE(run_until([&] { return client.report().has_value(); }));
  stop_server();
  EXPECT_FALSE(client.report());
  start_server();
  EXPECT_TRUE(run_until([&] { return client.report().has_value(); })) << "a runtime may restart";
}

TEST_F(Cri, ARuntimeOfAnotherKindIsRecognised) {
  start_server(false);
  CriClient client(socket_, {}, support::kPatience);
  const auto report = client.report();
  ASSERT_FALSE(report);
  EXPECT_TRUE(report.error().text().contains("does not support CRI v1")) << report.error().text();
}

TEST_F(Cri, ASilentRuntimeEndsTheRoundInTime) {
  start_server();
  pods_.set_silent(true);
  // On a busy machine the connection and the first call alone may take longer than a round has.
  std::string problem;
  for (Duration limit = milliseconds(100); !problem.starts_with("ListPodSandbox: "); limit *= 2) {
    ASSERT_LT(limit, support::kPatience) << problem;
    CriClient client(socket_, {}, limit);
    const auto report = client.report();
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, ErrorCode::kTimeout) << report.error().text();
    problem = report.error().message;
  }
}

TEST_F(Cri, ACallUnderWayCanBeEnded) {
  start_server();
  pods_.set_silent(true);
  CriClient client(socket_, {}, minutes(5));
  Result<agent::RuntimeReport> report;
  std::thread asking([&] { report = client.report(); });
  pods_.wait_until_asked();
  client.stop();
  asking.join();
  EXPECT_FALSE(report);
  EXPECT_FALSE(client.report()) << "nor is there another";
}

TEST_F(Cri, ATooLongAnswerOfTheRuntimeIsAnError) {
  for (std::size_t i = 0; i <= CriClient::kListedMax; ++i) answers_.containers.add_containers()->set_id("c");
  start_server();
  CriClient client(socket_, {}, support::kPatience);
  const auto report = client.report();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kInvalid);
}

TEST_F(Cri, AFeedHasTheDisksTooAndDoesNotWait) {
  add_pod();
  fs::create_directories(folder_ / "logs/app");
  std::ofstream(folder_ / "logs/app/0.log") << std::string(10'000, 'x');
  std::ofstream(folder_ / "logs/app/0.log.1") << std::string(5'000, 'x');
  fs::create_directories(folder_ / "pod/volumes/kubernetes.io~empty-dir/cache");
  std::ofstream(folder_ / "pod/volumes/kubernetes.io~empty-dir/cache/file") << std::string(100'000, 'x');
  std::ofstream(folder_ / "pod/etc-hosts") << "127.0.0.1 localhost";
  start_server();
  pods_.set_silent(true);
  int readings = 0;
  StorageFeed feed(loop_, {.socket = socket_, .node_directory = folder_.string()}, {}, [&] { ++readings; });
  const PodFolder pod{.uid = "u1",
                      .logs = (folder_ / "logs").string(),
                      .directory = (folder_ / "pod").string(),
                      .volumes = {{"cache", "kubernetes.io~empty-dir"}}};
  feed.refresh({pod});
  EXPECT_EQ(feed.latest(loop_.now().mono), nullptr) << "not answered yet";
  EXPECT_FALSE(feed.problem().empty());
  pods_.set_silent(false);
  ASSERT_TRUE(run_until([&] {
    feed.refresh({pod});  // a round that took too long is followed by another one
    return readings >= 1 && !feed.volumes(pod, {}).empty();
  }));
  EXPECT_EQ(feed.problem(), "");
  const agent::StorageReading* reading = feed.latest(loop_.now().mono);
  ASSERT_NE(reading, nullptr);
  EXPECT_EQ(agent::storage_layout(*reading), (eviction::StorageLayout{false, false}));
  EXPECT_GT(reading->file_systems.at((folder_ / "images").string()).sizes.capacity_bytes.value_or(0), 0u);
  const api::FsStats& logs = reading->files.at("u1").logs.at("app");
  EXPECT_GE(logs.used_bytes.value_or(0), 15'000u);
  EXPECT_LT(logs.used_bytes.value_or(0), 30'000u);
  EXPECT_EQ(logs.inodes_used, 2u);
  EXPECT_TRUE(logs.time);
  EXPECT_EQ(reading->files.at("u1").etc_hosts->inodes_used, 1u);
  EXPECT_FALSE(reading->files.at("u1").pod_logs);
  EXPECT_GE(feed.volumes(pod, {}).at(0).fs.used_bytes.value_or(0), 100'000u);
  EXPECT_EQ(feed.latest(loop_.now().mono + StorageFeed::kAgeMax + seconds(1)), nullptr) << "too old";
}

TEST_F(Cri, AFeedSaysWhyFiguresAreMissing) {
  StorageFeed absent(loop_, {.socket = socket_, .node_directory = folder_.string()}, {}, [] {});
  ASSERT_TRUE(run_until([&] {
    absent.refresh({});
    return absent.problem().contains(socket_);
  })) << absent.problem();
  EXPECT_EQ(absent.latest(loop_.now().mono), nullptr);

  answers_.images.mutable_image_filesystems(0)->mutable_fs_id()->set_mountpoint((folder_ / "hidden").string());
  start_server();
  StorageFeed blind(loop_, {.socket = socket_, .node_directory = folder_.string()}, {}, [] {});
  ASSERT_TRUE(run_until([&] {
    blind.refresh({});
    return blind.problem().contains("hidden");
  })) << blind.problem();
  EXPECT_NE(blind.latest(loop_.now().mono), nullptr) << "the rest is known";
}

}  // namespace
}  // namespace spillway::host
