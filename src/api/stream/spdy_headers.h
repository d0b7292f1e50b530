// Header blocks of SPDY: names and values, compressed with one state for all blocks of a connection and direction.
// Thread: one at a time. Only spdy_headers.cc uses zlib. Bounds: bytes of a block when it is read, number of headers.
// Source: SPDY Protocol, Draft 3, 2.6.10.
#pragma once

#include "api/exchange/exchange.h"
#include "base/error.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace spillway::api {

class SpdyHeaderReader {
 public:
  static constexpr std::size_t kBlockBytesMax = std::size_t{16} * 1024;
  static constexpr std::size_t kHeadersMax = 64;

  SpdyHeaderReader();
  ~SpdyHeaderReader();
  SpdyHeaderReader(SpdyHeaderReader&&) noexcept;
  SpdyHeaderReader& operator=(SpdyHeaderReader&&) noexcept;

  /// A whole block, and after it the next: names lower-case. An error ends the connection: nothing that follows could
  /// be read.
  Result<HeaderList> read(std::string_view block);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class SpdyHeaderWriter {
 public:
  SpdyHeaderWriter();
  ~SpdyHeaderWriter();
  SpdyHeaderWriter(SpdyHeaderWriter&&) noexcept;
  SpdyHeaderWriter& operator=(SpdyHeaderWriter&&) noexcept;

  /// Names are written lower-case.
  std::string write(const HeaderList& headers);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::api
