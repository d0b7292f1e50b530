// Compresses a body piece by piece, so that a large one neither blocks its thread nor is in memory twice. Thread: one
// at a time. Only gzip_stream.cc uses zlib. Source: RFC 1952; spec "API server contract", 4.4.
#pragma once

#include "api/exchange/exchange.h"

#include <memory>
#include <string>
#include <string_view>

namespace spillway::wire {

class GzipStream {
 public:
  enum class Last { kNo, kYes };

  GzipStream();
  ~GzipStream();
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  /// Takes `data` in; returns the compressed bytes that are ready, all of them after the last piece.
  std::string add(std::string_view data, Last last);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Adds the headers of a compressed answer.
void announce_gzip(api::Response& head);

/// True if Accept-Encoding offers gzip.
bool offers_gzip(std::string_view accept_encoding);

}  // namespace spillway::wire
