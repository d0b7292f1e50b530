// The choice of a connection: rules, and each small case against what must hold in all.
#include "wire/client/connection_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace spillway::wire {
namespace {

using What = Placement::What;

constexpr PlanBounds kPlanInSmall{.call_connections_max = 2, .http2_connections_max = 2, .streams_max = 3};

PlannedConnection over_http2(std::uint64_t id, std::size_t carried, Lane lane = Lane::kOrdinary) {
  return {.id = id, .spoken = Spoken::kHttp2, .lane = lane, .carried = carried, .streams_max = 3};
}

PlannedConnection over_http11(std::uint64_t id, std::size_t carried, bool single = false) {
  return {.id = id, .spoken = Spoken::kHttp11, .single = single, .carried = carried, .streams_max = 1};
}

PlannedConnection on_its_way(std::uint64_t id, std::size_t carried, Lane lane = Lane::kOrdinary) {
  return {.id = id, .lane = lane, .carried = carried};
}

Placement put(ExchangeKind kind, std::vector<PlannedConnection> connections, Spoken expected,
              Lane lane = Lane::kOrdinary, bool anew = false) {
  return place({.kind = kind, .lane = lane, .anew = anew}, connections, expected, kPlanInSmall);
}

Placement use(std::uint64_t id) {
  return {.what = What::kUse, .id = id};
}

constexpr Placement kOpenShared{.what = What::kOpen};
constexpr Placement kOpenSingle{.what = What::kOpen, .single = true};
constexpr Placement kWaits{};
constexpr auto kCall = ExchangeKind::kCall;
constexpr auto kStream = ExchangeKind::kStream;

TEST(ConnectionPlan, OverHttp2CallsAndStreamsShare) {
  EXPECT_EQ(put(kCall, {}, Spoken::kHttp2), kOpenShared);
  EXPECT_EQ(put(kCall, {over_http2(1, 2)}, Spoken::kHttp2), use(1));
  EXPECT_EQ(put(kStream, {over_http2(1, 2)}, Spoken::kHttp2), use(1));
  EXPECT_EQ(put(kStream, {over_http2(1, 3)}, Spoken::kHttp2), kOpenShared);
  EXPECT_EQ(put(kStream, {over_http2(1, 3), on_its_way(2, 1)}, Spoken::kHttp2), use(2));
  EXPECT_EQ(put(kStream, {over_http2(1, 3), over_http2(2, 3)}, Spoken::kHttp2), kWaits);
}

TEST(ConnectionPlan, HeartbeatsKeepTheirOwn) {
  EXPECT_EQ(put(kCall, {over_http2(1, 0)}, Spoken::kHttp2, Lane::kHeartbeats), kOpenShared);
  EXPECT_EQ(put(kCall, {over_http2(1, 3), over_http2(2, 3)}, Spoken::kHttp2, Lane::kHeartbeats), kOpenShared);
  EXPECT_EQ(put(kCall, {over_http2(1, 0, Lane::kHeartbeats)}, Spoken::kHttp2), kOpenShared);
  EXPECT_EQ(put(kCall, {on_its_way(1, 1)}, Spoken::kUndecided, Lane::kHeartbeats), kOpenShared);
  EXPECT_EQ(put(kCall, {over_http11(1, 0)}, Spoken::kHttp11, Lane::kHeartbeats), use(1));
}

TEST(ConnectionPlan, OverHttp11CallsShareAFewAndStreamsNone) {
  EXPECT_EQ(put(kCall, {}, Spoken::kHttp11), kOpenShared);
  EXPECT_EQ(put(kCall, {over_http11(1, 1)}, Spoken::kHttp11), kOpenShared);
  EXPECT_EQ(put(kCall, {over_http11(1, 1), over_http11(2, 0)}, Spoken::kHttp11), use(2));
  EXPECT_EQ(put(kCall, {over_http11(1, 1), over_http11(2, 1)}, Spoken::kHttp11), kWaits);
  EXPECT_EQ(put(kCall, {over_http11(1, 1), on_its_way(2, 1)}, Spoken::kHttp11), kWaits);
  EXPECT_EQ(put(kCall, {over_http11(1, 1, true), over_http11(2, 1)}, Spoken::kHttp11), kOpenShared);
  EXPECT_EQ(put(kStream, {over_http11(1, 0), over_http11(2, 0)}, Spoken::kHttp11), kOpenSingle);
}

TEST(ConnectionPlan, OneConnectionFindsOutWhatIsSpoken) {
  EXPECT_EQ(put(kStream, {}, Spoken::kUndecided), kOpenShared);
  EXPECT_EQ(put(kStream, {on_its_way(1, 2)}, Spoken::kUndecided), use(1));
  EXPECT_EQ(put(kCall, {on_its_way(1, 3)}, Spoken::kUndecided), kWaits);
}

TEST(ConnectionPlan, WhatLeavesHttpHasItsOwnOverHttp11) {
  const Placement own{.what = What::kOpen, .single = true, .upgrades = true};
  for (const Spoken expected : {Spoken::kUndecided, Spoken::kHttp11, Spoken::kHttp2})
    EXPECT_EQ(put(ExchangeKind::kUpgrade, {over_http2(1, 0), over_http11(2, 0)}, expected), own);
}

TEST(ConnectionPlan, WhatWasLostInSilenceGoesOverAYoungerConnection) {
  EXPECT_EQ(put(kCall, {over_http2(1, 0)}, Spoken::kHttp2, Lane::kOrdinary, true), kOpenShared);
  EXPECT_EQ(put(kCall, {over_http11(1, 0)}, Spoken::kHttp11, Lane::kOrdinary, true), kOpenShared);
  EXPECT_EQ(put(kCall, {over_http2(1, 0), on_its_way(2, 1)}, Spoken::kHttp2, Lane::kOrdinary, true), use(2));
  EXPECT_EQ(put(kCall, {over_http2(1, 3), over_http2(2, 1)}, Spoken::kHttp2, Lane::kOrdinary, true), use(2))
      << "there may be no more";
}

TEST(ConnectionPlan, HeartbeatsAreSmallAndKeepANodeAlive) {
  const auto lane = [](api::Method method, std::string_view target) { return lane_of(kCall, method, target); };
  const std::string lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
  EXPECT_EQ(lane(api::Method::kPut, lease + "/n1?timeout=10s"), Lane::kHeartbeats);
  EXPECT_EQ(lane(api::Method::kPost, lease + "?timeout=10s"), Lane::kHeartbeats);
  EXPECT_EQ(lane(api::Method::kGet, lease + "?limit=500"), Lane::kOrdinary);
  EXPECT_EQ(lane(api::Method::kPatch, "/api/v1/nodes/n1/status?timeout=10s"), Lane::kHeartbeats);
  EXPECT_EQ(lane(api::Method::kGet, "/api/v1/nodes/n1?timeout=10s"), Lane::kHeartbeats);
  EXPECT_EQ(lane(api::Method::kGet, "/api/v1/nodes"), Lane::kOrdinary);
  EXPECT_EQ(lane(api::Method::kGet, "/api/v1/nodes/n1/proxy/metrics"), Lane::kOrdinary);
  EXPECT_EQ(lane(api::Method::kPatch, "/api/v1/namespaces/a/pods/b/status"), Lane::kOrdinary);
  EXPECT_EQ(lane_of(kStream, api::Method::kGet, lease + "/n1"), Lane::kOrdinary);
}

/// All combinations of the states of a connection.
std::vector<PlannedConnection> every_connection(std::uint64_t id) {
  std::vector<PlannedConnection> all;
  for (const Spoken spoken : {Spoken::kUndecided, Spoken::kHttp11, Spoken::kHttp2})
    for (const Lane lane : {Lane::kOrdinary, Lane::kHeartbeats})
      for (const bool single : {false, true})
        for (const bool closing : {false, true})
          for (std::size_t carried = 0; carried <= (spoken == Spoken::kHttp11 || single ? 1U : 3U); ++carried)
            all.push_back({id, spoken, lane, single, closing, carried, spoken == Spoken::kHttp11 ? 1U : 3U});
  return all;
}

TEST(ConnectionPlan, NoCaseBreaksABound) {
  std::size_t used = 0;
  for (const PlannedConnection& one : every_connection(1)) {
    for (const PlannedConnection& two : every_connection(2)) {
      const std::vector<PlannedConnection> both = {one, two};
      for (const Spoken expected : {Spoken::kUndecided, Spoken::kHttp11, Spoken::kHttp2}) {
        for (const ExchangeKind kind : {kCall, kStream, ExchangeKind::kUpgrade}) {
          for (const Lane lane : {Lane::kOrdinary, Lane::kHeartbeats}) {
            for (const bool anew : {false, true}) {
              const Placement placement = put(kind, both, expected, lane, anew);
              if (placement.what != What::kUse) continue;
              ++used;
              const PlannedConnection& at = placement.id == 1 ? one : two;
              ASSERT_NE(kind, ExchangeKind::kUpgrade);
              ASSERT_FALSE(at.single || at.closing);
              if (at.spoken == Spoken::kHttp11)
                ASSERT_TRUE(kind == kCall && at.carried == 0);
              else
                ASSERT_TRUE(at.lane == lane && at.carried < 3);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(used, 1000U);
}

}  // namespace
}  // namespace spillway::wire
