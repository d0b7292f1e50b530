#include "api/stream/spdy_headers.h"

#include "base/ascii.h"
#include "base/check.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace spillway::api {
namespace {

/// Words of the dictionary that both sides begin with, each after its length in four bytes; then the rest as it is.
constexpr std::string_view kWords[] = {"options",
                                       "head",
                                       "post",
                                       "put",
                                       "delete",
                                       "trace",
                                       "accept",
                                       "accept-charset",
                                       "accept-encoding",
                                       "accept-language",
                                       "accept-ranges",
                                       "age",
                                       "allow",
                                       "authorization",
                                       "cache-control",
                                       "connection",
                                       "content-base",
                                       "content-encoding",
                                       "content-language",
                                       "content-length",
                                       "content-location",
                                       "content-md5",
                                       "content-range",
                                       "content-type",
                                       "date",
                                       "etag",
                                       "expect",
                                       "expires",
                                       "from",
                                       "host",
                                       "if-match",
                                       "if-modified-since",
                                       "if-none-match",
                                       "if-range",
                                       "if-unmodified-since",
                                       "last-modified",
                                       "location",
                                       "max-forwards",
                                       "pragma",
                                       "proxy-authenticate",
                                       "proxy-authorization",
                                       "range",
                                       "referer",
                                       "retry-after",
                                       "server",
                                       "te",
                                       "trailer",
                                       "transfer-encoding",
                                       "upgrade",
                                       "user-agent",
                                       "vary",
                                       "via",
                                       "warning",
                                       "www-authenticate",
                                       "method",
                                       "get",
                                       "status",
                                       "200 OK",
                                       "version",
                                       "HTTP/1.1",
                                       "url",
                                       "public",
                                       "set-cookie",
                                       "keep-alive",
                                       "origin"};
constexpr std::string_view kRest =
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";
constexpr int kWindowBits = 11;  // the window of written blocks; a block is short
constexpr int kHeaderMemoryLevel = 1;
constexpr std::size_t kInflatedStepBytes = 4096;

void put_length(std::size_t length, std::string& out) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(length >> static_cast<unsigned>(shift)));
}

void put_text(std::string_view text, std::string& out) {
  put_length(text.size(), out);
  out.append(text);
}

const std::string& dictionary() {
  static const std::string text = [] {
    std::string made;
    for (const std::string_view word : kWords) put_text(word, made);
    made += kRest;
    return made;
  }();
  return text;
}

Bytef* bytes_of(std::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // zlib only reads it
}

Error broken_block(std::string_view why) {
  return make_error(ErrorCode::kBadRequest, "spdy: {}", why);
}

Result<std::uint32_t> take_length(std::string_view& text) {
  if (text.size() < 4) return broken_block("a header block is cut off");
  std::uint32_t length = 0;
  for (std::size_t i = 0; i < 4; ++i) length = (length << 8U) | static_cast<std::uint8_t>(text[i]);
  text.remove_prefix(4);
  return length;
}

Result<std::string> take_text(std::string_view& text) {
  SPILLWAY_TRY(length, take_length(text));
  if (length > text.size()) return broken_block("a header block is cut off");
  std::string taken(text.substr(0, length));
  text.remove_prefix(length);
  return taken;
}

Result<HeaderList> parse_block(std::string_view text) {
  SPILLWAY_TRY(count, take_length(text));
  if (count > SpdyHeaderReader::kHeadersMax) return broken_block("too many headers");
  HeaderList headers;
  for (std::uint32_t i = 0; i < count; ++i) {
    SPILLWAY_TRY(name, take_text(text));
    SPILLWAY_TRY(value, take_text(text));
    std::ranges::transform(name, name.begin(), to_lower);
    headers.emplace_back(std::move(name), std::move(value));
  }
  if (!text.empty()) return broken_block("a header block has a rest");
  return headers;
}

}  // namespace

struct SpdyHeaderReader::Impl {
  Impl() { SPILLWAY_CHECK(inflateInit(&stream) == Z_OK); }

  ~Impl() { inflateEnd(&stream); }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  z_stream stream{};
};

SpdyHeaderReader::SpdyHeaderReader() : impl_(std::make_unique<Impl>()) {}

SpdyHeaderReader::~SpdyHeaderReader() = default;
SpdyHeaderReader::SpdyHeaderReader(SpdyHeaderReader&&) noexcept = default;
SpdyHeaderReader& SpdyHeaderReader::operator=(SpdyHeaderReader&&) noexcept = default;

Result<HeaderList> SpdyHeaderReader::read(std::string_view block) {
  z_stream& stream = impl_->stream;
  std::string text;
  std::array<char, kInflatedStepBytes> step;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by inflate
  stream.next_in = bytes_of(block);
  stream.avail_in = static_cast<uInt>(block.size());
  do {
    stream.next_out = reinterpret_cast<Bytef*>(step.data());
    stream.avail_out = static_cast<uInt>(step.size());
    int result = inflate(&stream, Z_SYNC_FLUSH);
    if (result == Z_NEED_DICT) {
      const std::string& words = dictionary();
      if (inflateSetDictionary(&stream, bytes_of(words), static_cast<uInt>(words.size())) != Z_OK)
        return broken_block("another dictionary");
      result = inflate(&stream, Z_SYNC_FLUSH);
    }
    if (result != Z_OK && result != Z_BUF_ERROR) return broken_block("a header block cannot be inflated");
    text.append(step.data(), step.size() - stream.avail_out);
    if (text.size() > kBlockBytesMax) return broken_block("a header block is too long");
  } while (stream.avail_out == 0);
  if (stream.avail_in != 0) return broken_block("a header block has a rest");
  return parse_block(text);
}

struct SpdyHeaderWriter::Impl {
  Impl() {
    SPILLWAY_CHECK(
        deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kWindowBits, kHeaderMemoryLevel, Z_DEFAULT_STRATEGY) == Z_OK);
    const std::string& words = dictionary();
    SPILLWAY_CHECK(deflateSetDictionary(&stream, bytes_of(words), static_cast<uInt>(words.size())) == Z_OK);
  }

  ~Impl() { deflateEnd(&stream); }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  z_stream stream{};
};

SpdyHeaderWriter::SpdyHeaderWriter() : impl_(std::make_unique<Impl>()) {}

SpdyHeaderWriter::~SpdyHeaderWriter() = default;
SpdyHeaderWriter::SpdyHeaderWriter(SpdyHeaderWriter&&) noexcept = default;
SpdyHeaderWriter& SpdyHeaderWriter::operator=(SpdyHeaderWriter&&) noexcept = default;

std::string SpdyHeaderWriter::write(const HeaderList& headers) {
  std::string text;
  put_length(headers.size(), text);
  for (const auto& [name, value] : headers) {
    std::string lower = name;
    std::ranges::transform(lower, lower.begin(), to_lower);
    put_text(lower, text);
    put_text(value, text);
  }
  z_stream& stream = impl_->stream;
  std::string block;
  std::array<char, kInflatedStepBytes> step;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by deflate
  stream.next_in = bytes_of(text);
  stream.avail_in = static_cast<uInt>(text.size());
  do {
    stream.next_out = reinterpret_cast<Bytef*>(step.data());
    stream.avail_out = static_cast<uInt>(step.size());
    SPILLWAY_CHECK(deflate(&stream, Z_SYNC_FLUSH) != Z_STREAM_ERROR);
    block.append(step.data(), step.size() - stream.avail_out);
  } while (stream.avail_out == 0);
  return block;
}

}  // namespace spillway::api
