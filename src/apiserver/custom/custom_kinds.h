// The custom kinds that this server serves: those of established definitions, from its own watch, so that every server
// of a store follows by itself. The objects of a new kind are read from the store before the kind enters the table of
// resources. This class writes nothing. Thread: loop. Bounds: kDefinitionsMax kinds; a cache of each name that was
// served in the last kKept, at most kNamesMax of them; requests that wait for a kind, kWaitingMax; of what was replaced
// in the last ten minutes, 128 MiB of kinds. Source: docs/adr/0049.
#pragma once

#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/read/watch_hub.h"
#include "apiserver/resource/custom_kind.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::apiserver {

class CustomKinds final : public Collector {
 public:
  CustomKinds(Core& core, ResourceRegistry& registry, WatchHub& hub);

  /// The objects of the definition of that name; nullptr: it is not served, or its objects are being read.
  const ResourceCache* served(std::string_view name) const;

  /// True while the objects of the kind are being read.
  bool is_reading(std::string_view name) const;

  bool is_reading() const { return !reading_.empty(); }

  /// Calls `act` once no kind is being read; at once if none is. A request waits kWaitMax for it.
  void when_read(std::function<void()> act);

  /// False: kWaitingMax definitions wait already.
  bool has_room() const { return waiting_.size() < kWaitingMax; }

  /// A replaced kind is kept this long: every write that began with it has ended by then.
  static constexpr Duration kKept = minutes(10);

  /// Kinds that were replaced or removed less than kKept ago.
  std::size_t kept() const { return kept_.size(); }

  /// Names with a cache: served ones, and those removed less than kKept ago.
  std::size_t names() const { return names_.size(); }

  static constexpr std::size_t kWaitingMax = 1'000;
  static constexpr std::size_t kNamesMax = 4'096;

 private:
  struct Served {
    CustomKindPtr kind;
    ResourceCache* cache = nullptr;
    bool is_ready = false;  // all objects of the kind have been read
    std::size_t bytes = 0;  // size of the definition
  };

  struct Kept {
    Instant since;
    CustomKindPtr kind;
    std::size_t bytes = 0;
  };

  // Collector
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void act() override;

  void sync(const std::string& name);
  bool has_room_to_keep() const;
  void begin(const std::string& name, CustomKindPtr kind, std::size_t bytes);
  void read_objects(const std::string& name, std::uint64_t turn);
  void on_objects(const std::string& name, std::uint64_t turn, const Result<store::RangeResult>& state);
  void read_objects_later(const std::string& name, std::uint64_t turn);
  bool is_reading(const std::string& name, std::uint64_t turn) const;
  void finish_reading(const std::string& name);
  void retire(const std::string& name);
  void keep(const Served& served);
  void publish();
  void arm_release();
  void give_back_cache(const CustomKind& kind);

  Core& core_;
  ResourceRegistry& registry_;
  WatchHub& hub_;
  const ResourceCache& definitions_;
  std::map<std::string, Served, std::less<>> kinds_;              // by the name of the definition
  std::deque<Kept> kept_;                                         // oldest first
  std::map<std::string, std::size_t, std::less<>> kept_of_name_;  // entries of kept_, by name of the definition
  std::size_t kept_bytes_ = 0;
  std::set<std::string> names_;  // the kinds that have a cache
  std::set<std::string> dirty_;
  std::map<std::string, std::uint64_t, std::less<>> reading_;  // by name: which turn of reading is under way
  std::vector<std::function<void()>> waiting_;
  std::vector<const ResourceCache*> changed_;  // caches whose watches end with the next table
  std::uint64_t turn_ = 0;
  bool is_stale_ = false;  // the table of resources
  std::optional<TimerQueue::Id> release_;
};

}  // namespace spillway::apiserver
