#include "wire/http/gzip_stream.h"

#include "base/ascii.h"
#include "base/check.h"

#include <zlib.h>

#include <algorithm>
#include <array>

namespace spillway::wire {

namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's value for a gzip header
constexpr int kMemoryLevel = 8;
constexpr std::size_t kStepBytes = std::size_t{64} * 1024;

bool is_gzip(std::string_view coding) {
  return equal_ignoring_case(coding, "gzip");
}

}  // namespace

struct GzipStream::Impl {
  z_stream stream{};
};

GzipStream::GzipStream() : impl_(std::make_unique<Impl>()) {
  SPILLWAY_CHECK(
      deflateInit2(&impl_->stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kMemoryLevel, Z_DEFAULT_STRATEGY) == Z_OK);
}

GzipStream::~GzipStream() {
  deflateEnd(&impl_->stream);
}

std::string GzipStream::add(std::string_view data, Last last) {
  z_stream& stream = impl_->stream;
  std::string out;
  std::array<char, kStepBytes> step;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by deflate
  do {
    const std::string_view piece = data.substr(0, kStepBytes);
    data.remove_prefix(piece.size());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));  // zlib does not write to its input
    stream.avail_in = static_cast<uInt>(piece.size());
    const int flush = last == Last::kYes && data.empty() ? Z_FINISH : Z_NO_FLUSH;
    do {
      stream.next_out = reinterpret_cast<Bytef*>(step.data());
      stream.avail_out = static_cast<uInt>(step.size());
      SPILLWAY_CHECK(deflate(&stream, flush) != Z_STREAM_ERROR);
      out.append(step.data(), step.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  } while (!data.empty());
  return out;
}

void announce_gzip(api::Response& head) {
  head.headers.emplace_back("Content-Encoding", "gzip");
  head.headers.emplace_back("Vary", "Accept-Encoding");
}

bool offers_gzip(std::string_view accept_encoding) {
  while (!accept_encoding.empty()) {
    const std::size_t comma = accept_encoding.find(',');
    const std::string_view offer = accept_encoding.substr(0, comma);
    accept_encoding.remove_prefix(comma == std::string_view::npos ? accept_encoding.size() : comma + 1);
    const std::size_t semicolon = offer.find(';');
    if (!is_gzip(trimmed(offer.substr(0, semicolon)))) continue;
    if (semicolon == std::string_view::npos) return true;
    const std::string_view weight = trimmed(offer.substr(semicolon + 1));
    return weight.find_first_of("123456789") != std::string_view::npos;  // q=0 and q=0.000 refuse it
  }
  return false;
}

}  // namespace spillway::wire
