// One connected socket as a stream of bytes that never blocks, in the clear or (tls.h) encrypted. A caller that waited
// for readiness retries the same call. Thread: one at a time.
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "wire/net/socket.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::wire {

/// The contents of a peer's certificate. Present only if the peer showed one.
struct PeerCertificate {
  std::string common_name;
  std::vector<std::string> organizations;
  std::optional<std::string> problem;  // the reason why the certificate is not trusted; nullopt: verified
  std::optional<WallTime> end = {};    // end of the certificate's validity; connections may outlive it

  friend bool operator==(const PeerCertificate&, const PeerCertificate&) = default;
};

class ByteStream {
 public:
  enum class Step {
    kDone,       // `bytes` were moved
    kWaitRead,   // nothing moved; try again when the socket is readable
    kWaitWrite,  // … writable
    kEnd,        // the peer has closed its side
    kFailed,     // the connection is unusable; `problem` is the error
  };

  struct Moved {
    Step step = Step::kDone;
    std::size_t bytes = 0;
  };

  virtual ~ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  /// kDone once data may flow.
  virtual Step handshake() = 0;
  virtual Moved read(std::span<char> into) = 0;
  virtual Moved write(std::string_view from) = 0;
  /// Notifies the peer that no more data follow; best effort.
  virtual void end_writing() = 0;
  /// Bytes that read() can return although the socket is not readable.
  virtual bool has_buffered() const = 0;

  virtual std::optional<PeerCertificate> peer_certificate() const { return std::nullopt; }

  /// The protocol that the handshake chose ("h2"); empty: none was negotiated.
  virtual std::string_view protocol() const { return {}; }

  const Socket& socket() const { return socket_; }

  /// The reason for kFailed, in words.
  const std::string& problem() const { return problem_; }

 protected:
  explicit ByteStream(Socket socket) : socket_(std::move(socket)) {}

  Step fail(std::string problem) {
    problem_ = std::move(problem);
    return Step::kFailed;
  }

 private:
  Socket socket_;
  std::string problem_;
};

std::unique_ptr<ByteStream> make_plain_stream(Socket socket);

}  // namespace spillway::wire
