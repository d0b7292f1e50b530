// Port: who is told what becomes of one request. An Exchange owns its observer, and lets go of it when there is nothing
// more to tell: an observer that goes without on_answer() or on_end() has seen a request that nobody answered.
// Thread: loop.
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
    const api::Json* document = nullptr;  // what the body says, if that is at hand
    std::string_view body = {};
    std::string_view content_type = {};
    bool composed = false;   // the body is JSON that this server has written, in one line
    bool in_pieces = false;  // the body has gone in pieces and is not at hand; it is longer than body_bytes_wanted()
  };

  virtual ~AnswerObserver() = default;

  /// Up to how many bytes it wants to see the body of an answer.
  virtual std::size_t body_bytes_wanted() const { return 0; }

  /// What was decided about it.
  virtual void on_verdict(const Exchange& exchange, bool allowed, std::string_view reason) = 0;

  /// The name of the object that is asked about, where the path does not say it. Default: nobody wants to know.
  virtual void on_name(std::string_view /*name*/) {}

  /// What else is to be known of it; the first value of a key stays. Default: nobody wants to know.
  virtual void on_annotation(std::string_view /*key*/, std::string_view /*value*/) {}

  /// The whole answer. Also of a request whose client has gone meanwhile: then nobody reads it.
  virtual void on_answer(const Answer& answer) = 0;
  /// An answer that streams begins, with this code.
  virtual void on_stream(int code) = 0;
  /// It is over.
  virtual void on_end() = 0;
};

}  // namespace spillway::apiserver
