#include "wire/http2/http2_session.h"

#include "wire/http2/http2_core.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace spillway::wire {

struct Http2Session::Impl final : Http2Core {
  Impl(Handler& to, const Http2Bounds& most) : Http2Core(Role::kServer, most), handler(to) {}

  bool begins_head(const nghttp2_frame& frame) override {
    if (frame.headers.cat != NGHTTP2_HCAT_REQUEST) return false;
    guard().on_stream_opened();
    return true;
  }

  void on_head(StreamId stream, Head head, bool ends) override {
    api::Request request;
    request.method = api::parse_method(head.method);
    request.target = std::move(head.path);
    request.headers = std::move(head.headers);
    if (head.too_large) return handler.on_large_head(stream, std::move(request));
    handler.on_head(stream, std::move(request), ends ? Body::kNone : Body::kFollows);
  }

  void on_body(StreamId stream, std::string_view bytes) override { handler.on_body(stream, bytes); }

  void on_message_end(StreamId stream) override { handler.on_body_end(stream); }

  void on_stream_closed(StreamId stream, std::uint32_t) override { handler.on_stream_closed(stream); }

  BodyPart next_body(StreamId stream, std::size_t max) override { return handler.next_body(stream, max); }

  void on_body_sent(StreamId stream, std::size_t bytes) override { handler.on_body_sent(stream, bytes); }

  /// A request answered before all of it had arrived: the rest is not read.
  void on_sent(const nghttp2_frame& frame) override {
    const bool answers = frame.hd.type == NGHTTP2_DATA || frame.hd.type == NGHTTP2_HEADERS;
    if (answers && (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 &&
        nghttp2_session_get_stream_remote_close(raw(), frame.hd.stream_id) == 0) {
      reset(frame.hd.stream_id, Code::kNoError);
    }
  }

  void respond(StreamId stream, const api::Response& head, Body body) {
    FieldList fields;
    fields.add(":status", fmt::format("{}", head.status));
    for (const auto& [name, value] : head.headers) fields.add(name, value);
    const std::vector<nghttp2_nv> list = fields.list();
    if (head.status < 200) {
      nghttp2_submit_headers(raw(), NGHTTP2_FLAG_NONE, stream, nullptr, list.data(), list.size(), nullptr);
      return;
    }
    const nghttp2_data_provider provider = body_provider();
    nghttp2_submit_response(raw(), stream, list.data(), list.size(), body == Body::kFollows ? &provider : nullptr);
  }

  Handler& handler;
};

Http2Session::Http2Session(Handler& handler, const Http2Bounds& bounds)
    : impl_(std::make_unique<Impl>(handler, bounds)) {}

Http2Session::~Http2Session() = default;

bool Http2Session::feed(std::string_view bytes, Instant now) {
  return impl_->feed(bytes, now);
}

bool Http2Session::pull(std::string& out, std::size_t size) {
  return impl_->pull(out, size);
}

bool Http2Session::awaits_head() const {
  return impl_->awaits_head();
}

bool Http2Session::is_over() const {
  return impl_->is_over();
}

std::optional<FloodGuard::Frame> Http2Session::flood() const {
  return impl_->flood();
}

void Http2Session::respond(StreamId stream, const api::Response& head, Body body) {
  impl_->respond(stream, head, body);
}

void Http2Session::resume(StreamId stream) {
  nghttp2_session_resume_data(impl_->raw(), stream);
}

void Http2Session::set_priority(StreamId stream, Priority priority) {
  const nghttp2_extpri wanted{.urgency = priority.urgency, .inc = priority.incremental ? 1 : 0};
  nghttp2_session_change_extpri_stream_priority(impl_->raw(), stream, &wanted, 1);
}

void Http2Session::consume(StreamId stream, std::size_t bytes) {
  if (nghttp2_session_find_stream(impl_->raw(), stream) != nullptr)
    nghttp2_session_consume(impl_->raw(), stream, bytes);
  else
    nghttp2_session_consume_connection(impl_->raw(), bytes);
}

void Http2Session::reset(StreamId stream, Code code) {
  impl_->reset(stream, code);
}

void Http2Session::ping() {
  nghttp2_submit_ping(impl_->raw(), NGHTTP2_FLAG_NONE, nullptr);
}

void Http2Session::submit_goaway() {
  nghttp2_submit_goaway(impl_->raw(), NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(impl_->raw()),
                        NGHTTP2_NO_ERROR, nullptr, 0);
}

void Http2Session::terminate(Code code) {
  impl_->terminate(code);
}

}  // namespace spillway::wire
