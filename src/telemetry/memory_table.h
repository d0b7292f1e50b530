// Memory of a process by owner, as a table for people and for bench/load/memory.py. Thread: any (pure).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace spillway::telemetry {

/// The memory of one owner. The name of a row says if it is a part of another one.
struct MemoryRow {
  std::string owner;
  std::uint64_t count = 0;  // number of objects
  std::uint64_t bytes = 0;

  friend bool operator==(const MemoryRow&, const MemoryRow&) = default;
};

using MemoryRows = std::vector<MemoryRow>;

/// A line per row in the order given: owner, count, bytes. Columns are as wide as their widest cell.
std::string memory_table(std::span<const MemoryRow> rows);

}  // namespace spillway::telemetry
