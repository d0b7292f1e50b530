// The rank of clients and of their requests.
#include "wire/http/client_rank.h"

#include <gtest/gtest.h>

namespace spillway::wire {
namespace {

TEST(ClientRank, IsWhatCredentialsSay) {
  EXPECT_EQ(rank_of({"system:anonymous", "", {"system:unauthenticated"}}), ClientRank::kUnproven);
  EXPECT_EQ(rank_of({"alice", "", {"system:authenticated"}}), ClientRank::kOrdinary);
  EXPECT_EQ(rank_of({"system:node:n1", "", {"system:authenticated"}}), ClientRank::kOrdinary) << "a name is no group";
  EXPECT_EQ(rank_of({"system:node:n1", "", {"system:nodes"}}), ClientRank::kVital);
  EXPECT_EQ(rank_of({"admin", "", {"system:masters"}}), ClientRank::kVital);
  EXPECT_EQ(rank_of({"system:kube-controller-manager", "", {"system:authenticated"}}), ClientRank::kVital);
  EXPECT_EQ(rank_of({"system:kube-scheduler", "", {}}), ClientRank::kVital);
  EXPECT_EQ(rank_of({"spillway:controllers", "", {"system:authenticated"}}), ClientRank::kVital);
  EXPECT_EQ(rank_of({"spillway:scheduler", "", {"system:authenticated"}}), ClientRank::kVital);
}

TEST(RequestClass, HeartbeatsAreSmallRequestsOfVitalClients) {
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
  const auto of = [](api::Method method, const std::string& target) {
    return class_of(ClientRank::kVital, method, target);
  };
  EXPECT_EQ(of(api::Method::kPut, leases + "/n1"), RequestClass::kHeartbeat);
  EXPECT_EQ(of(api::Method::kGet, leases + "/n1?timeout=10s"), RequestClass::kHeartbeat);
  EXPECT_EQ(of(api::Method::kPost, leases), RequestClass::kHeartbeat);
  EXPECT_EQ(of(api::Method::kGet, leases), RequestClass::kVital);
  EXPECT_EQ(of(api::Method::kGet, leases + "/"), RequestClass::kVital);
  EXPECT_EQ(of(api::Method::kPatch, "/api/v1/nodes/n1/status"), RequestClass::kHeartbeat);
  EXPECT_EQ(of(api::Method::kPatch, "/api/v1/nodes/n1"), RequestClass::kVital);
  EXPECT_EQ(of(api::Method::kGet, "/api/v1/nodes/n1/proxy/status"), RequestClass::kVital);
  EXPECT_EQ(of(api::Method::kGet, "/readyz?verbose"), RequestClass::kHeartbeat);
  EXPECT_EQ(of(api::Method::kGet, "/metrics"), RequestClass::kHeartbeat);
  EXPECT_EQ(of(api::Method::kGet, "/api/v1/pods"), RequestClass::kVital);
  EXPECT_EQ(class_of(ClientRank::kOrdinary, api::Method::kPut, leases + "/n1"), RequestClass::kOrdinary);
  EXPECT_EQ(class_of(ClientRank::kUnproven, api::Method::kGet, "/healthz"), RequestClass::kOrdinary);
}

}  // namespace
}  // namespace spillway::wire
