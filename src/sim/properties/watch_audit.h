// Watches as servers write them to their clients, held against what was committed: property watches-whole. Looked at
// are watches of nodes, pods, ReplicaSets and DaemonSets of all namespaces that begin at a revision, whole or narrowed
// to one node. Thread: one.
#pragma once

#include "base/time.h"
#include "sim/properties/verdicts.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::sim {

class WatchAudit {
 public:
  /// One watch from its request to its end.
  class Stream {
   public:
    Stream(WatchAudit& audit, std::string prefix, std::string node, std::uint64_t from)
        : audit_(&audit), prefix_(std::move(prefix)), node_(std::move(node)), told_(from) {}

    /// An event, or a bookmark: up to this revision all is told.
    void on_event(std::string_view type, std::uint64_t revision, Now now);

   private:
    WatchAudit* audit_;
    std::string prefix_;
    std::string node_;  // of one node alone; empty: all
    std::uint64_t told_;
  };

  explicit WatchAudit(Verdicts& verdicts) : verdicts_(verdicts) {}

  /// Every committed write, before anybody hears of it. `node`: that the object is, or is bound to.
  void on_change(std::string_view key, std::uint64_t revision, std::string_view node);

  /// nullopt: it is not looked at.
  std::optional<Stream> begin(const std::string& target);

 private:
  struct Change {
    std::uint64_t revision = 0;
    std::string node;
  };

  Verdicts& verdicts_;
  std::map<std::string, std::vector<Change>, std::less<>> changes_;  // by prefix
};

}  // namespace spillway::sim
