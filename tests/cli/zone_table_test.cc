// The output of `spillway zones`.
#include "cli/text/zone_table.h"

#include <gtest/gtest.h>

namespace spillway::cli {
namespace {

using api::Json;

Json zone(std::string_view name, std::string_view state, int ready, int nodes, double rate) {
  return Json::object({{"zone", name},
                       {"state", state},
                       {"readyNodes", std::int64_t{ready}},
                       {"nodes", std::int64_t{nodes}},
                       {"nodesPerSecond", rate},
                       {"waitingNodes", std::int64_t{0}}});
}

Json list(Json::Array items) {
  return Json::object({{"kind", "ZoneList"}, {"items", Json(std::move(items))}});
}

TEST(ZoneTable, RowsLineUp) {
  Json waits = zone("r1::b", "Normal", 7, 9, 0.1);
  waits["waitingNodes"] = std::int64_t{2};
  waits["nextNode"] = "n4";
  waits["nextActInSeconds"] = 7.5;
  EXPECT_EQ(zone_table(list({zone("", "Normal", 3, 3, 0.01), waits}), Paint::kNone),
            "ZONE    STATE    READY   RATE     QUEUE   NEXT         BRAKE\n"
            "-       Normal   3/3     0.01/s   0       -            -\n"
            "r1::b   Normal   7/9     0.1/s    2       n4 in 7.5s   -\n");
}

TEST(ZoneTable, WideSaysWhenTheNextTokenIsThere) {
  Json waits = zone("::a", "Normal", 7, 9, 0.1);
  waits["nextTokenInSeconds"] = 7.5;
  Json full = zone("::b", "Normal", 3, 3, 0.1);
  full["nextTokenInSeconds"] = 0.0;
  EXPECT_EQ(zone_table(list({waits, full, zone("::c", "FullDisruption", 0, 3, 0)}), Paint::kNone, Width::kWide),
            "ZONE   STATE            READY   RATE      TOKEN     QUEUE   NEXT   BRAKE\n"
            "::a    Normal           7/9     0.1/s     in 7.5s   0       -      -\n"
            "::b    Normal           3/3     0.1/s     there     0       -      -\n"
            "::c    FullDisruption   0/3     stopped   none      0       -      -\n");
}

TEST(ZoneTable, ABrakeIsNamedAndColoured) {
  Json held = zone("::a", "PartialDisruption", 1, 4, 0);
  held["nextNode"] = "n1";
  held["brake"] =
      Json::object({{"code", "zone-halted"},
                    {"facts", Json(Json::Array{Json::object({{"name", "state"}, {"value", "PartialDisruption"}})})}});
  const std::string text = zone_table(list({held}), Paint::kTerminal);
  EXPECT_NE(text.find("\x1b[33m::a"), std::string::npos) << text;
  EXPECT_NE(text.find("stopped"), std::string::npos) << text;
  EXPECT_NE(text.find("n1, not now"), std::string::npos) << text;
  EXPECT_NE(text.find("evicts nothing while it is PartialDisruption"), std::string::npos) << text;
  EXPECT_NE(zone_table(list({zone("::a", "FullDisruption", 0, 4, 0)}), Paint::kTerminal).find("\x1b[31m"),
            std::string::npos);
  EXPECT_EQ(zone_table(list({held}), Paint::kNone).find('\x1b'), std::string::npos);
}

TEST(ZoneTable, WhatHoldsEverythingIsSaidBelow) {
  Json document = list({zone("::a", "FullDisruption", 0, 4, 0)});
  document["masterDisruption"] = true;
  document["brake"] = Json::object({{"code", "manual-hold"}, {"facts", Json(Json::Array{})}});
  const std::string text = zone_table(document, Paint::kNone);
  EXPECT_NE(text.find("\nNothing is marked, tainted or deleted: everything is held by hand\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\nEvery zone is fully disrupted"), std::string::npos) << text;
}

TEST(ZoneTable, NodesThatWereNotCheckedYet) {
  Json document = list({});
  document["newNodes"] = std::int64_t{2};
  document["lookEverySeconds"] = 5.0;
  EXPECT_EQ(zone_table(document, Paint::kNone),
            "2 nodes are new: the controllers have not synced them yet; they sync every 5s.\n");
  document = list({zone("::a", "Normal", 3, 3, 0.1)});
  document["newNodes"] = std::int64_t{1};
  document["lookEverySeconds"] = 5.0;
  EXPECT_NE(zone_table(document, Paint::kNone)
                .find("\n\nOne node is new: the controllers have not synced it yet; they sync every 5s.\n"),
            std::string::npos);
}

TEST(ZoneTable, NoZones) {
  EXPECT_EQ(zone_table(list({}), Paint::kNone), "No zones: there are no nodes.\n");
}

}  // namespace
}  // namespace spillway::cli
