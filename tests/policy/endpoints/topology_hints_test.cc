// Hints for zones: the nearest, by capacity, and when there are none.
#include "policy/endpoints/topology_hints.h"

#include "api/json/json.h"
#include "base/rng.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace spillway::endpoints {
namespace {

using HintedSlicePtr = std::shared_ptr<const api::EndpointSlice>;

api::Node node_in(const std::string& zone, std::int64_t milli, const char* ready = "True") {
  api::Node node;
  if (!zone.empty()) node.metadata.labels["topology.kubernetes.io/zone"] = zone;
  if (milli > 0) node.status.allocatable["cpu"] = api::Quantity::of_milli(milli);
  node.status.conditions.push_back({.type = "Ready", .status = ready});
  return node;
}

ZoneShares shares_of(const std::vector<api::Node>& nodes) {
  ZoneCapacity capacity;
  for (const api::Node& node : nodes) capacity.add(node);
  return capacity.shares();
}

TEST(ZoneCapacityOfNodes, IsTheirPartOfTheCpu) {
  EXPECT_EQ(shares_of({node_in("a", 1000), node_in("b", 2000), node_in("a", 1000)}),
            (ZoneShares{{"a", 0.5}, {"b", 0.5}}));
  EXPECT_EQ(shares_of({node_in("a", 3000), node_in("b", 1000), node_in("b", 9000, "Unknown")}),
            (ZoneShares{{"a", 0.75}, {"b", 0.25}}));
  api::Node control = node_in("", 0);
  control.metadata.labels["node-role.kubernetes.io/control-plane"] = "";
  EXPECT_EQ(shares_of({node_in("a", 1000), node_in("b", 1000), control}).size(), 2U);
  EXPECT_TRUE(shares_of({node_in("a", 1000), node_in("a", 1000)}).empty()) << "one zone";
  EXPECT_TRUE(shares_of({node_in("a", 1000), node_in("b", 1000), node_in("", 1000)}).empty());
  EXPECT_TRUE(shares_of({node_in("a", 1000), node_in("b", 1000), node_in("c", 0)}).empty());
  EXPECT_TRUE(shares_of({}).empty());
}

TEST(TopologyHints, AreAskedForInFourWays) {
  api::Service service;
  EXPECT_EQ(hint_mode(service), HintMode::kNone);
  service.traffic_distribution = "PreferSameNode";
  EXPECT_EQ(hint_mode(service), HintMode::kSameNode);
  service.traffic_distribution = "PreferSameZone";
  EXPECT_EQ(hint_mode(service), HintMode::kSameZone);
  service.traffic_distribution = "PreferClose";
  EXPECT_EQ(hint_mode(service), HintMode::kSameZone);
  service.metadata.annotations["service.kubernetes.io/topology-mode"] = "Auto";
  EXPECT_EQ(hint_mode(service), HintMode::kByCapacity);
  service.metadata.annotations["service.kubernetes.io/topology-aware-hints"] = "Disabled";
  EXPECT_EQ(hint_mode(service), HintMode::kSameZone) << "the older annotation goes first";
  service.metadata.annotations["service.kubernetes.io/topology-aware-hints"] = "auto";
  EXPECT_EQ(hint_mode(service), HintMode::kByCapacity);
}

/// One endpoint per letter, in the zone of that name: small letters are ready, capitals are not, "-" has no zone.
api::EndpointSlice slice_of(const std::string& zones) {
  api::EndpointSlice slice;
  for (const char letter : zones) {
    api::SliceEndpoint& endpoint = slice.endpoints.emplace_back();
    endpoint.addresses = {fmt::format("10.0.0.{}", slice.endpoints.size())};
    endpoint.ready = letter == '-' || (letter >= 'a' && letter <= 'z');
    if (letter != '-') endpoint.zone = std::string(1, static_cast<char>(std::tolower(letter)));
  }
  return slice;
}

/// The hints in order; "." for none.
std::string hints_of(const api::EndpointSlice& slice) {
  std::string all;
  for (const api::SliceEndpoint& endpoint : slice.endpoints) {
    const api::Json* zones = endpoint.hints.find("forZones");
    all += zones == nullptr ? "." : std::string(zones->if_array()->front().string_at({"name"}));
  }
  return all;
}

struct Slices {
  std::vector<api::EndpointSlice> created;
  std::vector<api::EndpointSlice> updated;
  std::vector<HintedSlicePtr> unchanged;

