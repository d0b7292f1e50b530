#include "wire/http2/http2_session.h"

#include "base/ascii.h"
#include "base/check.h"
#include "wire/http/http_head.h"

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace spillway::wire {
namespace {

constexpr std::uint32_t kHeaderTableBytes = 4096;
constexpr std::size_t kFieldOverhead = 32;  // RFC 9113, 10.5.1
constexpr std::size_t kContinuationsMax = 8;
constexpr std::size_t kAcknowledgementsMax = 1000;
constexpr std::size_t kSettingsMax = 32;

std::string_view view(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

std::uint8_t* bytes_of(std::string& text) {
  return reinterpret_cast<std::uint8_t*>(text.data());
}

struct CallbacksFree {
  void operator()(nghttp2_session_callbacks* callbacks) const { nghttp2_session_callbacks_del(callbacks); }
};

struct OptionFree {
  void operator()(nghttp2_option* option) const { nghttp2_option_del(option); }
};

struct SessionFree {
  void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
};

/// Fields that say how HTTP/1.1 frames a message, which HTTP/2 has no place for.
bool is_of_connection(std::string_view name) {
  return name == "connection" || name == "transfer-encoding" || name == "keep-alive" || name == "proxy-connection" ||
         name == "upgrade";
}

}  // namespace

struct Http2Session::Impl {
  /// A request whose head has not come whole.
  struct Head {
    api::Request request;
    std::size_t bytes = 0;
    std::size_t fields = 0;
    bool too_large = false;
  };

  Impl(Handler& to, const Http2Bounds& most);

  Handler& handler;
  const Http2Bounds bounds;
  std::unique_ptr<nghttp2_session, SessionFree> session;
  FloodGuard guard;
  std::optional<FloodGuard::Frame> flood;
  Instant now{};  // of the feed() under way
  std::map<StreamId, Head> heads;
  std::string* out = nullptr;  // of the pull() under way
  std::string_view sending;    // the part of a body that goes into the frame at hand

  void count(FloodGuard::Frame frame) {
    if (flood || guard.allows(frame, now)) return;
    flood = frame;
    nghttp2_session_terminate_session2(session.get(), nghttp2_session_get_last_proc_stream_id(session.get()),
                                       NGHTTP2_ENHANCE_YOUR_CALM);
  }

  static Impl& of(void* self) { return *static_cast<Impl*>(self); }

  static int on_begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    of(self).heads[frame->hd.stream_id] = {};
    of(self).guard.on_stream_opened();
    return 0;
  }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                       const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* self) {
    const auto found = of(self).heads.find(frame->hd.stream_id);
    if (found == of(self).heads.end()) return 0;  // a trailer, which nobody reads
    return of(self).add_field(found->second, view(name, name_size), view(value, value_size));
  }

  int add_field(Head& head, std::string_view name, std::string_view value);
  void on_head_complete(StreamId stream, bool ends);

  /// Frames of priorities are told of nowhere else: this server does not follow them.
  static int on_begin_frame(nghttp2_session*, const nghttp2_frame_hd* head, void* self) {
    if (head->type == NGHTTP2_PRIORITY || head->type == NGHTTP2_PRIORITY_UPDATE)
      of(self).count(FloodGuard::Frame::kPriority);
    return 0;
  }

  static int on_frame(nghttp2_session* session, const nghttp2_frame* frame, void* self);

  static int on_data(nghttp2_session*, std::uint8_t, StreamId stream, const std::uint8_t* data, std::size_t size,
                     void* self) {
    of(self).handler.on_body(stream, view(data, size));
    return 0;
  }

  static int on_stream_close(nghttp2_session*, StreamId stream, std::uint32_t, void* self) {
    of(self).heads.erase(stream);
    of(self).handler.on_stream_closed(stream);
    return 0;
  }

  static int on_frame_sent(nghttp2_session* session, const nghttp2_frame* frame, void* self);

  static ssize_t read_body(nghttp2_session*, StreamId stream, std::uint8_t*, std::size_t size, std::uint32_t* flags,
                           nghttp2_data_source*, void* self) {
    const BodyPart part = of(self).handler.next_body(stream, size);
    if (part.bytes.empty() && !part.last) return NGHTTP2_ERR_DEFERRED;
    if (part.last) *flags |= NGHTTP2_DATA_FLAG_EOF;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    of(self).sending = part.bytes;
    return static_cast<ssize_t>(part.bytes.size());
  }

  static int send_data(nghttp2_session*, nghttp2_frame* frame, const std::uint8_t* head, std::size_t size,
                       nghttp2_data_source*, void* self) {
    Impl& impl = of(self);
    SPILLWAY_CHECK(size == impl.sending.size() && frame->data.padlen == 0);
    impl.out->append(view(head, 9));
    impl.out->append(impl.sending);
    impl.sending = {};
    impl.guard.on_data_sent();
    impl.handler.on_body_sent(frame->hd.stream_id, size);
    return 0;
  }
};

