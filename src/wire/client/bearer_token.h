// The bearer token of a client: a fixed text, or a file whose text changes from time to time, as a pod's service
// account token does. Such a file is read again once a minute, and at once after a server has refused the token.
// Thread: one. Source: Kubernetes docs, "Configure Service Accounts for Pods", projected tokens: a client must read the
// file again, once in five minutes at least; client-go does so once a minute.
#pragma once

#include "base/error.h"
#include "base/time.h"

#include <optional>
#include <string>

namespace spillway::wire {

class BearerToken {
 public:
  BearerToken() = default;  // none

  /// `token` counts as long as `file` contains no other; each may be empty. kInvalid: a line break in it.
  static Result<BearerToken> make(const std::string& token, std::string file);

  /// The value of the header "authorization"; empty: none. If the file cannot be read now, or holds no token, the value
  /// is not changed.
  const std::string& header(Instant now);

  /// The server refused the token.
  void on_refused() { read_at_.reset(); }

 private:
  std::string file_;  // empty: a fixed text
  std::string header_;
  std::optional<Instant> read_at_;
};

/// The token in a file, without the line break that files end in. kInvalid: there is none, or more than one line; else
/// as of read_file().
Result<std::string> read_bearer_token(const std::string& file);

}  // namespace spillway::wire
