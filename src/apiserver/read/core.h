// The state shared by the parts of the server: the table of resources, the store and its cache, timers, random numbers,
// the time of the event that is being handled. Thread: loop.
#pragma once

#include "apiserver/read/compilations.h"
#include "apiserver/read/stored_form.h"
#include "apiserver/read/watch_cache.h"
#include "apiserver/resource/held_names.h"
#include "apiserver/resource/kind_hooks.h"
#include "apiserver/resource/resource_registry.h"
#include "apiserver/resource/sliced_calls.h"
#include "apiserver/resource/timer_queue.h"
#include "base/rng.h"
#include "base/time.h"
#include "store/store.h"
#include "telemetry/log.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace spillway::apiserver {

class ObjectConverter;

struct Core {
  const ResourceRegistry& registry;
  store::Store& store;  // the main store; the store of an object is that of its resource: cache.of(resource).origin()
  WatchCache& cache;
  TimerQueue& timers;
  telemetry::Log log;
  Rng rng;
  AdmissionRules admission{};
  StorageOptions storage{};  // for a server that serves with a media type
  Now now{};
  std::function<Now()> clock{};  // empty: time is an argument of each event

  /// Converts objects of kinds with a conversion webhook. Not null once the server is made.
  ObjectConverter* converter = nullptr;

  /// Reads the clock in a callback that has no time as an argument.
  void catch_up() {
    if (!clock) return;
    now = clock();
    cache.set_time(now.mono);
  }

  std::shared_ptr<HeldNames> held = std::make_shared<HeldNames>();
  std::shared_ptr<Compilations> compilations = std::make_shared<Compilations>(timers, now);
  SlicedCalls* calls = nullptr;  // null: whatever clients make long runs in one piece

  /// Runs `work` in slices, then calls `then`, perhaps from inside.
  void in_slices(Fiber::Work work, SlicedCalls::Then then) const {
    if (calls != nullptr) return calls->run(std::move(work), std::move(then));
    work();
    then();
  }
};

/// A random (version 4) UUID.
std::string new_uid(Rng& rng);
/// The five characters that generateName appends.
std::string name_suffix(Rng& rng);
/// A name that begins with as much of generateName as fits.
std::string generated_name(const std::string& prefix, Rng& rng);

/// The cluster as hooks see it, read from the cache.
class CachedCluster final : public Cluster {
 public:
  explicit CachedCluster(Core& core) : core_(core) {}

  std::optional<api::Json> find(std::string_view plural, std::string_view ns, std::string_view name) const override;
  std::optional<std::string> label(std::string_view plural, std::string_view ns, std::string_view name,
                                   std::string_view key) const override;
  void visit(std::string_view plural, std::string_view ns,
             const std::function<bool(const api::Json&)>& visit) const override;
  bool is_held(std::string_view plural, std::string_view name) const override;
  bool is_reserved(std::string_view plural, std::string_view name, std::string_view but_for) const override;

 private:
  /// null: there is no such object.
  ObjectPtr object(std::string_view plural, std::string_view ns, std::string_view name) const;

  Core& core_;
};

}  // namespace spillway::apiserver
