// Connections and their readiness: opens them a few at a time, so that a server's bounds on clients that have not
// authenticated do not count, and drives them. Thread: one.
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "base/unique_fd.h"
#include "wire/tls/tls.h"

#include "load/connection.h"
#include "load/options.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace spillway::load {

Instant now();

/// The difference between the time of day and an instant, as it is now.
Duration wall_behind();
WallTime wall_of(Instant at, Duration behind);

class Dialer {
 public:
  /// Errors name the file that cannot be used.
  static Result<std::unique_ptr<Dialer>> make(const Options& options);

  /// Opens `count` connections, indices from 0; `opened` returns the number of those that have been idle once.
  Outcome open(std::size_t count, ConnectionUser& user, const std::function<std::size_t()>& opened,
               std::vector<Connection*>& into);

  /// Waits until something is ready, but no longer than `wait`, and drives it.
  void turn(Duration wait);

  /// Runs until `done`; false: it took longer than `limit`.
  bool turn_until(const std::function<bool()>& done, Duration limit);

  /// The lines of a request before its body: "PUT /path", the fields every request has, the type
  /// of the body and its length; requests without a body are answered in JSON.
  std::string head(std::string_view method, std::string_view target, std::size_t body_bytes) const;

 private:
  Dialer() = default;

  Result<Connection*> dial(std::size_t index, ConnectionUser& user);

  Options options_;
  std::shared_ptr<const wire::TlsContext> tls_;
  std::string token_;
  UniqueFd epoll_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace spillway::load
