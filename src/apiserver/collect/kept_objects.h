// A few objects of fixed names that the server keeps as they should be: made when they are missing, put right when
// somebody changes them. Members that nobody wished for stay as they are. Thread: loop. Bounds: one write in flight;
// what fails is tried again after kRetry.
#pragma once

#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/write/writer.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver {

class KeptObjects : public Collector {
 public:
  static constexpr Duration kRetry = seconds(10);

 protected:
  /// As it should be: namespace, name, labels and what else is put right; lists whole.
  struct Wanted {
    const ResourceCache* cache;
    api::Json document;
  };

  /// `what`: the objects, in the log.
  KeptObjects(Core& core, Writer& writer, std::string_view what) : core_(core), writer_(writer), what_(what) {}

  /// What is wished for has changed.
  void look_again() {
    is_dirty_ = true;
    run();
  }

  const ResourceCache& cache_of(std::string_view plural) const { return core_.cache.of(core_.registry.get(plural)); }

 private:
  virtual std::vector<Wanted> wanted() const = 0;
  /// Whether a change of that object may be one of wanted().
  virtual bool concerns(const ResourceCache& cache, const StoredObject& object) const = 0;

  // Collector
  void load() override { is_dirty_ = true; }

  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void act() override;

  /// False: it is as it should be, or is being deleted.
  bool mend(const Wanted& wanted);
  void settle(const std::string& what, const api::StatusResult<Written>& result);

  Core& core_;
  Writer& writer_;
  const std::string_view what_;
  bool is_dirty_ = false;
  bool is_writing_ = false;
  std::string told_;  // the failure that the log has
};

}  // namespace spillway::apiserver
