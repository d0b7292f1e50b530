// The heap of simulations: blocks do not overlap, keep what is written, and may be freed by another thread.
#include "runtime/fast_heap.h"

#include "base/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace spillway::runtime {
namespace {

struct Block {
  unsigned char* bytes = nullptr;
  std::size_t size = 0;
  unsigned char mark = 0;
};

Block take(std::size_t size, unsigned char mark) {
  Block block{static_cast<unsigned char*>(operator new(size)), size, mark};
  std::memset(block.bytes, mark, size);
  return block;
}

bool is_whole(const Block& block) {
  return std::all_of(block.bytes, block.bytes + block.size, [&](unsigned char byte) { return byte == block.mark; });
}

/// Blocks of the general heap, or of the other one, as the program continues.
TEST(FastHeap, BlocksKeepWhatIsWritten) {
  std::vector<Block> held;
  for (std::size_t size = 0; size < 64; ++size) held.push_back(take(size, 1));
  use_fast_heap();
  Rng rng(7);
  for (int i = 0; i < 200'000; ++i) {
    if (held.size() > 4'000 || (!held.empty() && rng.below(3) == 0)) {
      const std::size_t at = rng.below(held.size());
      ASSERT_TRUE(is_whole(held[at])) << held[at].size;
      operator delete(held[at].bytes, held[at].size);
      held[at] = held.back();
      held.pop_back();
    } else {
      held.push_back(take(rng.below(rng.below(50) == 0 ? 5'000 : 1'100), static_cast<unsigned char>(rng.below(256))));
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(held.back().bytes) % alignof(std::max_align_t), 0U);
    }
  }
  for (const Block& block : held) {
    ASSERT_TRUE(is_whole(block)) << block.size;
    operator delete(block.bytes);
  }
}

TEST(FastHeap, AFreedBlockIsUsedAgain) {
  if (!use_fast_heap()) return;  // a sanitizer has its own
  for (const auto& [freed, wanted] : {std::pair(200, 193), {1'024, 1'009}, {1'025, 1'280}, {4'096, 3'841}}) {
    const auto before = reinterpret_cast<std::uintptr_t>(operator new(static_cast<std::size_t>(freed)));
    operator delete(reinterpret_cast<void*>(before));
    void* const after = operator new(static_cast<std::size_t>(wanted));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(after), before) << wanted;
    operator delete(after);
  }
}

TEST(FastHeap, ThreadsFreeWhatOthersTook) {
  use_fast_heap();
  std::vector<std::vector<Block>> taken(4);
  const auto on_each = [&taken](auto work) {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < taken.size(); ++i) threads.emplace_back([&work, i] { work(i); });
    for (std::thread& thread : threads) thread.join();
  };
  for (int round = 0; round < 3; ++round) {
    on_each([&](std::size_t i) {
      for (std::size_t size = 1; size < 1'000; ++size) taken[i].push_back(take(size, static_cast<unsigned char>(i)));
    });
    on_each([&](std::size_t i) {
      for (const Block& block : std::exchange(taken[(i + 1) % taken.size()], {})) {
        EXPECT_TRUE(is_whole(block));
        operator delete(block.bytes);
      }
    });
  }
}

}  // namespace
}  // namespace spillway::runtime
