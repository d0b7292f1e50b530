// An informer keeps an ObjectCache equal to one collection (optionally narrowed by a selector): list in pages, watch,
// resume on close, list again on 410. Objects that do not decode are counted and skipped, never half applied; an object
// whose resourceVersion is known already causes no notification. At most one list is in flight per informer.
// Thread: loop.
#pragma once

#include "api/object/meta.h"
#include "client/api_client.h"
#include "client/object_cache.h"
#include "client/watch_session.h"

#include <any>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::client {

/// Says if a part can work without a collection. An optional collection that may not be read, or that the server does
/// not serve, is not waited for; its cache stays empty, or unchanged, until it can be read.
enum class Need { kRequired, kOptional };

class InformerBase {
 public:
  virtual ~InformerBase() = default;
  InformerBase(const InformerBase&) = delete;
  InformerBase& operator=(const InformerBase&) = delete;

  /// True if it has listed completely at least once, or its collection is optional and unreadable.
  bool synced() const { return synced_ || (need_ == Need::kOptional && refusal_.has_value()); }

  const std::string& path() const { return path_; }

  Need need() const { return need_; }

  /// The reason why a list was refused (kForbidden, kNotFound), until one is complete; nullopt: none was refused since.
  const std::optional<Error>& refusal() const { return refusal_; }

  /// The time of the server's last message on this collection (a page, an event, a bookmark); nullopt: never.
  std::optional<Instant> last_received() const { return last_received_; }

  /// Objects that did not decode, since the start.
  std::uint64_t undecodable() const { return undecodable_; }

  /// Lists completed, since the start.
  std::uint64_t lists() const { return lists_; }

  /// Lists begun, since the start: the number of the last one.
  std::uint64_t lists_begun() const { return lists_begun_; }

  /// The number of the last completed list; 0: none. Objects that were written before that list began are in the cache,
  /// or deleted again.
  std::uint64_t last_whole_list() const { return last_whole_list_; }

 protected:
  InformerBase(ApiClient& client, std::string collection_path, std::string query, Need need);

  virtual void on_list_started() = 0;
  /// `decoded`: the slot in which the first informer that decodes the object leaves the value for the others; null: no
  /// other informer gets the object.
  virtual void on_put(const api::Json& object, std::any* decoded, Now now) = 0;
  virtual void on_deleted(const api::Json& object, Now now) = 0;
  /// The list is complete: objects without a put() since on_list_started() were deleted.
  virtual void on_list_completed(Now now) = 0;

  void count_undecodable() { ++undecodable_; }

 private:
  friend class ApiClient;
  void list(Now now);
  void request_page(const std::string& continue_token);
  void on_page(const CallDone& answer, Now now);
  void watch(Now now);
  void on_frame(const WatchFrame& frame, Now now);
  void on_event(std::string_view type, const api::Json& object, std::any* decoded, Now now);
  void on_end(const WatchEnded& end, Now now);
  void abort_watch(Error error, Now now);
  void end_silence(Now now);
  void again(const WatchSession::Next& next, Now now);
  void arm_silence_timer(Instant due);

  ApiClient& client_;
  std::string path_;
  std::string query_;  // "fieldSelector=spec.nodeName%3Dn1" or empty
  Need need_;
  std::optional<Error> refusal_;
  WatchSession session_;
  std::optional<CallId> watch_;
  std::optional<Instant> last_received_;
  Instant watch_opened_{};
  bool silence_timer_armed_ = false;
  bool listing_ = false;
  bool synced_ = false;
  std::uint64_t pages_ = 0;
  std::uint64_t lists_ = 0;
  std::uint64_t lists_begun_ = 0;
  std::uint64_t last_whole_list_ = 0;
  std::uint64_t undecodable_ = 0;
};

/// `key_of` an object: namespace/name.
ObjectKey key_of(const api::ObjectMeta& meta);

template <typename T>
class Informer final : public InformerBase {
 public:
  Informer(ApiClient& client, std::string collection_path, std::string query = {}, Need need = Need::kRequired)
      : InformerBase(client, std::move(collection_path), std::move(query), need) {}

  ObjectCache<T>& cache() { return cache_; }

  const ObjectCache<T>& cache() const { return cache_; }

 private:
  void on_list_started() override;
  void on_put(const api::Json& object, std::any* decoded, Now now) override;
  void on_deleted(const api::Json& object, Now now) override;
  void on_list_completed(Now now) override;

  ObjectCache<T> cache_;
  std::set<ObjectKey, std::less<>> listed_;
  bool collecting_ = false;  // between the start and the end of a list
};

// Defined in informer.cc for Pod, Node, Lease, Namespace, ReplicaSet, DaemonSet, PriorityClass.

}  // namespace spillway::client
