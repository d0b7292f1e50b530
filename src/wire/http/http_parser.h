// HTTP/1.1 messages from bytes, for servers (requests) and clients (answers). Fed from the front of a buffer as data
// arrive; bodies by Content-Length, chunked or, for answers, until the connection ends. Thread: one at a time. Only
// http_parser.cc uses Beast. Source: RFC 9112.
#pragma once

#include "api/exchange/exchange.h"
#include "base/error.h"
#include "wire/http/http_limits.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace spillway::wire {

/// Parses requests, one after the other.
class RequestParser {
 public:
  enum class Step {
    kNeedMore,  // more bytes of the header
    kBody,      // the header is complete, the body is not
    kDone,      // take the request
  };

  explicit RequestParser(const RequestBounds& bounds);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  /// Consumes bytes from the front of `input`. kBadRequest: malformed, or a head or chunk too long (http_status() has
  /// the code). kRequestEntityTooLarge: "limit is N". After an error the connection can only be answered and closed.
  Result<Step> feed(std::string& input);
  /// The status for an error of feed(): 413, 414 (request line), 431 (fields, or the head as a whole), else 400.
  int http_status() const;

  /// The parsed part of the request: its header after kBody, and after an error the part before it.
  const api::Request& request() const;
  /// The complete request; the parser then expects the next one.
  api::Request take();

  // Valid from the end of the header on, until the next feed() after take().
  bool keep_alive() const;
  bool expects_continue() const;
  bool http_1_0() const;
  /// True once a byte of the present request has been seen.
  bool started() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Parses the answer to one request.
class ResponseParser {
 public:
  enum class Step { kNeedMore, kBody, kDone };

  /// kAsked: the request was for an upgrade: then 101 is an answer, without a body, and no interim one.
  enum class Upgrade { kNotAsked, kAsked };

  /// `to`: the method of the request (an answer to HEAD has no body).
  explicit ResponseParser(api::Method to, Upgrade upgrade = Upgrade::kNotAsked);
  ~ResponseParser();
  ResponseParser(const ResponseParser&) = delete;
  ResponseParser& operator=(const ResponseParser&) = delete;

  /// Consumes bytes from the front of `input`; body bytes go to take_body(). Interim answers (1xx) are skipped.
  /// kServiceUnavailable: the input is no HTTP answer.
  Result<Step> feed(std::string& input);
  /// The connection has ended. kDone if that ends the body; kServiceUnavailable if the answer is cut off.
  Result<Step> finish();

  /// Status and headers, from kBody on.
  const api::Response& head() const;
  /// Body bytes since the last call.
  std::string take_body();
  /// True if the connection can carry another request.
  bool keep_alive() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::wire
