// The turns of updates: those of one object run one after the other, so that they need not race. Updates of different
// objects do not wait for each other. Thread: loop. Bounds: as many entries as updates and renewals are under way.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>

namespace spillway::apiserver {

class ObjectWrite;

class UpdateTurns {
 public:
  using WritePtr = std::shared_ptr<ObjectWrite>;

  /// True: the object has no other update under way, and this one begins now. False: begin_next() begins it.
  bool enter(const std::string& store_key, WritePtr update);
  /// Ends the turn of the update that is running. The next one begins with begin_next().
  void release(const std::string& store_key);

  /// Takes the turn of an object for a renewal, which is no ObjectWrite. Not while has_entries().
  void begin_renewal(const std::string& store_key);
  void end_renewal(const std::string& store_key);

  /// True while an update or a renewal of the object runs, or waits.
  bool has_entries(const std::string& store_key) const { return updates_.contains(store_key); }

  /// Begins the updates whose turn has come: by a loop, not by recursion.
  void begin_next();

 private:
  using Queues = std::map<std::string, std::list<WritePtr>>;

  void pass_turn(Queues::iterator queue);

  Queues updates_;  // by store key; the first one of a list is running. Empty: a renewal is running
  std::deque<WritePtr> next_;
  bool beginning_ = false;
};

}  // namespace spillway::apiserver
