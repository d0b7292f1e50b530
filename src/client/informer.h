// An informer keeps an ObjectCache equal to one collection (optionally narrowed by a selector): list, watch, resume on
// close, list again on 410. Objects that do not decode are counted and skipped, never half applied.
// Thread: loop.
#pragma once

#include "client/api_client.h"

#include <string>

namespace spillway::client {

class InformerBase {
 public:
  virtual ~InformerBase() = default;

  bool synced() const { return synced_; }

 protected:
  InformerBase(ApiClient& client, std::string collection_path, std::string query);

  virtual void on_listed(const api::Json& list, Now now) = 0;
  virtual void on_put(const api::Json& object, Now now) = 0;
  virtual void on_deleted(const api::Json& object, Now now) = 0;

 private:
  friend class ApiClient;
  void list(Now now);
  void watch(Now now);
  void on_frame(const WatchFrame& frame, Now now);
  void on_end(const WatchEnded& end, Now now);
  void again(const WatchSession::Next& next, Now now);

  ApiClient& client_;
  std::string path_;
  std::string query_;  // "fieldSelector=spec.nodeName%3Dn1" or empty
  WatchSession session_;
  std::optional<CallId> watch_;
  bool synced_ = false;
};

/// `key_of` an object: namespace/name.
ObjectKey key_of(const api::ObjectMeta& meta);

template <typename T>
class Informer final : public InformerBase {
 public:
  Informer(ApiClient& client, std::string collection_path, std::string query = {})
      : InformerBase(client, std::move(collection_path), std::move(query)) {}

  ObjectCache<T>& cache() { return cache_; }

  const ObjectCache<T>& cache() const { return cache_; }

 private:
  void on_listed(const api::Json& list, Now now) override;
  void on_put(const api::Json& object, Now now) override;
  void on_deleted(const api::Json& object, Now now) override;

  ObjectCache<T> cache_;
};

// Defined in informer.cc for Pod, Node, Lease, Namespace, ReplicaSet, DaemonSet, PriorityClass.

}  // namespace spillway::client
