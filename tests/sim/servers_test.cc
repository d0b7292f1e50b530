// Several servers over one simulated etcd: addresses and ports are given out once, a write that one server acknowledged
// is visible at another, and the same seed is the same run.
#include "sim/cluster.h"
#include "sim/tenants.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::sim {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SharedOut : public ::testing::Test {
 protected:
  void write(const std::string& key, const std::string& value) {
    tenants_.on_change({.key = key, .value = std::make_shared<const std::string>(value)}, now_);
  }

  void remove(const std::string& key) { tenants_.on_change({.key = key}, now_); }

  void pass(Duration time) {
    now_.mono += time;
    invariants_.check(now_);
  }

  Now now_{Instant(minutes(1)), WallTime(minutes(1))};
  Invariants invariants_{{}};
  Tenants tenants_{invariants_};
};

constexpr std::string_view kServices = "/registry/services/specs/default/";

TEST_F(SharedOut, AnAddressHasOneService) {
  const std::string service = R"({"spec":{"clusterIP":"10.0.0.1"}})";
  write(fmt::format("{}a", kServices), service);
  write(fmt::format("{}a", kServices), service);
  remove(fmt::format("{}a", kServices));
  write(fmt::format("{}b", kServices), service);
  EXPECT_THAT(invariants_.violations(), IsEmpty());
  write(fmt::format("{}c", kServices), service);
  EXPECT_THAT(invariants_.violations(), Contains(HasSubstr("both have 10.0.0.1")));
}

TEST_F(SharedOut, APortHasOneService) {
  write(fmt::format("{}a", kServices), R"({"spec":{"ports":[{"protocol":"TCP","nodePort":30000}]}})");
  write(fmt::format("{}b", kServices), R"({"spec":{"ports":[{"protocol":"UDP","nodePort":30000}]}})");
  EXPECT_THAT(invariants_.violations(), IsEmpty());
  write(fmt::format("{}c", kServices), R"({"spec":{"ports":[{"protocol":"UDP","nodePort":30000}]}})");
  EXPECT_THAT(invariants_.violations(), Contains(HasSubstr("both have UDP 30000")));
}

TEST_F(SharedOut, ANamespaceThatIsGoneIsEmptySoon) {
  write("/registry/namespaces/team", R"({"metadata":{"deletionTimestamp":"x"}})");
  EXPECT_THAT(tenants_.ending(), Contains("team"));
  write("/registry/configmaps/team/a", "{}");
  write("/registry/configmaps/team/b", "{}");
  remove("/registry/namespaces/team");
  remove("/registry/configmaps/team/a");
  pass(minutes(1));
  EXPECT_THAT(invariants_.violations(), IsEmpty());
  pass(minutes(2));
  ASSERT_EQ(invariants_.violations().size(), 1U);
  EXPECT_THAT(invariants_.violations().front(), HasSubstr("/registry/configmaps/team/b is in a namespace"));
}

TEST(Servers, AnyOfThemShowsWhatAnotherOneAcknowledged) {
  Cluster cluster({.nodes = 2, .etcd_replicas = 3, .servers = 3, .etcd_faults = {.pace = {.late_ppm = 200'000}}});
  for (std::size_t round = 0; round < 9; ++round) {
    cluster.run_for(seconds(20));
    cluster.crash_server(round % 3);
    cluster.run_for(seconds(5));
    cluster.restart_server(round % 3);
  }
  EXPECT_THAT(cluster.invariants().violations(), IsEmpty());
  EXPECT_GT(cluster.answers_confirmed(), 100U);
}

TEST(Servers, OneThatIsCutOffFromEtcdActsNoLongerThanItsLease) {
  Cluster cluster({.nodes = 1, .etcd_replicas = 3, .servers = 2});
  for (std::size_t round = 0; round < 4; ++round) {
    cluster.run_for(minutes(1));
    cluster.cut_off_server(round % 2);
    cluster.run_for(minutes(1));
    cluster.reach_server_again(round % 2);
  }
  EXPECT_THAT(cluster.invariants().violations(), IsEmpty());
}

}  // namespace
}  // namespace spillway::sim
