// A connection until data may flow, and its protocol is known. Thread: the connection's loop.
#pragma once

#include "base/time.h"
#include "runtime/loop.h"
#include "wire/server/client_connection.h"

#include <cstdint>
#include <memory>
#include <string>

namespace spillway::wire {

class ConnectionHandshake final : public ClientConnection, public std::enable_shared_from_this<ConnectionHandshake> {
 public:
  /// `address`: where the client is.
  ConnectionHandshake(std::uint64_t id, ConnectionOwner& owner, std::unique_ptr<ByteStream> stream,
                      std::string address);
  ConnectionHandshake(const ConnectionHandshake&) = delete;
  ConnectionHandshake& operator=(const ConnectionHandshake&) = delete;

  const std::string& client() const override { return address_; }

  void start() override;

  void wind_down() override { close(); }

  void close() override;

 private:
  void on_ready();
  void unwatch();

  std::uint64_t id_;
  ConnectionOwner& owner_;
  std::unique_ptr<ByteStream> stream_;  // null once it was closed or passed on
  std::string address_;
  short interest_ = 0;
  runtime::Loop::TimerId timer_ = 0;
};

}  // namespace spillway::wire
