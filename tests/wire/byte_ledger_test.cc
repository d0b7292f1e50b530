// Bytes that wait for clients: in all, of each client, and shared ones once.
#include "wire/server/bounds/byte_ledger.h"

#include <gtest/gtest.h>

#include <vector>

namespace spillway::wire {
namespace {

constexpr WaitingBounds kSmall{.total_bytes_max = 1000,
                               .ordinary_bytes_max = 800,
                               .client_bytes_max = 300,
                               .room_bytes = 100,
                               .connection_bytes_free = 10};

std::shared_ptr<const std::string> bytes(std::size_t size) {
  return std::make_shared<const std::string>(size, 'x');
}

class ByteLedgerTest : public ::testing::Test {
 protected:
  bool charge(const std::string& client, std::shared_ptr<const std::string> data,
              ClientRank rank = ClientRank::kOrdinary, std::size_t waiting = 0) {
    auto charge = ledger_->charge(client, rank, std::move(data), waiting);
    if (charge) held_.push_back(*std::move(charge));
    return charge.has_value();
  }

  std::shared_ptr<ByteLedger> ledger_ = std::make_shared<ByteLedger>(kSmall);
  std::vector<ByteLedger::Charge> held_;
};

TEST_F(ByteLedgerTest, BoundsAClientAndAllOfThem) {
  EXPECT_TRUE(charge("a", bytes(200)));
  EXPECT_TRUE(charge("a", bytes(100)));
  EXPECT_FALSE(charge("a", bytes(11))) << "the client has its share";
  EXPECT_TRUE(charge("b", bytes(300)));
  EXPECT_FALSE(charge("c", bytes(201))) << "the rest is for others";
  EXPECT_TRUE(charge("c", bytes(200)));
  EXPECT_FALSE(charge("d", bytes(100)));
  EXPECT_TRUE(charge("node", bytes(200), ClientRank::kVital));
  EXPECT_FALSE(charge("node", bytes(11), ClientRank::kVital));
  EXPECT_EQ(ledger_->total_bytes(), 1000U);
  EXPECT_TRUE(ledger_->pressed());
  held_.clear();
  EXPECT_EQ(ledger_->total_bytes(), 0U);
  EXPECT_FALSE(ledger_->pressed());
}

TEST_F(ByteLedgerTest, LittleIsAlwaysTaken) {
  EXPECT_TRUE(charge("node", bytes(1000), ClientRank::kVital));
  EXPECT_TRUE(charge("a", bytes(10)));
  EXPECT_FALSE(charge("a", bytes(10), ClientRank::kOrdinary, 1)) << "of one connection";
}

TEST_F(ByteLedgerTest, OneAnswerMayBeLargerThanAShare) {
  EXPECT_TRUE(charge("a", bytes(2000))) << "alone";
  held_.clear();
  EXPECT_TRUE(charge("b", bytes(100)));
  EXPECT_TRUE(charge("a", bytes(400))) << "the only one of its client";
  EXPECT_FALSE(charge("a", bytes(100)));
}

TEST_F(ByteLedgerTest, WhatIsSharedCountsOnce) {
  const auto event = bytes(250);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(charge("a", event));
    EXPECT_TRUE(charge("b", event));
  }
  EXPECT_EQ(ledger_->total_bytes(), 250U);
  EXPECT_FALSE(charge("a", bytes(100)));
  held_.resize(1);
  EXPECT_EQ(ledger_->total_bytes(), 250U);
  held_.clear();
  EXPECT_EQ(ledger_->total_bytes(), 0U);
}

TEST_F(ByteLedgerTest, SaysBeforehandWhetherThereIsRoom) {
  EXPECT_TRUE(ledger_->has_room("a", ClientRank::kOrdinary));
  EXPECT_TRUE(charge("a", bytes(201)));
  EXPECT_FALSE(ledger_->has_room("a", ClientRank::kOrdinary));
  EXPECT_TRUE(ledger_->has_room("b", ClientRank::kOrdinary));
  held_.push_back(ledger_->charge_anyway("c", bytes(600)));
  EXPECT_FALSE(ledger_->has_room("b", ClientRank::kOrdinary));
  EXPECT_TRUE(ledger_->has_room("node", ClientRank::kVital));
}

}  // namespace
}  // namespace spillway::wire
