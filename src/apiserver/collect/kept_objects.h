// A few objects of fixed names that the server keeps as they should be: created when they are missing, restored when a
// client changes them. Other members stay unchanged. Thread: loop. Bounds: one write in flight; a failed write is
// retried after kRetry; beyond kFreeWrites within kQuiet each write waits twice as long as the one before, kPauseMax at
// most, so that another program that keeps the same object in another state causes no storm of writes.
#pragma once

#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/write/writer.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver {

class KeptObjects : public Collector {
 public:
  static constexpr Duration kRetry = seconds(10);
  /// Pause after a create that another writer won: its event may still be on the way.
  static constexpr Duration kEventWait = milliseconds(100);
  static constexpr Duration kQuiet = minutes(2);
  static constexpr Duration kPauseMax = minutes(1);
  static constexpr int kFreeWrites = 16;

 protected:
  /// The wanted object: namespace, name, labels and the other members that are restored; lists whole.
  struct Wanted {
    const ResourceCache* cache;
    api::Json document;
    /// If not empty: `spec` has only these members, and the object passes the rules of its kind.
    std::span<const std::string_view> spec_members = {};
    /// If not null: computes the wanted object from the present one, in place of the rule above. The object passes the
    /// rules of its kind.
    api::Json (*kept)(api::Json there, const api::Json& wanted) = nullptr;
  };

  /// `what`: the purpose of the objects, for the log.
  KeptObjects(Core& core, Writer& writer, std::string_view what);

  /// The wanted objects have changed.
  void requeue() {
    is_dirty_ = true;
    run();
  }

  const ResourceCache& cache_of(std::string_view plural) const { return core_.cache.of(core_.registry.get(plural)); }

 private:
  virtual std::vector<Wanted> wanted() const = 0;
  /// True if the object may be one of wanted().
  virtual bool concerns(const ResourceCache& cache, const StoredObject& object) const = 0;

  // Collector
  void load() override { is_dirty_ = true; }

  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void act() override;

  /// The present object with the wanted members.
  static api::Json kept_form(api::Json there, const Wanted& wanted);
  /// False: the object is as wanted, or cannot be written now. True: no other write may begin for the moment.
  bool restore(const Wanted& wanted);
  void on_written(const std::string& what, const api::StatusResult<Written>& result);
  /// Counts the write; false: it waits, and act() runs again when it is due.
  bool may_write();
  void wait(Duration time);

  Core& core_;
  Writer& writer_;
  const ResourceCache& namespaces_;
  const std::string_view what_;
  bool is_dirty_ = false;
  bool is_writing_ = false;
  bool is_waiting_ = false;  // for a timer
  std::optional<Instant> written_;
  int writes_ = 0;      // writes within kQuiet
  std::string logged_;  // the failure that the log has
};

}  // namespace spillway::apiserver
