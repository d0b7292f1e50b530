#include "telemetry/memory_table.h"

#include <gtest/gtest.h>

namespace spillway::telemetry {
namespace {

TEST(MemoryTable, ColumnsAreAsWideAsTheirWidestCell) {
  EXPECT_EQ(memory_table(MemoryRows{{"texts", 12, 1'234'567}, {"indexes of all kinds", 3, 8}}),
            "OWNER                 COUNT    BYTES\n"
            "texts                    12  1234567\n"
            "indexes of all kinds      3        8\n");
  EXPECT_EQ(memory_table({}), "OWNER  COUNT  BYTES\n");
}

}  // namespace
}  // namespace spillway::telemetry
