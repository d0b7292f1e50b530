// Chooses the encoding that a transport requests from an API server, and decodes the answers: reads of the API use
// Kubernetes' protobuf, or JSON for servers and kinds without it; the receiver of the answer gets the document. Thread:
// any (DecodingWish), one at a time (WatchDecoder).
// Source: Kubernetes docs, "Kubernetes API Concepts", alternate representations; spec "API server contract", 5.4, 9.6.
#pragma once

#include "api/exchange/exchange.h"
#include "base/error.h"
#include "wire/transport/frame_splitter.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::wire {

/// Remembers if protobuf is still requested. After a refusal, or bytes that cannot be decoded, a server gets requests
/// for JSON.
class DecodingWish {
 public:
  explicit DecodingWish(bool protobuf) : protobuf_(protobuf) {}

  /// Makes a GET below /api/ or /apis/ that accepts JSON prefer protobuf.
  void apply(api::Request& request) const;

  /// The answer with its document, if it is protobuf; a refusal with a Status in JSON. kInternalError: it cannot be
  /// read.
  Result<api::Response> decode(api::Response response);

  /// Counts an answer of this status; malformed ones have none.
  void on_status(int status);

  void give_up() { protobuf_ = false; }

 private:
  std::atomic<bool> protobuf_;
};

/// Cuts the body of a watch into events, in the form that its head names.
class WatchDecoder {
 public:
  /// `text` of a JSON event, or `event` of a protobuf one.
  struct Frame {
    FrameSplitter::Frame text;
    api::WatchDocumentPtr event;
    std::size_t bytes = 0;
  };

  explicit WatchDecoder(std::size_t frame_bytes_max) : frame_bytes_max_(frame_bytes_max), lines_(frame_bytes_max) {}

  void set_type(std::string_view content_type);

  bool is_protobuf() const { return protobuf_; }

  /// kRequestEntityTooLarge: an event is too long; kInternalError: it cannot be read. The stream is unusable then.
  Result<std::vector<Frame>> push(std::string_view data);
  /// Decodes the bytes that are left at the end. kInternalError: an event is cut off.
  Result<std::vector<Frame>> finish();

 private:
  Result<Frame> decode(std::string_view frame) const;

  std::size_t frame_bytes_max_;
  FrameSplitter lines_;
  bool protobuf_ = false;
  std::string partial_;
};

}  // namespace spillway::wire
