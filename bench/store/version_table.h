// The peer: the widespread design of one table with a row per revision, where a list is the newest row of each name
// among all of its versions. As small as it can be: only what a list and a renewal need.
// Thread: one. Source: spec "API server contract", 22.4, first point.
#pragma once

#include "store/sqlite/database.h"

#include <string>

namespace spillway::store {

class VersionTable {
 public:
  explicit VersionTable(const std::string& path);

  void begin();
  void put(std::string_view name, std::string_view value);
  void commit();
  /// The number of entries read.
  std::size_t list(std::string_view prefix, std::string_view prefix_end);

 private:
  sqlite::Connection connection_;
  sqlite::Statement insert_, newest_, list_;
};

}  // namespace spillway::store
