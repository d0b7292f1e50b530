#include "wire/http2/http2_client_session.h"

#include "base/ascii.h"
#include "wire/http2/http2_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace spillway::wire {
namespace {

constexpr int kInterimAnswersMax = 16;

bool expects_body(api::Method method) {
  return method == api::Method::kPost || method == api::Method::kPut || method == api::Method::kPatch;
}

}  // namespace

struct Http2ClientSession::Impl final : Http2Core {
  struct Stream {
    Body body;
    std::size_t body_sent = 0;
    bool head_seen = false;
    int interim_answers = 0;
  };

  Impl(Handler& to, const Http2Bounds& most) : Http2Core(Role::kClient, most), handler(to), bounds(most) {
    unwanted_bytes_max = bounds.stream_window_bytes;
  }

  bool begins_head(const nghttp2_frame& frame) override {
    const auto found = streams.find(frame.hd.stream_id);
    return found != streams.end() && !found->second.head_seen;
  }

  void on_head(StreamId id, Head head, bool ends) override {
    const auto found = streams.find(id);
    if (found == streams.end()) return;
    Stream& stream = found->second;
    if (head.too_large) return give_up(id, "the fields of the answer are too large");
    if (head.status < 100) return give_up(id, "the status of the answer is none");
    if (head.status < 200) {
      if (++stream.interim_answers > kInterimAnswersMax) give_up(id, "too many interim answers");
      return;
    }
    stream.head_seen = true;
    api::Response response;
    response.status = head.status;
    response.headers = std::move(head.headers);
    handler.on_head(id, std::move(response));
    if (ends) on_message_end(id);
  }

  void on_body(StreamId id, std::string_view bytes) override {
    nghttp2_session_consume_connection(raw(), bytes.size());
    if (streams.contains(id)) handler.on_body(id, bytes);
  }

  void on_message_end(StreamId id) override {
    const auto stream = streams.extract(id);
    if (!stream) return;
    const Stream& asked = stream.mapped();
    if (asked.body && asked.body_sent < asked.body->size()) reset(id, Http2Code::kCancel);  // the rest is not needed
    handler.on_end(id, std::nullopt);
  }

  void on_stream_closed(StreamId id, std::uint32_t code) override {
    const auto stream = streams.extract(id);
    if (!stream) return;
    unwanted_bytes_max += bounds.stream_window_bytes;       // bytes of streams that nghttp2 may have reset
    const bool untouched = code == NGHTTP2_REFUSED_STREAM;  // nghttp2 reports this also for streams refused by a GOAWAY
    handler.on_end(id, Failure{untouched, fmt::format("the stream was reset ({})", nghttp2_http2_strerror(code))});
  }

  Http2BodyPart next_body(StreamId id, std::size_t max) override {
    const auto found = streams.find(id);
    if (found == streams.end()) return {};  // being reset
    const std::string_view rest = std::string_view(*found->second.body).substr(found->second.body_sent);
    return {.bytes = rest.substr(0, max), .last = rest.size() <= max};
  }

  void on_body_sent(StreamId id, std::size_t bytes) override {
    if (const auto found = streams.find(id); found != streams.end()) found->second.body_sent += bytes;
  }

  void on_sent(const nghttp2_frame& frame) override {
    if (frame.hd.type == NGHTTP2_WINDOW_UPDATE && frame.hd.stream_id == 0)
      on_window_given(frame.window_update.window_size_increment);
  }

  std::optional<StreamId> ask(const api::Request& head, std::string_view authority, Body body) {
    const std::size_t body_bytes = body ? body->size() : 0;
    FieldList fields;
    fields.add(":method", api::to_string(head.method));
    fields.add(":scheme", "https");
    fields.add(":authority", authority);
    fields.add(":path", head.target);
    for (const auto& [name, value] : head.headers)
      if (!equal_ignoring_case(name, "host") && !equal_ignoring_case(name, "content-length")) fields.add(name, value);
    if (body_bytes > 0 || expects_body(head.method)) fields.add("content-length", fmt::format("{}", body_bytes));
    const std::vector<nghttp2_nv> list = fields.list();
    const nghttp2_data_provider provider = body_provider();
    const StreamId id =
        nghttp2_submit_request(raw(), nullptr, list.data(), list.size(), body_bytes > 0 ? &provider : nullptr, nullptr);
    if (id < 0) return std::nullopt;
    guard().on_stream_opened();
    streams[id].body = body_bytes > 0 ? std::move(body) : nullptr;
    return id;
  }

  void on_data_frame(std::size_t bytes) override { wanted_bytes += static_cast<std::int64_t>(bytes); }

  /// nghttp2 does not report data of streams that have ended, but gives the connection's window back for them. Bytes on
  /// their way when a request is taken back fit into its window; a server that sends more ignores the reset.
  void on_window_given(std::int64_t bytes) {
    given_bytes += bytes;
    const std::int64_t greeting = bounds.connection_window_bytes - NGHTTP2_INITIAL_CONNECTION_WINDOW_SIZE;
    if (given_bytes - greeting - wanted_bytes > unwanted_bytes_max) terminate(Http2Code::kEnhanceYourCalm);
  }

  void take_back(StreamId id) {
    if (streams.erase(id) == 0) return;
    unwanted_bytes_max += bounds.stream_window_bytes;
    reset(id, Http2Code::kCancel);
  }

  void give_up(StreamId id, std::string problem) {
    take_back(id);
    handler.on_end(id, Failure{false, std::move(problem)});
  }

  Handler& handler;
  const Http2Bounds bounds;
  std::map<StreamId, Stream> streams;  // streams whose end was not reported to the handler
  std::int64_t wanted_bytes = 0;
  std::int64_t given_bytes = 0;
  std::int64_t unwanted_bytes_max = 0;  // bytes of streams that were taken back, and of a part of a frame under way
};

Http2ClientSession::Http2ClientSession(Handler& handler, const Http2Bounds& bounds)
    : impl_(std::make_unique<Impl>(handler, bounds)) {}

Http2ClientSession::~Http2ClientSession() = default;

bool Http2ClientSession::feed(std::string_view bytes, Instant now) {
  return impl_->feed(bytes, now);
}

bool Http2ClientSession::pull(std::string& out, std::size_t size) {
  return impl_->pull(out, size);
}

bool Http2ClientSession::is_over() const {
  return impl_->is_over();
}

std::optional<FloodGuard::Frame> Http2ClientSession::flood() const {
  return impl_->flood();
}

bool Http2ClientSession::takes_requests() const {
  return nghttp2_session_check_request_allowed(impl_->raw()) != 0;
}

std::size_t Http2ClientSession::streams_max() const {
  const std::uint32_t theirs =
      nghttp2_session_get_remote_settings(impl_->raw(), NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
  return std::min(theirs, impl_->bounds.streams_max);
}

std::optional<Http2ClientSession::StreamId> Http2ClientSession::ask(const api::Request& head,
                                                                    std::string_view authority, Body body) {
  if (!takes_requests()) return std::nullopt;
  return impl_->ask(head, authority, std::move(body));
}

void Http2ClientSession::consume(StreamId stream, std::size_t bytes) {
  if (nghttp2_session_find_stream(impl_->raw(), stream) != nullptr)
    nghttp2_session_consume_stream(impl_->raw(), stream, bytes);
}

void Http2ClientSession::take_back(StreamId stream) {
  impl_->take_back(stream);
}

void Http2ClientSession::ping() {
  nghttp2_submit_ping(impl_->raw(), NGHTTP2_FLAG_NONE, nullptr);
}

}  // namespace spillway::wire
