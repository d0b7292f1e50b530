// A connection that is upgraded after the answer to a request: from then on bytes are copied unchanged in both
// directions. Thread: loop.
#pragma once

#include "api/exchange/paced_sink.h"

#include <cstddef>
#include <memory>
#include <string>

namespace spillway::api {

/// Receives the bytes of a client whose connection has left HTTP.
class UpgradedInput {
 public:
  virtual ~UpgradedInput() = default;
  /// Bytes of the client: not more than the receiver has reported as used (UpgradingSink::on_input_used) and a
  /// connection may hold.
  virtual void on_input(std::string bytes) = 0;
  /// The client has gone. Called once, also if the receiver has ended the answer.
  virtual void on_input_end() = 0;
};

/// A sink whose connection can be upgraded: either one on_response, or one on_upgrade followed by write() with the
/// bytes for the client and one on_end, which closes the connection.
class UpgradingSink : public PacedSink {
 public:
  /// `head`: status 101 with the headers that belong to it.
  virtual void on_upgrade(Response head, std::shared_ptr<UpgradedInput> input) = 0;
  /// So many bytes of the input have been used: the client may send as many more.
  virtual void on_input_used(std::size_t bytes) = 0;
};

/// Null: the connection cannot be upgraded.
inline std::shared_ptr<UpgradingSink> upgrading(const std::shared_ptr<ResponseSink>& sink) {
  return std::dynamic_pointer_cast<UpgradingSink>(sink);
}

}  // namespace spillway::api
