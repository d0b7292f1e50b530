// Requests that each user has open at servers elsewhere (agents, pods), up to a bound: one user cannot take all the
// places that the server has for such requests. Thread: loop. Bounds: one entry for each user with an open request.
#pragma once

#include "api/exchange/status.h"

#include <cstddef>
#include <map>
#include <memory>
#include <string>

namespace spillway::apiserver {

class OpenRequests {
 public:
  explicit OpenRequests(std::size_t of_user_max) : of_user_max_(of_user_max) {}

  /// Takes a place, which is released with the last copy of the pointer; null: the user has as many as allowed. Service
  /// accounts of a namespace count as one user: a user who may act as one of them may act as all.
  std::shared_ptr<void> take(const std::string& user);

 private:
  using Counts = std::map<std::string, std::size_t>;

  std::size_t of_user_max_;
  std::shared_ptr<Counts> open_ = std::make_shared<Counts>();  // by user; no entry is 0
};

/// The answer to a user without a place at the agents of nodes.
api::Status too_many_open_to_nodes();

}  // namespace spillway::apiserver
