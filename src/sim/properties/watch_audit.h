// Checks watches, as servers write them to their clients, against the committed changes: property watches-whole. It
// checks watches of nodes, pods, ReplicaSets and DaemonSets of all namespaces that begin at a revision, whole or
// narrowed to one node. Thread: one.
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
  /// One watch, from its request to its end.
  class Stream {
   public:
    /// An event, or a bookmark: every change up to this revision was delivered.
    void on_event(std::string_view type, std::uint64_t revision, Now now);

   private:
    friend class WatchAudit;
    using Revisions = std::vector<std::uint64_t>;

    Stream(Verdicts& verdicts, const Revisions& due, std::string what, std::uint64_t from)
        : verdicts_(&verdicts), due_(&due), what_(std::move(what)), delivered_(from) {}

    Verdicts* verdicts_;
    const Revisions* due_;  // revisions of the changes that it has to deliver, ascending
    std::string what_;      // prefix, and the node if it is of one alone
    std::uint64_t delivered_;
  };

  explicit WatchAudit(Verdicts& verdicts) : verdicts_(verdicts) {}

  /// Takes every committed write, before any watch delivers it. `node`: the node that the object is, or is bound to.
  void on_change(std::string_view key, std::uint64_t revision, std::string_view node);

  /// nullopt: watches of this target are not checked.
  std::optional<Stream> begin(const std::string& target);

 private:
  /// Revisions of changes, ascending.
  struct Changes {
    Stream::Revisions all;
    std::map<std::string, Stream::Revisions, std::less<>> by_node;  // revisions of bound pods, by node
  };

  Verdicts& verdicts_;
  std::map<std::string, Changes, std::less<>> changes_;  // by prefix
};

}  // namespace spillway::sim
