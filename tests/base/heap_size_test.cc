#include "base/heap_size.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>

namespace spillway {
namespace {

TEST(HeapSize, ABlockIsAsTheAllocatorRoundsIt) {
  for (const std::size_t size : {1U, 23U, 24U, 25U, 40U, 41U, 1'000U, 5'000U}) {
    void* block = std::malloc(size);  // NOLINT(cppcoreguidelines-no-malloc)
    EXPECT_EQ(block_bytes(size), malloc_usable_size(block) + 8) << size;
    std::free(block);  // NOLINT(cppcoreguidelines-no-malloc)
  }
}

TEST(HeapSize, AShortTextTakesNoBlock) {
  EXPECT_EQ(text_bytes("short"), 0U);
  EXPECT_EQ(text_bytes(std::string(100, 'x')), block_bytes(101));
}

}  // namespace
}  // namespace spillway
