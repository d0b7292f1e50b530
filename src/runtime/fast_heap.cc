#include "runtime/fast_heap.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SPILLWAY_OWN_HEAP 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SPILLWAY_OWN_HEAP 0
#endif
#endif
#ifndef SPILLWAY_OWN_HEAP
#define SPILLWAY_OWN_HEAP 1
#endif

#if SPILLWAY_OWN_HEAP

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>

namespace spillway::runtime {
namespace {

constexpr std::size_t kStep = 16;       // as malloc aligns
constexpr std::size_t kFineMax = 1024;  // sizes up to this one differ by kStep, larger ones by kCoarseStep
constexpr std::size_t kCoarseStep = 256;
constexpr std::size_t kSmallMax = 4096;
constexpr std::size_t kFineSizes = kFineMax / kStep;
constexpr std::size_t kSizes = kFineSizes + (kSmallMax - kFineMax) / kCoarseStep + 1;
constexpr std::size_t kPage = std::size_t{64} << 10U;     // all blocks of a page have one size
constexpr std::size_t kSegment = std::size_t{16} << 20U;  // the aligned unit of requests of memory to the system
constexpr std::size_t kPages = kSegment / kPage;
constexpr std::size_t kAddressBits = 47;  // bits of an address of a process
constexpr std::size_t kSegments = (std::size_t{1} << kAddressBits) / kSegment;

/// The head of a segment, in its first page.
struct Segment {
  std::array<std::uint8_t, kPages> size_of_page;  // index of the size
};

struct FreeBlock {
  FreeBlock* next;
};

/// A thread's free blocks of one size.
struct Shelf {
  FreeBlock* free = nullptr;
  std::byte* fresh = nullptr;  // the unused rest of the last page
  std::byte* end = nullptr;
};

constinit std::atomic<bool> in_use = false;
// Marks by address; the system has not mapped untouched pages of it. The mark of a segment is written before any thread
// has a block of it.
std::array<std::uint8_t, kSegments> is_segment;
constinit std::mutex segments;  // guards the two below
constinit std::byte* next_page = nullptr;
constinit std::byte* segment_end = nullptr;
constinit thread_local std::array<Shelf, kSizes> shelves{};

std::size_t number_of_segment(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) / kSegment;
}

bool is_ours(const void* block) {
  // spares the look-up in programs that do not use this heap
  if (!in_use.load(std::memory_order_relaxed)) return false;
  const std::size_t number = number_of_segment(block);
  return number < kSegments && is_segment[number] != 0;
}

Segment& segment_of(void* block) {
  return *reinterpret_cast<Segment*>(number_of_segment(block) * kSegment);
}

std::size_t page_in_segment(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % kSegment / kPage;
}

/// Maps twice the size of a segment, and unmaps the parts beside the aligned one.
bool add_segment() {
  void* const mapped =
      mmap(nullptr, 2 * kSegment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return false;
  auto* const begin = static_cast<std::byte*>(mapped);
  const std::size_t before = (kSegment - reinterpret_cast<std::uintptr_t>(mapped) % kSegment) % kSegment;
  if (before > 0) munmap(begin, before);
  if (before < kSegment) munmap(begin + before + kSegment, kSegment - before);
  std::byte* const segment = begin + before;
  if (number_of_segment(segment) >= kSegments) return false;
  madvise(segment, kSegment, MADV_HUGEPAGE);  // fewer entries in the TLB; if refused, the heap is only slower
  is_segment[number_of_segment(segment)] = 1;
  next_page = segment + kPage;
  segment_end = segment + kSegment;
  return true;
}

bool add_page(Shelf& shelf, std::size_t number) {
  const std::scoped_lock guard(segments);
  if (next_page == segment_end && !add_segment()) return false;
  std::byte* const page = next_page;
  next_page += kPage;
  segment_of(page).size_of_page[page_in_segment(page)] = static_cast<std::uint8_t>(number);
  shelf.fresh = page;
  shelf.end = page + kPage;
  return true;
}

/// The number of a block size, from 1 on; `bytes` at most kSmallMax.
std::size_t number_of_size(std::size_t bytes) {
  if (bytes <= kFineMax) return bytes == 0 ? 1 : (bytes + kStep - 1) / kStep;
  return kFineSizes + (bytes - kFineMax + kCoarseStep - 1) / kCoarseStep;
}

std::size_t size_of(std::size_t number) {
  return number <= kFineSizes ? number * kStep : kFineMax + (number - kFineSizes) * kCoarseStep;
}

void* take(std::size_t bytes) {
  const std::size_t number = number_of_size(bytes);
  Shelf& shelf = shelves[number];
  if (FreeBlock* const block = shelf.free) {
    shelf.free = block->next;
    return block;
  }
  const std::size_t size = size_of(number);
  if (static_cast<std::size_t>(shelf.end - shelf.fresh) < size && !add_page(shelf, number)) return nullptr;
  std::byte* const block = shelf.fresh;
  shelf.fresh += size;
  return block;
}

void put(void* block, std::size_t number) {
  Shelf& shelf = shelves[number];
  shelf.free = new (block) FreeBlock{shelf.free};
}

void give_back(void* block) {
  put(block, segment_of(block).size_of_page[page_in_segment(block)]);
}

}  // namespace

bool use_fast_heap() {
  in_use.store(true, std::memory_order_relaxed);
  return true;
}

}  // namespace spillway::runtime

void* operator new(std::size_t bytes) {
  using namespace spillway::runtime;
  for (;;) {
    const bool small = bytes <= kSmallMax && in_use.load(std::memory_order_relaxed);
    if (void* const block = small ? take(bytes) : std::malloc(bytes == 0 ? 1 : bytes)) return block;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void operator delete(void* block) noexcept {
  if (spillway::runtime::is_ours(block)) {
    spillway::runtime::give_back(block);
  } else {
    std::free(block);
  }
}

/// The sized form does not have to read the size from the first page of the segment.
void operator delete(void* block, std::size_t bytes) noexcept {
  if (bytes <= spillway::runtime::kSmallMax && spillway::runtime::is_ours(block)) {
    spillway::runtime::put(block, spillway::runtime::number_of_size(bytes));
  } else {
    std::free(block);
  }
}

#else

namespace spillway::runtime {

bool use_fast_heap() {
  return false;
}

}  // namespace spillway::runtime

#endif
