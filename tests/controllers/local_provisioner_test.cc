// Claims of the class local-path from the pod that names them to the removal of their data: the provisioner, the binder
// and the scheduler together, with the real API server; directories are names in a set.
#include "controllers/storage/local_provisioner.h"

#include "controllers/controller_set.h"
#include "controllers/scheduling/scheduler.h"
#include "controllers/test_cluster.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <set>
#include <string>
#include <utility>

namespace spillway::controllers {
namespace {

using api::Json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kPodsPath = "/api/v1/namespaces/default/pods";
const std::string kClaimsPath = "/api/v1/namespaces/default/persistentvolumeclaims";
const std::string kVolumesPath = "/api/v1/persistentvolumes";
const std::string kClassesPath = "/apis/storage.k8s.io/v1/storageclasses";

/// The machine of a provisioner, which answers a second later, in steps of the engine.
class ProvisionedMachine final : public client::ApiEngine, private LocalDirectories {
 public:
  explicit ProvisionedMachine(storage::LocalFolders folders)
      : provisioner_(std::move(folders), *this, Rng(5), telemetry::Log()) {}

  std::string_view name() const override { return "machine"; }

  void start(Now now) override {
    now_ = now;
    provisioner_.start(now);
  }

  void on_api_event(const client::ApiEvent& event, Now now) override {
    now_ = now;
    provisioner_.on_api_event(event, now);
  }

  void on_wakeup(Now now) override {
    now_ = now;
    while (!answers_.empty() && answers_.front().first <= now.mono) {
      const auto answer = std::move(answers_.front().second);
      answers_.pop_front();
      answer(now);
    }
    provisioner_.on_wakeup(now);
  }

  std::optional<Instant> next_wakeup() const override {
    std::optional<Instant> due = provisioner_.next_wakeup();
    if (!answers_.empty() && (!due || answers_.front().first < *due)) due = answers_.front().first;
    return due;
  }

  std::vector<client::ApiCommand> take_api_commands() override { return provisioner_.take_api_commands(); }

  std::set<std::string> directories;
  Outcome failure;

 private:
  void make(const std::string& folder, const std::string& name, Done done) override {
    if (failure) directories.insert(folder + "/" + name);
    answer(std::move(done));
  }

  void remove(const std::string& folder, const std::string& name, Done done) override {
    if (failure) directories.erase(folder + "/" + name);
    answer(std::move(done));
  }

  void answer(Done done) {
    answers_.emplace_back(now_.mono + seconds(1),
                          [done = std::move(done), outcome = failure](Now then) { done(outcome, then); });
  }

  Now now_{};
  std::deque<std::pair<Instant, std::function<void(Now)>>> answers_;
  LocalProvisioner provisioner_;
};

class LocalStorage : public ::testing::Test {
 protected:
  LocalStorage() : set({}, Rng(3), telemetry::Log(), metrics), scheduler({}, Rng(4), telemetry::Log(), metrics) {}

  ~LocalStorage() override {
    cluster.stop(set);
    cluster.stop(scheduler);
    cluster.stop(machine);
  }

  void start() {
    for (const char* node : {"n0", "n1"}) cluster.add_node(node, {{"kubernetes.io/hostname", node}});
    cluster.run(set);
    cluster.run(scheduler);
    cluster.run(machine);
    cluster.advance(seconds(2));
  }

  void make_claim(const std::string& name, const std::string& more = {}) {
    cluster.create(
        kClaimsPath,
        api::parse_json(R"({"metadata":{"name":")" + name +
                        R"("},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}})" +
                        more + "}}")
            .value());
  }

  void make_pod(const std::string& name, const std::string& claim) {
    Json pod = pod_json(name);
    pod["spec"]["volumes"] =
        Json::array({Json::object({{"name", "v"}, {"persistentVolumeClaim", Json::object({{"claimName", claim}})}})});
    cluster.create(kPodsPath, pod);
  }

  std::string phase(const std::string& target) {
    const Json found = cluster.get(target);
    return found.is_null() ? "gone" : std::string(found.string_at({"status", "phase"}));
  }

  std::string volume_of(const std::string& claim) {
    return std::string(cluster.get(kClaimsPath + "/" + claim).string_at({"spec", "volumeName"}));
  }

  telemetry::Registry metrics;
  TestCluster cluster;
  ControllerSet set;
  Scheduler scheduler;
  ProvisionedMachine machine{{{"n0", "/n0"}, {"n1", "/n1"}}};
};

TEST_F(LocalStorage, AClaimGetsADirectoryOfTheNodeOfItsPod) {
  start();
  EXPECT_EQ(cluster.get(kClassesPath + "/local-path").string_at({"provisioner"}), "spillway.io/local-path");
  make_claim("data");
  cluster.advance(seconds(2));
  EXPECT_EQ(phase(kClaimsPath + "/data"), "Pending");
  EXPECT_THAT(machine.directories, IsEmpty()) << "no pod names it";
  EXPECT_THAT(cluster.events_about("data"), Contains(Key("WaitForFirstConsumer")));
  make_pod("p", "data");
  cluster.advance(seconds(5));
  EXPECT_EQ(phase(kClaimsPath + "/data"), "Bound");
  const Json pod = cluster.get(kPodsPath + "/p");
  const std::string node(pod.string_at({"spec", "nodeName"}));
  EXPECT_THAT(machine.directories, ElementsAre(fmt::format("/{}/{}", node, volume_of("data"))));
  EXPECT_THAT(volume_of("data"), StartsWith("pvc-"));
  EXPECT_EQ(cluster.get(kVolumesPath + "/" + volume_of("data")).string_at({"spec", "persistentVolumeReclaimPolicy"}),
            "Delete");
  for (const char* reason : {"ExternalProvisioning", "Provisioning", "ProvisioningSucceeded"}) {
    EXPECT_THAT(cluster.events_about("data"), Contains(Key(reason)));
  }
}

