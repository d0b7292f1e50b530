// The part of an engine that talks to an API server: calls with continuations, informers (list, then watch, for ever),
// and timers. An engine owns one ApiClient, forwards the four ApiEngine calls to it and acts in the continuations,
// which only queue further commands. Thread: loop. Bounds: 1,024 calls in flight, 65,536 reads and as many writes
// waiting in order; a call that is not answered in time ends with kTimeout; informers retry with jittered back-off up
// to 30 s.
//
// Writes may be limited to so many per second. Reads are not: decisions wait for them, and a read that waits for a
// thousand writes would be answered too late to hold one back. So reads and writes keep their order among themselves
// only.
#pragma once

#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "base/rng.h"
#include "base/token_bucket.h"
#include "client/engine.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::client {

/// kApply: server-side apply; the path has a query with the field manager.
enum class PatchType { kMerge, kStrategicMerge, kJson, kApply };

/// "/api/v1/namespaces/shop/pods/cart-7/status": the path of one object or, with an empty name, of its collection.
std::string object_path(std::string_view api_version, std::string_view plural, std::string_view ns,
                        std::string_view name = {}, std::string_view subresource = {});

/// The error for an answer with this HTTP status and a Status body; `body` need not be JSON.
Error error_of_answer(int http_status, std::string_view body);

class InformerBase;

class ApiClient {
 public:
  /// The outcome of a call: the object (or Status document) of a 2xx answer; else the error of the Status body,
  /// kServiceUnavailable when no answer came, kTimeout when none came in time (the server may still have acted), or
  /// kTooManyRequests when too many calls wait already.
  using Done = std::function<void(Result<api::Json> outcome, Now now)>;
  using TimerId = std::uint64_t;

  /// A token bucket, full at the start.
  struct Rate {
    float per_second = 20;
    int burst = 30;
  };

  struct Limits {
    Duration call_timeout = seconds(10);
    /// A watch is expected to carry an event or a bookmark at least this often; else it is opened again. Bookmarks
    /// arrive about once a minute.
    Duration watch_silence = seconds(90);
    std::size_t in_flight_max = 1024;
    std::size_t waiting_max = 65536;  // reads, and as many writes
    std::int64_t list_page_objects = 500;
    /// The number of times that a call is repeated after 429 or 5xx with Retry-After, after the wait that the server
    /// requests, a minute at most.
    int retries_max = 0;
    /// The limit on writes; nullopt: writes are not limited.
    std::optional<Rate> write_rate = std::nullopt;
    /// Ids of calls are above it: several clients of one engine need ranges of their own.
    CallId ids_above = 0;
  };

  ApiClient(std::string user_agent, Rng rng, Limits limits);
  ApiClient(std::string user_agent, Rng rng);
  ApiClient(const ApiClient&) = delete;
  ApiClient& operator=(const ApiClient&) = delete;

  // Calls. `done` may be empty.
  void get(std::string path, Done done);
  void create(std::string collection_path, api::Json object, Done done);
  void update(std::string path, api::Json object, Done done);
  void patch(std::string path, PatchType type, api::Json patch, Done done);
  /// `options`: a DeleteOptions document, or null for none.
  void remove(std::string path, api::Json options, Done done);

  /// Runs `action` at or after `due`. Timers due at the same instant run in the order they were set.
  TimerId at(Instant due, std::function<void(Now)> action);
  void cancel(TimerId timer);

  /// Informers register themselves; they start with start().
  void add(InformerBase& informer);
  /// True once every informer has listed at least once since start().
  bool synced() const;

  const std::vector<InformerBase*>& informers() const { return informers_; }

  /// Calls `action` in the step in which synced() becomes true (at once if it is). Actions run in the order of their
  /// registration.
  void when_synced(std::function<void(Now)> action);

  std::size_t in_flight() const { return in_flight_.size(); }

  std::size_t waiting() const { return reads_waiting_.size() + writes_waiting_.size(); }

  // The ApiEngine calls of the owner.
  void start(Now now);
  void on_api_event(const ApiEvent& event, Now now);
  void on_wakeup(Now now);
  std::optional<Instant> next_wakeup() const;
  std::vector<ApiCommand> take_api_commands();

 private:
  friend class InformerBase;

  struct Call {
    std::function<void(const CallDone&, Now)> done;
    std::optional<Instant> deadline;  // nullopt until the time of sending is known
  };

  struct Waiting {
    CallId id = 0;
    api::Request request;
    std::function<void(const CallDone&, Now)> done;
    Instant since;
  };

  CallId send(api::Request request, std::function<void(const CallDone&, Now)> done);
  /// Sends queued calls, as far as the bounds permit.
  void pump();
  void transmit(Waiting call, std::optional<Duration> rate_limited_for);
  /// `document` null: no body.
  void call(api::Method method, std::string target, std::string_view content_type, api::Json document, Done done);
  void attempt(api::Request request, int tries, Done done);
  CallId open_watch(std::string target, InformerBase& informer);
  void close_watch(CallId id);
  void enter(Now now);
  void exit(Now now);
  void expire(Now now);

  std::string user_agent_;
  Rng rng_;
  Limits limits_;
  Now now_{};
  bool started_ = false;
  bool inside_ = false;  // between enter and leave: now_ is exact
  CallId last_id_ = 0;
  TimerId last_timer_ = 0;
  std::map<CallId, Call> in_flight_;
  std::set<std::pair<Instant, CallId>> deadlines_;
  std::vector<CallId> undated_;  // sent while now_ was not exact; dated at the next event
  std::deque<Waiting> reads_waiting_;
  std::deque<Waiting> writes_waiting_;
  std::optional<TokenBucket> write_bucket_;
  std::map<CallId, InformerBase*> watches_;
  std::vector<InformerBase*> informers_;
  std::vector<std::function<void(Now)>> on_synced_;
  std::map<std::pair<Instant, TimerId>, std::function<void(Now)>> timers_;
  std::map<TimerId, Instant> timer_due_;
  std::vector<ApiCommand> commands_;
};

}  // namespace spillway::client
