#include "policy/checkup/machine_checkup.h"

#include <gmock/gmock.h>

namespace spillway::checkup {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr WallTime kNow{std::chrono::hours(24 * 20'000)};

MachineFacts sound() {
  return {
      .is_root = true,
      .cgroup_version = 2,
      .has_psi = true,
      .swap = Bytes{},
      .clock_is_in_step = true,
      .disk = Disk{.path = "/var/lib",
                   .available = gibibytes(40),
                   .capacity = gibibytes(100),
                   .thresholds = {{"nodefs.available<10%", gibibytes(10)}, {"imagefs.available<15%", gibibytes(15)}}},
      .ports = {{6443, "the API server", ""}},
      .certificates = {{"/d/pki/ca.crt", kNow + hours(24 * 300)}},
      .runtime = ContainerRuntime{.socket = "/run/containerd/containerd.sock", .driver = "systemd", .problem = ""},
      .cluster = Cluster{.server = "192.0.2.7:6443", .problem = "", .version = "v1.36.0", .lists_nodes = true}};
}

TEST(Checkup, ASoundMachineHasNothingInTheWay) {
  const std::vector<Finding> findings = examine(sound(), kNow);
  EXPECT_EQ(findings.size(), 11U);
  EXPECT_EQ(worst_of(findings), Level::kFine);
  for (const Finding& each : findings) EXPECT_THAT(each.fix, IsEmpty()) << each.subject;
}

TEST(Checkup, SaysWhatTheNetworkOfPodsNeeds) {
  MachineFacts facts = sound();
  facts.network = Network{.pods = "there is no CNI plug-in bridge (install containernetworking-plugins)"};
  const std::vector<Finding> findings = examine(facts, kNow);
  const auto what = [&](std::string_view subject) {
    const auto found = std::ranges::find(findings, subject, &Finding::subject);
    return found == findings.end() ? std::string() : found->what;
  };
  EXPECT_EQ(what("network"),
            "pods that are processes use the machine's network: there is no CNI plug-in bridge (install "
            "containernetworking-plugins)");
  EXPECT_EQ(what("proxy"), "addresses of Services can lead to pods");
  EXPECT_EQ(what("DNS"), "names of Services can be answered");
  EXPECT_EQ(worst_of(findings), Level::kFine) << "pods run without it";
}

TEST(Checkup, SaysWhatPodsNeedForImages) {
  MachineFacts facts = sound();
  facts.images = RuntimeFacts{};
  facts.images->is_root = true;
  const std::vector<Finding> findings = examine(facts, kNow);
  const auto found = std::ranges::find(findings, "images", &Finding::subject);
  ASSERT_NE(found, findings.end());
  EXPECT_EQ(found->level, Level::kFine);
  EXPECT_EQ(found->what, "pods are processes: containerd containernetworking-plugins runc not installed");
  EXPECT_THAT(found->fix, HasSubstr("apt install containerd containernetworking-plugins runc"));
}

/// One fault at a time: its subject is found, at its level, with what mends it, and everything else stays fine.
TEST(Checkup, EachFaultIsOneFinding) {
  struct Row {
    const char* subject;
    Level level;
    const char* what;
    void (*break_it)(MachineFacts&);
  };

  const Row rows[] = {
      {"rights", Level::kWarning, "not root", [](MachineFacts& facts) { facts.is_root = false; }},
      {"cgroups", Level::kProblem, "no cgroup hierarchy", [](MachineFacts& facts) { facts.cgroup_version.reset(); }},
      {"cgroups", Level::kWarning, "version 1", [](MachineFacts& facts) { facts.cgroup_version = 1; }},
      {"PSI", Level::kWarning, "reports no pressure", [](MachineFacts& facts) { facts.has_psi = false; }},
      {"swap", Level::kWarning, "512Mi are on", [](MachineFacts& facts) { facts.swap = mebibytes(512); }},
      {"clock", Level::kWarning, "not synchronized with a time server",
       [](MachineFacts& facts) { facts.clock_is_in_step = false; }},
      {"runtime", Level::kWarning, "does not say", [](MachineFacts& facts) { facts.runtime->driver.clear(); }},
      {"runtime", Level::kProblem, "cgroupDriver is cgroupfs",
       [](MachineFacts& facts) { facts.runtime->problem = "cgroupDriver is cgroupfs, but the runtime uses systemd"; }},
      {"disk", Level::kProblem, "15.0 % of /var/lib is free: with imagefs.available<15% a node reports DiskPressure",
       [](MachineFacts& facts) { facts.disk->available = gibibytes(15) - Bytes{1}; }},
      {"disk", Level::kWarning, "it is near imagefs.available<15%",
       [](MachineFacts& facts) { facts.disk->available = gibibytes(15); }},
      {"disk", Level::kWarning, "it is near",
       [](MachineFacts& facts) { facts.disk->available = gibibytes(20) - Bytes{1}; }},
      {"port 6443", Level::kProblem, "in use", [](MachineFacts& facts) { facts.ports[0].problem = "address in use"; }},
      {"certificate", Level::kProblem, "ended at", [](MachineFacts& facts) { facts.certificates[0].end = kNow; }},
      {"certificate", Level::kWarning, "until",
       [](MachineFacts& facts) { facts.certificates[0].end = kNow + hours(24 * 7) - seconds(1); }},
      {"certificate", Level::kProblem, "cannot be read",
       [](MachineFacts& facts) { facts.certificates[0].end.reset(); }},
      {"configuration", Level::kProblem, "k.yaml:3: evictionHard",
       [](MachineFacts& facts) { facts.config = {{"k.yaml:3", "evictionHard", true}}; }},
      {"configuration", Level::kWarning, "k.yaml:3",
       [](MachineFacts& facts) { facts.config = {{"k.yaml:3", "evictionHard", false}}; }},
      {"cluster", Level::kProblem, "connection refused",
       [](MachineFacts& facts) { facts.cluster->problem = "connection refused"; }},
      {"cluster", Level::kProblem, "may not be listed",
       [](MachineFacts& facts) { facts.cluster->lists_nodes = false; }},
  };
  for (const Row& row : rows) {
    MachineFacts facts = sound();
    row.break_it(facts);
    int found = 0;
    for (const Finding& each : examine(facts, kNow)) {
      if (each.level == Level::kFine) continue;
      ++found;
      EXPECT_EQ(each.subject, row.subject);
      EXPECT_EQ(each.level, row.level) << row.what;
      EXPECT_THAT(each.what, HasSubstr(row.what));
      EXPECT_FALSE(each.fix.empty()) << row.what;
    }
    EXPECT_EQ(found, 1) << row.what;
  }
}

TEST(Checkup, WhatIsNotKnownIsNotSaid) {
  const std::vector<Finding> findings = examine({.is_root = true, .cgroup_version = 2}, kNow);
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[2].what, "no kubeconfig: the cluster was not checked");
  EXPECT_EQ(worst_of(findings), Level::kFine);
}

TEST(Checkup, APortOfTheSpillwayThatAnswersIsNoProblem) {
  MachineFacts facts = sound();
  facts.ports[0].problem = "127.0.0.1:6443: address already in use";
  EXPECT_EQ(worst_of(examine(facts, kNow)), Level::kProblem) << "the server of the kubeconfig is elsewhere";
  facts.cluster->server = "127.0.0.1:6443";
  EXPECT_EQ(worst_of(examine(facts, kNow)), Level::kProblem) << "another server has the port";
  facts.cluster->version = "v1.36.0-spillway.0.1.0";
  const std::vector<Finding> findings = examine(facts, kNow);
  EXPECT_EQ(worst_of(findings), Level::kFine);
  EXPECT_EQ(std::ranges::find(findings, "port 6443", &Finding::subject)->what,
            "in use by the Spillway that answers at 127.0.0.1:6443");
}

TEST(Checkup, SaysWhereClaimsGetVolumes) {
  const auto what = [](const MachineFacts& facts) {
    const std::vector<Finding> findings = examine(facts, kNow);
    return std::ranges::find(findings, "storage", &Finding::subject)->what;
  };
  MachineFacts facts = sound();
  EXPECT_EQ(what(facts), "claims get volumes of the StorageClass local-path, on the disk of /var/lib");
  facts.is_root = false;
  EXPECT_EQ(what(facts), "without root, claims get no volumes: `spillway up` provisions none");
}

TEST(Checkup, WhyNoNodeCanBeMadeIsPassedOn) {
  MachineFacts facts = sound();
  facts.cgroup_problem = "/sys/fs/cgroup: read-only file system; mount it writable";
  EXPECT_EQ(examine(facts, kNow)[1], (Finding{Level::kProblem, "cgroups", facts.cgroup_problem, ""}));
}

}  // namespace
}  // namespace spillway::checkup