TEST_F(LocalStorage, ALaterPodGoesWhereTheDataIsAndTheDataGoesWithTheClaim) {
  start();
  make_claim("data");
  make_pod("p", "data");
  cluster.advance(seconds(5));
  const std::string node(cluster.get(kPodsPath + "/p").string_at({"spec", "nodeName"}));
  cluster.remove(kPodsPath + "/p");
  cluster.advance(seconds(40));
  make_pod("q", "data");
  cluster.advance(seconds(5));
  EXPECT_EQ(cluster.get(kPodsPath + "/q").string_at({"spec", "nodeName"}), node);
  cluster.remove(kClaimsPath + "/data");
  cluster.advance(seconds(5));
  EXPECT_EQ(machine.directories.size(), 1U) << "a pod still uses the claim";
  const std::string volume = volume_of("data");
  cluster.remove(kPodsPath + "/q");
  cluster.advance(seconds(60));
  EXPECT_EQ(phase(kClaimsPath + "/data"), "gone");
  EXPECT_EQ(phase(kVolumesPath + "/" + volume), "gone");
  EXPECT_THAT(machine.directories, IsEmpty());
}

TEST_F(LocalStorage, RetainKeepsTheDirectory) {
  cluster.create(kClassesPath,
                 api::parse_json(R"({"metadata":{"name":"kept"},"provisioner":"spillway.io/local-path",)"
                                 R"("reclaimPolicy":"Retain","volumeBindingMode":"WaitForFirstConsumer"})")
                     .value());
  start();
  make_claim("data", R"(,"storageClassName":"kept")");
  make_pod("p", "data");
  cluster.advance(seconds(5));
  const std::string volume = volume_of("data");
  ASSERT_NE(volume, "");
  cluster.remove(kPodsPath + "/p");
  cluster.remove(kClaimsPath + "/data");
  cluster.advance(seconds(60));
  EXPECT_EQ(phase(kVolumesPath + "/" + volume), "Released");
  EXPECT_EQ(machine.directories.size(), 1U);
}

TEST_F(LocalStorage, SaysWhatFailsAndTriesAgain) {
  machine.failure = make_error(ErrorCode::kInternalError, "No space left on device");
  start();
  make_claim("data");
  make_pod("p", "data");
  cluster.advance(seconds(5));
  EXPECT_THAT(cluster.events_about("data"), Contains(Key("ProvisioningFailed")));
  EXPECT_EQ(phase(kClaimsPath + "/data"), "Pending");
  machine.failure = {};
  cluster.advance(minutes(2));
  EXPECT_EQ(phase(kClaimsPath + "/data"), "Bound");
  const std::string volume = volume_of("data");
  machine.failure = make_error(ErrorCode::kInternalError, "Device or resource busy");
  cluster.remove(kPodsPath + "/p");
  cluster.remove(kClaimsPath + "/data");
  cluster.advance(seconds(60));
  EXPECT_EQ(phase(kVolumesPath + "/" + volume), "Released");
  EXPECT_THAT(cluster.events_about(volume), Contains(Key("VolumeFailedDelete")));
  machine.failure = {};
  cluster.advance(minutes(3));
  EXPECT_EQ(phase(kVolumesPath + "/" + volume), "gone");
}

TEST_F(LocalStorage, AnAnswerThatIsLostMakesNoSecondVolume) {
  start();
  cluster.fail(api::Method::kPost, kVolumesPath, TestCluster::kLostAnswer, 1);
  make_claim("data");
  make_pod("p", "data");
  cluster.advance(minutes(2));
  EXPECT_EQ(phase(kClaimsPath + "/data"), "Bound");
  EXPECT_EQ(cluster.list(kVolumesPath).size(), 1U);
  EXPECT_EQ(machine.directories.size(), 1U);
}

TEST_F(LocalStorage, AVolumeOfANodeThatIsNotRunHereStays) {
  start();
  make_claim("data");
  make_pod("p", "data");
  cluster.advance(seconds(5));
  const std::string volume = volume_of("data");
  cluster.stop(machine);
  ProvisionedMachine elsewhere({{"n7", "/n7"}});
  cluster.run(elsewhere);
  cluster.remove(kPodsPath + "/p");
  cluster.remove(kClaimsPath + "/data");
  cluster.advance(seconds(60));
  EXPECT_EQ(phase(kVolumesPath + "/" + volume), "Released");
  cluster.stop(elsewhere);
}

TEST_F(LocalStorage, ADefaultClassStaysTheOnlyOne) {
  cluster.create(
      kClassesPath,
      api::parse_json(R"({"metadata":{"name":"fast","annotations":{"storageclass.kubernetes.io/is-default-class":)"
                      R"("true"}},"provisioner":"example.com/disks"})")
          .value());
  start();
  const Json made = cluster.get(kClassesPath + "/local-path");
  EXPECT_FALSE(made.is_null());
  EXPECT_EQ(made.at({"metadata", "annotations"}), nullptr);
}

}  // namespace
}  // namespace spillway::controllers
