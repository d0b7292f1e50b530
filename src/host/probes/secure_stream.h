// A connection over which TLS is spoken, as its client: the port through which the prober asks pods by HTTPS. The
// certificate is not verified: the prober has the address from the node itself, and sends no secret. Thread: loop.
// Source: spec "Pod lifecycle", 9.5.
#pragma once

#include "base/unique_fd.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace spillway::host {

class SecureStream {
 public:
  /// kWaitRead, kWaitWrite: call again when the socket is ready.
  enum class Step { kDone, kWaitRead, kWaitWrite, kEnd, kFailed };

  struct Moved {
    Step step = Step::kDone;
    std::size_t bytes = 0;
  };

  virtual ~SecureStream() = default;
  /// kDone once data may flow.
  virtual Step handshake() = 0;
  virtual Moved read(std::span<char> into) = 0;
  virtual Moved write(std::string_view from) = 0;
  /// The error, after kFailed.
  virtual std::string problem() const = 0;
};

/// Makes a TLS stream over a connected non-blocking socket. Empty: TLS is not supported here.
using SecureStreams = std::function<std::unique_ptr<SecureStream>(UniqueFd socket)>;

}  // namespace spillway::host
