// The addresses of all API servers of one store: each server writes its own again and again, as a key that expires when
// the server stops, and reads those of all. Thread: loop. Bounds: one request at a time, kAddressesMax addresses.
// Source: Kubernetes docs, kube-apiserver --endpoint-reconciler-type=lease.
#pragma once

#include "base/alive.h"
#include "base/time.h"
#include "store/store.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::store {

class ServerAddresses {
 public:
  static constexpr Duration kBeatEvery = seconds(5);
  static constexpr Duration kGoneAfter = seconds(16);  // at least; the store may keep it up to twice as long
  static constexpr std::size_t kAddressesMax = 64;
  static constexpr std::string_view kPrefix = "/registry/spillway.dev/addresses/";

  using After = std::function<void(Duration, std::move_only_function<void()>)>;
  /// Sorted by the names of their servers. Called after each read, changed or not.
  using Seen = std::function<void(const std::vector<std::string>& addresses)>;

  /// `store` expires keys. `name`: letters, digits, "-", ".", ":". `address`: empty if this server announces none.
  ServerAddresses(Store& store, std::string_view name, std::string address, After after, Seen seen);
  ServerAddresses(const ServerAddresses&) = delete;
  ServerAddresses& operator=(const ServerAddresses&) = delete;

  void start() { write(); }

  /// Deletes its own address; `done` runs when the store has answered, and no listener is called any more.
  void release(std::function<void()> done);

 private:
  void write();
  void read();
  void later();

  Store& store_;
  const std::string key_;
  const std::string address_;
  const After after_;
  const Seen seen_;
  Alive alive_;
  bool over_ = false;
};

}  // namespace spillway::store
