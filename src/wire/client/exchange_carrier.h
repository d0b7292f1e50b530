// Port: one open connection of an HttpClient, which carries exchanges and reports the result of each. Implemented over
// HTTP/1.1 (one at a time) and over HTTP/2 (beside each other). Thread: the client's loop.
#pragma once

#include "api/exchange/exchange.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::wire {

class ExchangeCarrier {
 public:
  /// One request to send. The body of `head` is not used.
  struct Question {
    api::Request head;                        // the request as it is sent
    std::shared_ptr<const std::string> body;  // null: none
    std::string authority;                    // the server, in the form of the Host header
    bool upgrades = false;                    // requests an upgrade
  };

  struct Failure {
    enum class Trace {
      kUntouched,  // the server has not processed the request, or it was not sent
      kSilent,     // no byte of an answer had arrived
      kCutOff,     // a part of the answer had arrived
    };

    Trace trace = Trace::kSilent;
    std::string problem;
  };

  /// Receives events of exchanges and connections, by the numbers that it gave them.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void on_head(std::uint64_t exchange, const api::Response& head) = 0;
    virtual void on_data(std::uint64_t exchange, std::string data) = 0;
    /// This number of bytes given to write() was sent.
    virtual void on_written(std::uint64_t exchange, std::size_t bytes) = 0;
    /// The last of an exchange: its answer is whole, or why not.
    virtual void on_end(std::uint64_t connection, std::uint64_t exchange, std::optional<Failure> failure) = 0;
    /// The carrier takes more or fewer exchanges, or has closed itself.
    virtual void on_change(std::uint64_t connection) = 0;
  };

  virtual ~ExchangeCarrier() = default;

  /// May report from one of the next turns on; over HTTP/1.1 only called when no exchange is open.
  virtual void carry(std::uint64_t exchange, Question question) = 0;
  /// Ends the reports about the exchange. Over HTTP/1.1 that closes the connection.
  virtual void cancel(std::uint64_t exchange) = 0;
  /// Stops or resumes on_data() of an exchange, and thereby the server.
  virtual void pause(std::uint64_t exchange, bool paused) = 0;
  /// Sends bytes after an answer 101.
  virtual void write(std::uint64_t exchange, std::string_view bytes) = 0;
  /// Closes the connection; no event is reported afterwards.
  virtual void close() = 0;

  /// The number of simultaneous exchanges that the connection allows; 0: no new ones.
  virtual std::size_t exchanges_max() const = 0;
  virtual bool is_closed() const = 0;
};

}  // namespace spillway::wire
