#include "apiserver/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace spillway::bench {
namespace {

std::atomic<std::uint64_t> count{0};

}  // namespace

std::uint64_t allocations() {
  return count.load(std::memory_order_relaxed);
}

}  // namespace spillway::bench

// NOLINTBEGIN(cppcoreguidelines-no-malloc,cppcoreguidelines-owning-memory): what stands below operator new
void* operator new(std::size_t size) {
  spillway::bench::count.fetch_add(1, std::memory_order_relaxed);
  void* memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  return memory;
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

// NOLINTEND(cppcoreguidelines-no-malloc,cppcoreguidelines-owning-memory)