Http2Session::Impl::Impl(Handler& to, const Http2Bounds& most) : handler(to), bounds(most) {
  nghttp2_session_callbacks* made_callbacks = nullptr;
  SPILLWAY_CHECK(nghttp2_session_callbacks_new(&made_callbacks) == 0);
  const std::unique_ptr<nghttp2_session_callbacks, CallbacksFree> callbacks(made_callbacks);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks.get(), on_begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(callbacks.get(), on_header);
  nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks.get(), on_begin_frame);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks.get(), on_frame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks.get(), on_data);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks.get(), on_stream_close);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks.get(), on_frame_sent);
  nghttp2_session_callbacks_set_send_data_callback(callbacks.get(), send_data);
  nghttp2_option* made_option = nullptr;
  SPILLWAY_CHECK(nghttp2_option_new(&made_option) == 0);
  const std::unique_ptr<nghttp2_option, OptionFree> option(made_option);
  nghttp2_option_set_no_auto_window_update(option.get(), 1);
  nghttp2_option_set_no_closed_streams(option.get(), 1);
  nghttp2_option_set_max_continuations(option.get(), kContinuationsMax);
  nghttp2_option_set_max_outbound_ack(option.get(), kAcknowledgementsMax);
  nghttp2_option_set_max_settings(option.get(), kSettingsMax);
  nghttp2_session* made = nullptr;
  SPILLWAY_CHECK(nghttp2_session_server_new2(&made, callbacks.get(), this, option.get()) == 0);
  session.reset(made);
  const std::vector<nghttp2_settings_entry> settings = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, bounds.streams_max},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, bounds.stream_window_bytes},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(bounds.head_bytes_max)},
      {NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, kHeaderTableBytes},
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1}};
  SPILLWAY_CHECK(nghttp2_submit_settings(made, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) == 0);
  SPILLWAY_CHECK(nghttp2_session_set_local_window_size(made, NGHTTP2_FLAG_NONE, 0, bounds.connection_window_bytes) ==
                 0);
}

/// nghttp2 has checked that names and values are ones, and that each pseudo field comes once and first.
int Http2Session::Impl::add_field(Head& head, std::string_view name, std::string_view value) {
  head.bytes += name.size() + value.size() + kFieldOverhead;
  ++head.fields;
  if (head.bytes > 2 * bounds.head_bytes_max) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;  // the stream is reset
  head.too_large = head.too_large || head.bytes > bounds.head_bytes_max || head.fields > bounds.fields_max;
  if (head.too_large) return 0;
  api::Request& request = head.request;
  if (name == ":method") {
    request.method = api::parse_method(value);
  } else if (name == ":path") {
    request.target = value;
  } else if (name == ":authority") {
    request.headers.emplace_back("host", value);
  } else if (name == "cookie") {  // may come in pieces: RFC 9113, 8.2.3
    const auto before = std::ranges::find(request.headers, name, [](const auto& field) { return field.first; });
    if (before == request.headers.end())
      request.headers.emplace_back(name, value);
    else
      before->second += fmt::format("; {}", value);
  } else if (name == "host") {
    if (request.header("host").empty()) request.headers.emplace_back(name, value);
  } else if (!name.starts_with(':')) {
    request.headers.emplace_back(name, value);
  }
  return 0;
}

void Http2Session::Impl::on_head_complete(StreamId stream, bool ends) {
  auto node = heads.extract(stream);
  if (!node) return;
  Head& head = node.mapped();
  if (head.too_large) return handler.on_large_head(stream, std::move(head.request));
  handler.on_head(stream, std::move(head.request), ends ? Body::kNone : Body::kFollows);
}

int Http2Session::Impl::on_frame(nghttp2_session*, const nghttp2_frame* frame, void* self) {
  Impl& impl = of(self);
  using Frame = FloodGuard::Frame;
  const bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  const bool acknowledges = (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0;
  switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
      if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        impl.on_head_complete(frame->hd.stream_id, ends);
      else if (ends)
        impl.handler.on_body_end(frame->hd.stream_id);
      break;
    case NGHTTP2_DATA:
      if (frame->hd.length > 0)
        impl.guard.on_data_received();
      else if (!ends)
        impl.count(Frame::kEmpty);
      if (ends) impl.handler.on_body_end(frame->hd.stream_id);
      break;
    case NGHTTP2_RST_STREAM:
      impl.count(Frame::kReset);
      break;
    case NGHTTP2_PING:
      if (!acknowledges) impl.count(Frame::kPing);
      break;
    case NGHTTP2_SETTINGS:
      if (!acknowledges) impl.count(Frame::kSettings);
      break;
    case NGHTTP2_WINDOW_UPDATE:
      impl.count(Frame::kWindowUpdate);
      break;
    default:
      break;
  }
  return 0;
}

