// Reads the answer to one GET from what a server sends: its status, where it leads, and the beginning of its body.
// Thread: any (a plain value). Source: RFC 9112.
#pragma once

#include "base/error.h"
#include "policy/containers/http_action.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::host {

class HttpAnswerReader {
 public:
  /// More bytes than `head_max` before the body are an error, of a body `body_max` are kept.
  HttpAnswerReader(std::size_t head_max, std::size_t body_max) : head_max_(head_max), body_max_(body_max) {}

  /// The answer once enough is there; nullopt: more is needed. kInvalid: this is no answer.
  Result<std::optional<containers::HttpAnswer>> add(std::string_view bytes);
  /// The server has closed the connection.
  Result<containers::HttpAnswer> end() const;

 private:
  Outcome read_head();
  std::string body(bool& whole) const;

  std::size_t head_max_;
  std::size_t body_max_;
  std::string text_;  // unparsed bytes: the head until it is complete, then the body as it is sent
  std::optional<containers::HttpAnswer> head_;
  std::optional<std::size_t> length_;  // Content-Length
  bool chunked_ = false;
};

}  // namespace spillway::host
