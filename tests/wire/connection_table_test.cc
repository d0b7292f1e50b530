// The places of a server's connections, and the connection that is closed for a new one.
#include "wire/server/bounds/connection_table.h"

#include <gtest/gtest.h>

namespace spillway::wire {
namespace {

using Decision = ConnectionTable::Decision;

const Decision kTaken{.admitted = true, .displaced = std::nullopt};
const Decision kRefused{.admitted = false, .displaced = std::nullopt};

Decision instead_of(ConnectionTable::Id id) {
  return {.admitted = true, .displaced = id};
}

constexpr ConnectionBounds kSmall{
    .connections_max = 8, .unproven_max = 4, .unproven_per_address_max = 2, .ordinary_max = 3};

TEST(ConnectionTable, TheOldestOfAnAddressGoesForItsNewest) {
  ConnectionTable table(kSmall);
  EXPECT_EQ(table.admit(1, "a"), kTaken);
  EXPECT_EQ(table.admit(2, "a"), kTaken);
  EXPECT_EQ(table.admit(3, "b"), kTaken);
  EXPECT_EQ(table.admit(4, "a"), instead_of(1));
  EXPECT_EQ(table.admit(5, "c"), kTaken);
  EXPECT_EQ(table.admit(6, "d"), instead_of(2)) << "the oldest of all, when all together have their share";
  table.remove(3);
  EXPECT_EQ(table.admit(7, "d"), kTaken);
}

TEST(ConnectionTable, WhoHasShownWhoHeIsIsNotDisplacedByThoseWhoHaveNot) {
  ConnectionTable table(kSmall);
  EXPECT_EQ(table.admit(1, "a"), kTaken);
  EXPECT_EQ(table.prove(1, ClientRank::kOrdinary), kTaken);
  table.set_idle(1, true);
  for (ConnectionTable::Id id = 2; id < 100; ++id) EXPECT_NE(table.admit(id, "a"), instead_of(1));
  EXPECT_EQ(table.size(), 3U);
}

TEST(ConnectionTable, APlaceThatIsGivenBackIsFreeAgain) {
  ConnectionTable table(kSmall);
  for (ConnectionTable::Id id = 1; id <= 100; ++id) {
    EXPECT_EQ(table.admit(id, "a"), kTaken);
    EXPECT_EQ(table.prove(id, ClientRank::kOrdinary), kTaken) << id;
    table.remove(id);
  }
  EXPECT_EQ(table.size(), 0U);
}

TEST(ConnectionTable, OrdinaryClientsLeaveTheReserveAlone) {
  ConnectionTable table(kSmall);
  for (ConnectionTable::Id id = 1; id <= 3; ++id) {
    EXPECT_EQ(table.admit(id, "a"), kTaken);
    EXPECT_EQ(table.prove(id, ClientRank::kOrdinary), kTaken);
  }
  EXPECT_EQ(table.admit(4, "a"), kTaken);
  EXPECT_EQ(table.prove(4, ClientRank::kOrdinary), kRefused) << "all of them are at work";
  table.set_idle(2, true);
  table.set_idle(1, true);
  EXPECT_EQ(table.admit(5, "a"), kTaken);
  EXPECT_EQ(table.prove(5, ClientRank::kOrdinary), instead_of(2)) << "the one that is idle for longest";
  table.set_idle(1, false);
  EXPECT_EQ(table.admit(6, "a"), kTaken);
  EXPECT_EQ(table.prove(6, ClientRank::kOrdinary), kRefused);
  for (ConnectionTable::Id id = 10; id < 15; ++id) {
    EXPECT_EQ(table.admit(id, "a"), kTaken);
    EXPECT_EQ(table.prove(id, ClientRank::kVital), kTaken) << "nodes and controllers get in";
  }
  EXPECT_EQ(table.size(), 8U);
}

TEST(ConnectionTable, AFullTableClosesAnIdleConnection) {
  ConnectionTable table(kSmall);
  for (ConnectionTable::Id id = 1; id <= 8; ++id) {
    EXPECT_EQ(table.admit(id, "a"), kTaken);
    EXPECT_EQ(table.prove(id, id <= 2 ? ClientRank::kOrdinary : ClientRank::kVital), kTaken);
  }
  EXPECT_EQ(table.admit(9, "b"), kRefused);
  table.set_idle(5, true);
  table.set_idle(2, true);
  EXPECT_EQ(table.admit(10, "b"), instead_of(2));
  EXPECT_EQ(table.admit(11, "c"), instead_of(5));
  EXPECT_EQ(table.admit(12, "d"), instead_of(10)) << "then the oldest of those that have shown nothing";
  table.remove(2);  // displaced before: harmless
  EXPECT_EQ(table.prove(2, ClientRank::kVital), kTaken);
  EXPECT_EQ(table.size(), 8U);
}

}  // namespace
}  // namespace spillway::wire