  HintedSlices all() { return {created, updated, unchanged}; }
};

TEST(TopologyHints, NameTheZoneOfTheEndpoint) {
  Slices slices;
  slices.created = {slice_of("abA-")};
  slices.unchanged = {std::make_shared<const api::EndpointSlice>(slice_of("c")),
                      std::make_shared<const api::EndpointSlice>(slice_of("C-"))};
  hint_at_own_zone(slices.all());
  EXPECT_EQ(hints_of(slices.created[0]), "ab..");
  ASSERT_EQ(slices.updated.size(), 1U) << "the other one is right as it is";
  EXPECT_EQ(hints_of(slices.updated[0]), "c");
  Slices again;
  again.unchanged = {std::make_shared<const api::EndpointSlice>(slices.updated[0]),
                     std::make_shared<const api::EndpointSlice>(slices.created[0])};
  hint_at_own_zone(again.all());
  EXPECT_TRUE(again.updated.empty());
  remove_hints(again.all());
  ASSERT_EQ(again.updated.size(), 2U);
  EXPECT_EQ(hints_of(again.updated[1]), "....");
  EXPECT_TRUE(again.unchanged.empty());
}

TEST(TopologyHints, OfTheSameNodeNameItAndItsZone) {
  Slices slices;
  slices.created = {slice_of("aA-")};
  for (api::SliceEndpoint& endpoint : slices.created[0].endpoints) endpoint.node_name = "n1";
  hint_at_own_node(slices.all());
  const auto hints = [&](std::size_t i) { return api::to_text(slices.created[0].endpoints[i].hints); };
  EXPECT_EQ(hints(0), R"({"forNodes":[{"name":"n1"}],"forZones":[{"name":"a"}]})");
  EXPECT_EQ(hints(1), "null") << "not ready";
  EXPECT_EQ(hints(2), R"({"forNodes":[{"name":"n1"}]})") << "a node without a zone";
}

struct CapacityRow {
  const char* name;
  const char* zones;  // zones of the endpoints
  ZoneShares shares;
  const char* hints;
  const char* refused;  // the beginning of why
};

const ZoneShares kHalves{{"a", 0.5}, {"b", 0.5}};
const ZoneShares kThirds{{"a", 1.0 / 3}, {"b", 1.0 / 3}, {"c", 1.0 / 3}};

TEST(TopologyHints, ShareEndpointsOutByCapacity) {
  const std::vector<CapacityRow> rows{
      {"as they are", "aabb", kHalves, "aabb", ""},
      {"one moves", "aaab", kHalves, "baab", ""},
      {"all but one in one zone", "aaaaab", kHalves, "bbaaab", ""},
      {"half an endpoint too many stays", "aaaabbb", kHalves, "aaaabbb", ""},
      {"every zone gets one", "aaa", kThirds, "bca", ""},
      {"those that are not ready count for nothing", "aabbA", kHalves, "aabb.", ""},
      {"endpoints of a zone without nodes stay with it", "zzzz", kHalves, "zzzz", ""},
      {"fewer endpoints than zones", "aa", kThirds, "..", "Insufficient number of endpoints (2 endpoints, 3 zones)"},
      {"more needed than there are",
       "aabb",
       {{"a", 0.34}, {"b", 0.33}, {"c", 0.33}},
       "....",
       "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold (4 endpoints, "
       "3 zones)"},
      {"an endpoint without a zone", "aab-", kHalves, "....", "One or more endpoints do not have a zone specified"},
      {"nodes say too little", "aabb", {}, "....", "Insufficient Node information"},
  };
  for (const CapacityRow& row : rows) {
    SCOPED_TRACE(row.name);
    Slices slices;
    slices.created = {slice_of(row.zones)};
    const HintsGiven given = hint_by_capacity(slices.all(), row.shares);
    EXPECT_EQ(hints_of(slices.created[0]), row.hints);
    EXPECT_TRUE(given.refused.starts_with(row.refused)) << given.refused;
    EXPECT_EQ(given.refused.empty(), std::string(row.refused).empty());
    std::int64_t all = 0;
    for (const auto& [zone, count] : given.by_zone) all += count;
    const std::string hints = row.hints;
    EXPECT_EQ(all, static_cast<std::int64_t>(hints.size()) - std::ranges::count(hints, '.'));
  }
}

/// A slice whose hints are good enough is not written for the sake of another.
TEST(TopologyHints, KeepSlicesThatCanStay) {
  Slices first;
  first.created = {slice_of("aabb")};
  hint_by_capacity(first.all(), kHalves);
  Slices next;
  next.unchanged = {std::make_shared<const api::EndpointSlice>(first.created[0])};
  next.created = {slice_of("a")};
  HintsGiven given = hint_by_capacity(next.all(), {{"a", 0.6}, {"b", 0.4}});
  EXPECT_TRUE(next.updated.empty());
  EXPECT_EQ(given.by_zone, (EndpointsByZone{{"a", 3}, {"b", 2}}));
  // Hints for a zone that needs none are replaced, as are missing ones.
  Slices other;
  other.unchanged = {std::make_shared<const api::EndpointSlice>(next.created[0]),
                     std::make_shared<const api::EndpointSlice>(slice_of("cbbcb"))};
  hint_by_capacity(other.all(), {{"b", 0.5}, {"c", 0.5}});
  ASSERT_EQ(other.updated.size(), 1U);
  EXPECT_EQ(hints_of(other.updated[0]), "cbbcb");
  EXPECT_EQ(other.unchanged.size(), 1U) << "an endpoint of a zone without nodes stays with its zone";
}

/// Every endpoint has the hint of that letter, wherever it is.
HintedSlicePtr hinted(const std::string& zones, const std::string& hints) {
  api::EndpointSlice slice = slice_of(zones);
  for (std::size_t i = 0; i < hints.size(); ++i) {
    slice.endpoints[i].hints = *api::parse_json(fmt::format(R"({{"forZones":[{{"name":"{}"}}]}})", hints[i]));
  }
  return std::make_shared<const api::EndpointSlice>(std::move(slice));
}

/// With four endpoints each half may have two, and no more.
TEST(TopologyHints, NoZoneKeepsMoreThanItsMost) {
  Slices kept;
  kept.unchanged = {hinted("aabb", "bbaa")};
  hint_by_capacity(kept.all(), kHalves);
  EXPECT_TRUE(kept.updated.empty()) << "two each, if not the nearest";
  Slices one;
  one.unchanged = {hinted("aabb", "aaab")};
  hint_by_capacity(one.all(), kHalves);
  ASSERT_EQ(one.updated.size(), 1U);
  EXPECT_EQ(hints_of(one.updated[0]), "aabb");
  Slices several;
  several.unchanged = {hinted("aa", "aa"), hinted("aa", "aa")};
  const HintsGiven given = hint_by_capacity(several.all(), kHalves);
  ASSERT_EQ(several.updated.size(), 1U) << "what slices before it have given counts";
  EXPECT_EQ(hints_of(several.updated[0]), "bb");
  EXPECT_EQ(given.by_zone, (EndpointsByZone{{"a", 2}, {"b", 2}}));
}

TEST(ZoneCapacityOfNodes, ChangesWithWhatItIsMadeOf) {
  const api::Node before = node_in("a", 1000);
  EXPECT_FALSE(changes_shares(before, before));
  api::Node renewed = before;
  renewed.metadata.resource_version = "2";
  renewed.metadata.annotations["a"] = "b";
  renewed.status.conditions.push_back({.type = "MemoryPressure", .status = "True"});
  EXPECT_FALSE(changes_shares(before, renewed)) << "heartbeats change no share";
  EXPECT_FALSE(changes_shares(node_in("a", 1000, "False"), node_in("a", 1000, "Unknown")));
  EXPECT_TRUE(changes_shares(before, node_in("a", 1000, "False")));
  EXPECT_TRUE(changes_shares(node_in("a", 1000, "Unknown"), before));
  EXPECT_TRUE(changes_shares(before, node_in("b", 1000)));
  EXPECT_TRUE(changes_shares(before, node_in("", 1000)));
  EXPECT_TRUE(changes_shares(before, node_in("a", 999)));
}

TEST(TopologyHints, AZoneWithTooFewEndpointsIsOverloaded) {
  EXPECT_FALSE(is_overloaded({}, {}));
  EXPECT_TRUE(is_overloaded({{"a", 1}}, {}));
  EXPECT_FALSE(is_overloaded({{"a", 2}, {"b", 2}}, kHalves));
  EXPECT_FALSE(is_overloaded({{"a", 5}, {"b", 7}}, kHalves)) << "a fifth more each, and no more";
  EXPECT_TRUE(is_overloaded({{"a", 4}, {"b", 8}}, kHalves));
  EXPECT_TRUE(is_overloaded({{"a", 4}, {"c", 4}}, kHalves));
}

/// With any endpoints: either none has hints, or all that are ready have, and a second pass changes nothing.
TEST(TopologyHints, NeedOneSync) {
  Rng rng(11);
  int hinted = 0;
  for (int round = 0; round < 3000; ++round) {
    ZoneShares shares;
    double all = 0;
    const std::size_t zones = 2 + rng.below(3);
    for (std::size_t i = 0; i < zones; ++i)
      all += shares[std::string(1, static_cast<char>('a' + i))] = 1.0 + static_cast<double>(rng.below(4));
    for (auto& [zone, share] : shares) share /= all;
    Slices slices;
    for (std::vector<api::EndpointSlice>* list : {&slices.created, &slices.updated}) {
      std::string endpoints;
      for (std::size_t i = rng.below(9); i > 0; --i)
        endpoints += static_cast<char>((rng.below(5) == 0 ? 'A' : 'a') + rng.below(zones));
      list->push_back(slice_of(endpoints));
    }
    const HintsGiven given = hint_by_capacity(slices.all(), shares);
    Slices next;
    for (const auto* list : {&slices.created, &slices.updated}) {
      for (const api::EndpointSlice& slice : *list) {
        next.unchanged.push_back(std::make_shared<const api::EndpointSlice>(slice));
        for (const api::SliceEndpoint& endpoint : slice.endpoints) {
          ASSERT_EQ(endpoint.hints.is_null(), !given.refused.empty() || !endpoint.ready.value_or(false));
        }
      }
    }
    hinted += given.refused.empty() ? 1 : 0;
    const HintsGiven again = hint_by_capacity(next.all(), shares);
    ASSERT_EQ(again.by_zone, given.by_zone);
    ASSERT_TRUE(next.updated.empty());
  }
  EXPECT_GT(hinted, 500);
  EXPECT_LT(hinted, 3000);
}

}  // namespace
}  // namespace spillway::endpoints
