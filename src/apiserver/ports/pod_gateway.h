// The way from the API server to servers in pods. Thread: loop.
#pragma once

#include "api/exchange/exchange.h"

#include <cstdint>
#include <memory>
#include <string>

namespace spillway::apiserver {

/// The address of a server in a pod, and its protocol.
struct PodServer {
  std::string address;     // as digits, never a name: it has been checked, and what is dialled is this text
  std::uint16_t port = 0;  // above 0
  bool tls = false;

  friend bool operator==(const PodServer&, const PodServer&) = default;
};

/// Port: sends a request to a server in a pod and forwards its answer as it arrives, a failure or a redirect as well.
/// This server shows no credentials of its own there. Implemented by wire/.
class PodGateway {
 public:
  using Ticket = std::uint64_t;

  virtual ~PodGateway() = default;
  /// No answer is a 503 Status, too many that are open a 429. The header "host" of `request` is sent as it is.
  virtual Ticket open(const PodServer& to, api::Request request, std::shared_ptr<api::ResponseSink> sink) = 0;
  /// Cancels the call: its sink is not called again.
  virtual void cancel(Ticket ticket) = 0;
};

}  // namespace spillway::apiserver
