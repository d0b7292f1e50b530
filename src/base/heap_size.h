// The memory that a value takes on the heap, about. Thread: any (pure). Source: glibc manual, "The GNU Allocator".
#pragma once

#include <cstddef>
#include <string>

namespace spillway {

/// The bytes that the allocator takes for a block of `size` bytes: its own 8 with them, in steps of 16, at least 32.
constexpr std::size_t block_bytes(std::size_t size) {
  const std::size_t whole = (size + 8 + 15) / 16 * 16;
  return whole < 32 ? 32 : whole;
}

/// The bytes of a text outside of the string that holds it.
inline std::size_t text_bytes(const std::string& text) {
  constexpr std::size_t kInPlace = 15;
  return text.capacity() <= kInPlace ? 0 : block_bytes(text.capacity() + 1);
}

/// The bytes of an entry of a std::map or std::set: of its value, three pointers and the colour.
template <typename Value>
constexpr std::size_t tree_node_bytes() {
  return block_bytes(4 * sizeof(void*) + sizeof(Value));
}

}  // namespace spillway
