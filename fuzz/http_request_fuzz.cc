// Bytes of a connection through the request parser of the server: the first byte says how they are cut on the way. What
// comes out keeps within the bounds and does not depend on the cuts, but for chunk headers near their bound.
#include "base/check.h"
#include "wire/http/http_parser.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

using namespace spillway;

namespace {

/// Small, so that inputs of a fuzzer reach them.
constexpr wire::RequestBounds kBounds{.head_bytes_max = 512,
                                      .request_line_bytes_max = 128,
                                      .fields_max = 16,
                                      .body_bytes_max = 256,
                                      .chunking_bytes_max = 128,
                                      .chunking_bytes_per_byte = 8};

struct Reading {
  std::vector<api::Request> requests;
  int refused = 0;  // HTTP status
  bool mid_request = false;
};

bool same(const api::Request& a, const api::Request& b) {
  return a.method == b.method && a.target == b.target && a.headers == b.headers && a.body == b.body;
}

void check(const api::Request& request) {
  SPILLWAY_CHECK(request.target.starts_with('/') || request.target == "*");
  SPILLWAY_CHECK(request.target.size() <= kBounds.request_line_bytes_max);
  SPILLWAY_CHECK(request.headers.size() <= kBounds.fields_max);
  SPILLWAY_CHECK(request.body.size() <= kBounds.body_bytes_max);
  std::size_t bytes = 0;
  for (const auto& [name, value] : request.headers) {
    SPILLWAY_CHECK(!name.empty());
    for (const std::string& text : {name, value}) SPILLWAY_CHECK(text.find_first_of("\r\n") == std::string::npos);
    bytes += name.size() + value.size();
  }
  SPILLWAY_CHECK(bytes <= kBounds.head_bytes_max);
}

Reading read(std::string_view bytes, std::size_t piece) {
  Reading outcome;
  wire::RequestParser parser(kBounds);
  std::string input;
  for (std::size_t at = 0; at < bytes.size() && outcome.refused == 0; at += piece) {
    input += bytes.substr(at, piece);
    for (bool more = true; more && outcome.refused == 0;) {
      const auto step = parser.feed(input);
      more = step && *step == wire::RequestParser::Step::kDone;
      if (!step) {
        SPILLWAY_CHECK(!step.error().message.empty());
        outcome.refused = parser.http_status();
        SPILLWAY_CHECK(outcome.refused >= 400 && outcome.refused <= 431);
      } else if (more) {
        outcome.requests.push_back(parser.take());
        check(outcome.requests.back());
        more = !input.empty();
      }
    }
  }
  outcome.mid_request = outcome.refused == 0 && parser.started();
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const Reading whole = read(bytes, std::max<std::size_t>(bytes.size(), 1));
  const Reading pieces = read(bytes, std::size_t{1} + data[0] % 61);
  const std::size_t both = std::min(whole.requests.size(), pieces.requests.size());
  for (std::size_t i = 0; i < both; ++i) SPILLWAY_CHECK(same(whole.requests[i], pieces.requests[i]));
  if (whole.refused == 0 && pieces.refused == 0) {
    SPILLWAY_CHECK(whole.requests.size() == pieces.requests.size());
    SPILLWAY_CHECK(whole.mid_request == pieces.mid_request);
  }
  return 0;
}
