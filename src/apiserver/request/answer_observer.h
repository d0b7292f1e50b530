// Port: observes one request up to its answer. An Exchange owns its observer and destroys it when the request is
// finished. An observer destroyed without on_answer() or on_end() belongs to a request without an answer. Thread: loop.
#pragma once

#include "api/json/json.h"

#include <cstddef>
#include <string_view>

namespace spillway::apiserver {

class Exchange;

class AnswerObserver {
 public:
  struct Answer {
    int code = 0;
    const api::Json* document = nullptr;  // the body as JSON, where that exists already
    std::string_view body = {};
    std::string_view content_type = {};
    bool composed = false;   // the body is JSON that this server has written, in one line
    bool in_pieces = false;  // the body was sent in pieces and is not available, or is longer than body_bytes_wanted()
  };

  virtual ~AnswerObserver() = default;

  /// The largest body that the observer wants to see.
  virtual std::size_t body_bytes_wanted() const { return 0; }

  /// The authorizer's decision.
  virtual void on_verdict(const Exchange& exchange, bool allowed, std::string_view reason) = 0;

  /// The object's name, where the path does not contain it. Default: ignored.
  virtual void on_name(std::string_view /*name*/) {}

  /// An audit annotation; the first value of a key is kept. Default: ignored.
  virtual void on_annotation(std::string_view /*key*/, std::string_view /*value*/) {}

  /// The whole answer; also called when the client has gone and the answer is dropped.
  virtual void on_answer(const Answer& answer) = 0;
  /// An answer that streams begins, with this code.
  virtual void on_stream(int code) = 0;
  /// Called when the answer has ended.
  virtual void on_end() = 0;
};

}  // namespace spillway::apiserver
