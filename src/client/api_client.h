// The part of an engine that talks to an API server: calls with continuations, informers (list, then watch, for ever),
// and timers. An engine owns one ApiClient, forwards the four ApiEngine calls to it and acts in the continuations,
// which only queue further commands. Thread: loop. Bounds: 1,024 calls in flight (more wait in order); informers retry
// with jittered back-off up to 30 s.
#pragma once

#include "api/codec.h"
#include "api/exchange.h"
#include "api/json.h"
#include "base/rng.h"
#include "client/engine.h"
#include "client/object_cache.h"
#include "client/watch_session.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::client {

enum class PatchType { kMerge, kStrategicMerge, kJson };

/// "/api/v1/namespaces/shop/pods/cart-7/status": the path of one object or, with an empty name, of its collection.
std::string object_path(std::string_view api_version, std::string_view plural, std::string_view ns,
                        std::string_view name = {}, std::string_view subresource = {});

class InformerBase;

class ApiClient {
 public:
  /// The outcome of a call: the object (or Status document) of a 2xx answer; else the error of the Status body, or
  /// kServiceUnavailable when no answer came.
  using Done = std::function<void(Result<api::Json> outcome, Now now)>;
  using TimerId = std::uint64_t;

  ApiClient(std::string user_agent, Rng rng);

  // Calls. `done` may be empty.
  void get(std::string path, Done done);
  void create(std::string collection_path, const api::Json& object, Done done);
  void update(std::string path, const api::Json& object, Done done);
  void patch(std::string path, PatchType type, const api::Json& patch, Done done);
  /// `options`: a DeleteOptions document, or null for none.
  void remove(std::string path, const api::Json& options, Done done);

  /// Runs `action` at or after `due`. Timers due at the same instant run in the order they were set.
  TimerId at(Instant due, std::function<void(Now)> action);
  void cancel(TimerId timer);

  /// Informers register themselves; they start with start().
  void add(InformerBase& informer);
  /// True once every informer has listed at least once since start().
  bool synced() const;

  // The ApiEngine calls of the owner.
  void start(Now now);
  void on_api_event(const ApiEvent& event, Now now);
  void on_wakeup(Now now);
  std::optional<Instant> next_wakeup() const;
  std::vector<ApiCommand> take_api_commands();

 private:
  friend class InformerBase;
  CallId send(api::Request request, std::function<void(const CallDone&, Now)> done);

  struct Pending;
  std::string user_agent_;
  Rng rng_;
  CallId last_id_ = 0;
  TimerId last_timer_ = 0;
  std::map<CallId, std::function<void(const CallDone&, Now)>> in_flight_;
  std::vector<std::pair<api::Request, CallId>> waiting_;
  std::map<CallId, InformerBase*> watches_;
  std::vector<InformerBase*> informers_;
  std::map<std::pair<Instant, TimerId>, std::function<void(Now)>> timers_;
  std::map<TimerId, Instant> timer_due_;
  std::vector<ApiCommand> commands_;
};

}  // namespace spillway::client