/// A request that was answered before all of it had come: the rest is not waited for. Resets that a client provokes
/// count as if it had sent them.
int Http2Session::Impl::on_frame_sent(nghttp2_session* session, const nghttp2_frame* frame, void* self) {
  const bool answers = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
  if (answers && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 &&
      nghttp2_session_get_stream_remote_close(session, frame->hd.stream_id) == 0) {
    nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
  }
  const bool provoked = frame->hd.type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code != NGHTTP2_NO_ERROR &&
                        frame->rst_stream.error_code != NGHTTP2_CANCEL;
  if (provoked) of(self).count(FloodGuard::Frame::kReset);
  return 0;
}

Http2Session::Http2Session(Handler& handler, const Http2Bounds& bounds)
    : impl_(std::make_unique<Impl>(handler, bounds)) {}

Http2Session::~Http2Session() = default;

bool Http2Session::feed(std::string_view bytes, Instant now) {
  impl_->now = now;
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return nghttp2_session_mem_recv(impl_->session.get(), data, bytes.size()) >= 0;
}

bool Http2Session::pull(std::string& out, std::size_t size) {
  impl_->out = &out;
  while (out.size() < size) {
    const std::uint8_t* data = nullptr;
    const std::size_t before = out.size();
    const ssize_t got = nghttp2_session_mem_send(impl_->session.get(), &data);
    if (got < 0) return false;
    if (got == 0 && out.size() == before) break;
    out.append(view(data, static_cast<std::size_t>(got)));
  }
  impl_->out = nullptr;
  return true;
}

bool Http2Session::awaits_head() const {
  return !impl_->heads.empty();
}

bool Http2Session::is_over() const {
  return nghttp2_session_want_read(impl_->session.get()) == 0 && nghttp2_session_want_write(impl_->session.get()) == 0;
}

std::optional<FloodGuard::Frame> Http2Session::flood() const {
  return impl_->flood;
}

void Http2Session::respond(StreamId stream, const api::Response& head, Body body) {
  std::vector<std::pair<std::string, std::string>> fields;
  fields.emplace_back(":status", fmt::format("{}", head.status));
  for (const auto& [name, value] : head.headers) {
    std::string lower = lower_case(name);
    if (!is_of_connection(lower)) fields.emplace_back(std::move(lower), field_value(value));
  }
  std::vector<nghttp2_nv> list;
  list.reserve(fields.size());
  for (auto& [name, value] : fields)
    list.push_back({bytes_of(name), bytes_of(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
  if (head.status < 200) {
    nghttp2_submit_headers(impl_->session.get(), NGHTTP2_FLAG_NONE, stream, nullptr, list.data(), list.size(), nullptr);
    return;
  }
  nghttp2_data_provider provider{};
  provider.read_callback = Impl::read_body;
  nghttp2_submit_response(impl_->session.get(), stream, list.data(), list.size(),
                          body == Body::kFollows ? &provider : nullptr);
}

void Http2Session::resume(StreamId stream) {
  nghttp2_session_resume_data(impl_->session.get(), stream);
}

void Http2Session::set_priority(StreamId stream, Priority priority) {
  const nghttp2_extpri wanted{.urgency = priority.urgency, .inc = priority.incremental ? 1 : 0};
  nghttp2_session_change_extpri_stream_priority(impl_->session.get(), stream, &wanted, 1);
}

void Http2Session::consume(StreamId stream, std::size_t bytes) {
  if (nghttp2_session_find_stream(impl_->session.get(), stream) != nullptr)
    nghttp2_session_consume(impl_->session.get(), stream, bytes);
  else
    nghttp2_session_consume_connection(impl_->session.get(), bytes);
}

void Http2Session::reset(StreamId stream, Code code) {
  nghttp2_submit_rst_stream(impl_->session.get(), NGHTTP2_FLAG_NONE, stream, static_cast<std::uint32_t>(code));
}

void Http2Session::ping() {
  nghttp2_submit_ping(impl_->session.get(), NGHTTP2_FLAG_NONE, nullptr);
}

void Http2Session::go_away() {
  nghttp2_submit_goaway(impl_->session.get(), NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(impl_->session.get()), NGHTTP2_NO_ERROR, nullptr, 0);
}

void Http2Session::terminate(Code code) {
  nghttp2_session_terminate_session2(impl_->session.get(),
                                     nghttp2_session_get_last_proc_stream_id(impl_->session.get()),
                                     static_cast<std::uint32_t>(code));
}

}  // namespace spillway::wire
