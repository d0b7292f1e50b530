// Bytes of a server through a client's HTTP/2 session: the first byte says how they are cut on the way. Requests are
// under way, every second body is consumed; each stream is heard the last of once at most, heads keep within the
// bounds, and what waits to be sent ends.
#include "base/check.h"
#include "wire/http2/http2_client_session.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

using namespace spillway;

namespace {

/// Small, so that inputs of a fuzzer reach them.
constexpr wire::Http2Bounds kBounds{.streams_max = 4,
                                    .stream_window_bytes = 65'535,
                                    .connection_window_bytes = 65'535,
                                    .head_bytes_max = 512,
                                    .fields_max = 16};
constexpr std::string_view kBegin{"\0\0\0\4\0\0\0\0\0\0\0\0\4\1\0\0\0\0", 18};
constexpr std::size_t kSentMax = std::size_t{8} * 1024 * 1024;

class Client final : public wire::Http2ClientSession::Handler {
 public:
  using Session = wire::Http2ClientSession;

  Client() : session_(*this, kBounds) {
    for (const bool with_body : {false, true, false, true}) ask(with_body);
  }

  void read(std::string_view bytes, std::size_t piece) {
    bool open = feed(kBegin);
    for (std::size_t at = 0; open && at < bytes.size(); at += piece) open = feed(bytes.substr(at, piece));
  }

  void on_head(Session::StreamId stream, api::Response head) override {
    SPILLWAY_CHECK(!std::exchange(open_.at(stream), true));
    SPILLWAY_CHECK(head.status >= 200 && head.headers.size() <= kBounds.fields_max);
    for (const auto& [name, value] : head.headers) {
      SPILLWAY_CHECK(!name.empty() && !name.starts_with(':'));
      for (const std::string& text : {name, value})
        SPILLWAY_CHECK(text.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
    }
  }

  void on_body(Session::StreamId stream, std::string_view bytes) override {
    SPILLWAY_CHECK(!bytes.empty() && open_.at(stream));
    if (stream % 4 == 1) session_.consume(stream, bytes.size());
  }

  void on_end(Session::StreamId stream, std::optional<Session::Failure> failure) override {
    SPILLWAY_CHECK(failure.has_value() || open_.at(stream));
    SPILLWAY_CHECK(open_.erase(stream) == 1);
    if (session_.takes_requests() && ++again_ < 100) ask(again_ % 2 == 0);
  }

 private:
  void ask(bool with_body) {
    static const auto body = std::make_shared<const std::string>(70'000, 'b');
    const api::Request head{.method = with_body ? api::Method::kPut : api::Method::kGet,
                            .target = "/x",
                            .headers = {},
                            .body = {},
                            .document = {}};
    if (const auto stream = session_.ask(head, "server", with_body ? body : nullptr)) open_.emplace(*stream, false);
  }

  bool feed(std::string_view bytes) {
    std::string out;
    SPILLWAY_CHECK(session_.pull(out, kSentMax) && out.size() < kSentMax);
    if (!session_.feed(bytes, Instant{})) return false;
    out.clear();
    SPILLWAY_CHECK(session_.pull(out, kSentMax) && out.size() < kSentMax);
    SPILLWAY_CHECK(session_.streams_max() <= kBounds.streams_max);
    return !session_.is_over();
  }

  Session session_;
  std::map<Session::StreamId, bool> open_;  // with whether the head has come
  int again_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  Client().read(bytes, std::size_t{1} + data[0] % 251);
  return 0;
}
