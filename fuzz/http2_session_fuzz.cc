// Bytes of a connection through a server's HTTP/2 session: the first byte says how they are cut on the way. Each
// request is answered, each body is consumed; what comes out keeps within the bounds, and what waits to be sent ends.
#include "base/check.h"
#include "wire/http2/http2_session.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

using namespace spillway;

namespace {

/// Small, so that inputs of a fuzzer reach them.
constexpr wire::Http2Bounds kBounds{.streams_max = 4,
                                    .stream_window_bytes = 65'535,
                                    .connection_window_bytes = 65'535,
                                    .head_bytes_max = 512,
                                    .fields_max = 16};
constexpr std::string_view kBegin{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33};
constexpr std::size_t kSentMax = std::size_t{8} * 1024 * 1024;

class Server final : public wire::Http2Session::Handler {
 public:
  using Session = wire::Http2Session;

  Server() : session_(*this, kBounds) {}

  void read(std::string_view bytes, std::size_t piece) {
    bool open = feed(kBegin);
    for (std::size_t at = 0; open && at < bytes.size(); at += piece) open = feed(bytes.substr(at, piece));
  }

  void on_head(Session::StreamId stream, api::Request head, Session::Body body) override {
    SPILLWAY_CHECK(open_.emplace(stream, 0).second && open_.size() <= kBounds.streams_max);
    SPILLWAY_CHECK(head.headers.size() <= kBounds.fields_max);
    for (const auto& [name, value] : head.headers) {
      SPILLWAY_CHECK(!name.empty() && !name.starts_with(':'));
      for (const std::string& text : {name, value})
        SPILLWAY_CHECK(text.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
    }
    if (body == Session::Body::kNone) answer(stream);
  }

  void on_large_head(Session::StreamId stream, api::Request) override {
    open_.emplace(stream, 0);
    answer(stream);
  }

  void on_body(Session::StreamId stream, std::string_view bytes) override {
    SPILLWAY_CHECK(!bytes.empty());
    session_.consume(stream, bytes.size());
  }

  void on_body_end(Session::StreamId stream) override { answer(stream); }

  void on_stream_closed(Session::StreamId stream) override { open_.erase(stream); }

  Session::BodyPart next_body(Session::StreamId stream, std::size_t max) override {
    const std::string_view rest = std::string_view(kBody).substr(open_.at(stream), max);
    return {rest, open_.at(stream) + rest.size() == kBody.size()};
  }

  void on_body_sent(Session::StreamId stream, std::size_t bytes) override { open_.at(stream) += bytes; }

 private:
  bool feed(std::string_view bytes) {
    if (!session_.feed(bytes, Instant{})) return false;
    std::string out;
    SPILLWAY_CHECK(session_.pull(out, kSentMax));
    SPILLWAY_CHECK(out.size() < kSentMax);
    return !session_.is_over();
  }

  void answer(Session::StreamId stream) {
    if (open_.contains(stream))
      session_.respond(stream, {200, {{"Content-Type", "text/plain"}}, ""}, Session::Body::kFollows);
  }

  static inline const std::string kBody = std::string(20'000, 'b');
  Session session_;
  std::map<Session::StreamId, std::size_t> open_;  // with what was sent of the body
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  Server().read(bytes, std::size_t{1} + data[0] % 251);
  return 0;
}
