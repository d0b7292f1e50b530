// Records of all nodes between passes, by name, and two orders over them: the nodes by their last sign of life, so that
// the next one to fall silent is found without a search, and the agenda, the nodes that the next pass has to sync.
// Signs of life arrive in the order of time, so the order is a list in which a node moves to the end; a heap of
// deadlines would cost a logarithm for each of them.
// Thread: any (a value). Invariants: an id names one entry until it is erased; a node is in the order of silence if it
// is known and has posted a Ready condition. Cost: find, touch of a node on the agenda, and a sign of life are
// constant; at most 200 bytes per quiet node with a name of up to 40 bytes. Source: spec "Node lifecycle", S4, S20.
#pragma once

#include "base/time.h"
#include "policy/lifecycle/node_health.h"

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::lifecycle {

class NodeRecords {
 public:
  using Id = std::uint32_t;
  static constexpr std::size_t kBlock = 256;
  static constexpr Id kNone = std::numeric_limits<Id>::max();

  /// The class of a node in the counts of its zone.
  enum class Counted : std::uint8_t { kNot, kReady, kUnready };

  struct Entry {
    std::string name;
    std::uint64_t uid_hash = 0;
    const std::string* zone = nullptr;  // key; null: in none yet
    bool known = false;                 // false: a deleted node, whose record upstream keeps
    bool excluded = false;              // the node does not count for its zone
    bool tainted = false;               // carried a NoExecute taint of ours in its last sync
    bool quiet = false;                 // was Ready and not silent when it was last assessed
    bool touched = false;               // the node may have changed since its last sync
    bool counting = false;              // the node is being synced in this pass and not counted yet
    bool mark_pods_again = false;
    bool kept_due = false;  // on the agenda of every pass, whatever its state
    Counted counted = Counted::kNot;

   private:
    friend class NodeRecords;

    enum : std::uint8_t { kRecord = 1, kReadiness = 2, kHeartbeat = 4, kTurned = 8, kRenewed = 16, kSeen = 32 };

    std::uint8_t present = 0;  // bits of the following members that are set
    Readiness ready = Readiness::kUnknown;
    Id before = kNone;
    Id after = kNone;
    bool linked = false;
    Instant probe{};
    Instant transition{};
    WallTime heartbeat{};
    WallTime turned{};
    WallTime lease_renewed{};
    WallTime lease_seen{};
  };

  using Agenda = std::map<std::string_view, Id>;  // in name order

  NodeRecords();
  NodeRecords(const NodeRecords&) = delete;
  NodeRecords& operator=(const NodeRecords&) = delete;

  std::size_t size() const { return size_; }

  Id find(std::string_view name) const;  // kNone: unknown
  Id find_or_add(std::string_view name);
  void erase(Id id);

  Entry& operator[](Id id) { return (*blocks_[id / kBlock])[id % kBlock]; }

  const Entry& operator[](Id id) const { return (*blocks_[id / kBlock])[id % kBlock]; }

  std::optional<HealthRecord> record(Id id) const;
  /// Moves the node in the order of silence if it shows a new sign of life.
  void set_record(Id id, const HealthRecord& record);
  /// Removes a deleted node from the order of silence; its record stays.
  void retire(Id id);
  /// Marks every known node as seen at `now`.
  void restart_all(Instant now);

  /// Puts the node on the agenda of the next pass.
  void touch(Id id);
  /// Puts nodes that have been silent for longer than `grace` on the agenda.
  void touch_silent(Instant now, Duration grace);

  Agenda& agenda() { return agenda_; }

  /// The time at which the first node will have been silent for `grace`.
  std::optional<Instant> first_deadline(Instant now, Duration grace) const;

  struct Heartbeats {
    std::int64_t nodes = 0;  // known nodes whose Ready condition is not Unknown
    std::int64_t late = 0;   // the part of `nodes` that has been silent for longer than `late`
  };

  Heartbeats heartbeats(Instant now, Duration late) const;

 private:
  std::size_t slot_of(std::string_view name) const;
  void grow_index();
  void link(Id id);
  void unlink(Id id);

  static bool has_heartbeat(const Entry& entry) { return entry.linked && entry.ready != Readiness::kUnknown; }

  using Block = std::array<Entry, kBlock>;  // entries never move

  std::vector<std::unique_ptr<Block>> blocks_;
  Id used_ = 0;  // ids given out so far
  std::vector<Id> free_;
  std::vector<Id> index_;  // open addressing by the hash of the name; its order decides nothing
  std::size_t size_ = 0;
  Id first_ = kNone;  // silent for longest
  Id last_ = kNone;
  std::int64_t with_heartbeat_ = 0;
  Agenda agenda_;
};

}  // namespace spillway::lifecycle
