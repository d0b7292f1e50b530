#include "wire/http2/http2_core.h"

#include "base/ascii.h"
#include "base/check.h"
#include "wire/http/http_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

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

/// Fields for the framing of HTTP/1.1, which HTTP/2 forbids.
bool is_of_connection(std::string_view name) {
  return name == "connection" || name == "transfer-encoding" || name == "keep-alive" || name == "proxy-connection" ||
         name == "upgrade";
}

}  // namespace

void Http2Core::FieldList::add(std::string_view name, std::string_view value) {
  std::string lower = lower_case(name);
  if (!is_of_connection(lower)) fields_.emplace_back(std::move(lower), field_value(value));
}

std::vector<nghttp2_nv> Http2Core::FieldList::list() {
  std::vector<nghttp2_nv> list;
  list.reserve(fields_.size());
  for (auto& [name, value] : fields_)
    list.push_back({bytes_of(name), bytes_of(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
  return list;
}

struct Http2Core::Callbacks {
  static Http2Core& of(void* self) { return *static_cast<Http2Core*>(self); }

  static int on_begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    if (frame->hd.type == NGHTTP2_HEADERS && of(self).begins_head(*frame)) of(self).heads_[frame->hd.stream_id] = {};
    return 0;
  }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                       const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* self) {
    const auto found = of(self).heads_.find(frame->hd.stream_id);
    if (found == of(self).heads_.end()) return 0;  // a trailer, which is not used
    return of(self).add_field(found->second, view(name, name_size), view(value, value_size));
  }

  /// Frames of priorities are only counted: no session here follows them. A push promise would otherwise be reported
  /// once its fields have been read; they are refused in the settings.
  static int on_begin_frame(nghttp2_session*, const nghttp2_frame_hd* head, void* self) {
    if (head->type == NGHTTP2_PRIORITY || head->type == NGHTTP2_PRIORITY_UPDATE)
      of(self).count(FloodGuard::Frame::kPriority);
    if (head->type == NGHTTP2_PUSH_PROMISE) of(self).terminate(Http2Code::kProtocolError);
    return 0;
  }

  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    of(self).on_frame(*frame);
    return 0;
  }

  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t stream, const std::uint8_t* data, std::size_t size,
                     void* self) {
    of(self).on_body(stream, view(data, size));
    return 0;
  }

  static int on_stream_close(nghttp2_session*, std::int32_t stream, std::uint32_t code, void* self) {
    of(self).heads_.erase(stream);
    of(self).answered_.erase(stream);
    of(self).on_stream_closed(stream, code);
    return 0;
  }

  /// Resets that a peer provokes count as if it had sent them.
  static int on_frame_sent(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    of(self).on_sent(*frame);
    const bool begins = frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_RESPONSE &&
                        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0;
    if (begins) of(self).answered_.insert(frame->hd.stream_id);
    const bool provoked = frame->hd.type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code != NGHTTP2_NO_ERROR &&
                          frame->rst_stream.error_code != NGHTTP2_CANCEL;
    if (provoked) of(self).count(FloodGuard::Frame::kReset);
    return 0;
  }

  static ssize_t read_body(nghttp2_session*, std::int32_t stream, std::uint8_t*, std::size_t size, std::uint32_t* flags,
                           nghttp2_data_source*, void* self) {
    const Http2BodyPart part = of(self).next_body(stream, size);
    if (part.bytes.empty() && !part.last) return NGHTTP2_ERR_DEFERRED;
    if (part.last) *flags |= NGHTTP2_DATA_FLAG_EOF;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    of(self).sending_ = part.bytes;
    return static_cast<ssize_t>(part.bytes.size());
  }

  static int send_data(nghttp2_session*, nghttp2_frame* frame, const std::uint8_t* head, std::size_t size,
                       nghttp2_data_source*, void* self) {
    Http2Core& core = of(self);
    SPILLWAY_CHECK(size == core.sending_.size() && frame->data.padlen == 0);
    core.out_->append(view(head, 9));
    core.out_->append(core.sending_);
    core.sending_ = {};
    core.guard_.on_data_sent();
    core.on_body_sent(frame->hd.stream_id, size);
    return 0;
  }
};

Http2Core::Http2Core(Role role, const Http2Bounds& bounds) : bounds_(bounds) {
  nghttp2_session_callbacks* made_callbacks = nullptr;
  SPILLWAY_CHECK(nghttp2_session_callbacks_new(&made_callbacks) == 0);
  const std::unique_ptr<nghttp2_session_callbacks, CallbacksFree> callbacks(made_callbacks);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks.get(), Callbacks::on_begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(callbacks.get(), Callbacks::on_header);
  nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks.get(), Callbacks::on_begin_frame);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks.get(), Callbacks::on_frame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks.get(), Callbacks::on_data);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks.get(), Callbacks::on_stream_close);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks.get(), Callbacks::on_frame_sent);
  nghttp2_session_callbacks_set_send_data_callback(callbacks.get(), Callbacks::send_data);
  nghttp2_option* made_option = nullptr;
  SPILLWAY_CHECK(nghttp2_option_new(&made_option) == 0);
  const std::unique_ptr<nghttp2_option, OptionFree> option(made_option);
  nghttp2_option_set_no_auto_window_update(option.get(), 1);
  nghttp2_option_set_no_closed_streams(option.get(), 1);
  nghttp2_option_set_max_continuations(option.get(), kContinuationsMax);
  nghttp2_option_set_max_outbound_ack(option.get(), kAcknowledgementsMax);
  nghttp2_option_set_max_settings(option.get(), kSettingsMax);
  nghttp2_session* made = nullptr;
  const auto make = role == Role::kServer ? nghttp2_session_server_new2 : nghttp2_session_client_new2;
  SPILLWAY_CHECK(make(&made, callbacks.get(), this, option.get()) == 0);
  session_.reset(made);
  std::vector<nghttp2_settings_entry> settings = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, role == Role::kServer ? bounds.streams_max : 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, bounds.stream_window_bytes},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(bounds.head_bytes_max)},
      {NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, kHeaderTableBytes},
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1}};
  if (role == Role::kClient) settings.push_back({NGHTTP2_SETTINGS_ENABLE_PUSH, 0});
  SPILLWAY_CHECK(nghttp2_submit_settings(made, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) == 0);
  SPILLWAY_CHECK(nghttp2_session_set_local_window_size(made, NGHTTP2_FLAG_NONE, 0, bounds.connection_window_bytes) ==
                 0);
}

nghttp2_data_provider Http2Core::body_provider() {
  nghttp2_data_provider provider{};
  provider.read_callback = Callbacks::read_body;
  return provider;
}

bool Http2Core::feed(std::string_view bytes, Instant now) {
  now_ = now;
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return nghttp2_session_mem_recv(session_.get(), data, bytes.size()) >= 0;
}

bool Http2Core::pull(std::string& out, std::size_t size) {
  out_ = &out;
  while (out.size() < size) {
    const std::uint8_t* data = nullptr;
    const std::size_t before = out.size();
    const ssize_t got = nghttp2_session_mem_send(session_.get(), &data);
    if (got < 0) return false;
    if (got == 0 && out.size() == before) break;
    out.append(view(data, static_cast<std::size_t>(got)));
  }
  out_ = nullptr;
  return true;
}

bool Http2Core::is_over() const {
  return nghttp2_session_want_read(session_.get()) == 0 && nghttp2_session_want_write(session_.get()) == 0;
}

void Http2Core::reset(Http2StreamId stream, Http2Code code) {
  nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, stream, static_cast<std::uint32_t>(code));
}

void Http2Core::terminate(Http2Code code) {
  nghttp2_session_terminate_session2(session_.get(), nghttp2_session_get_last_proc_stream_id(session_.get()),
                                     static_cast<std::uint32_t>(code));
}

void Http2Core::count(FloodGuard::Frame frame) {
  if (flood_ || guard_.allows(frame, now_)) return;
  flood_ = frame;
  terminate(Http2Code::kEnhanceYourCalm);
}

/// nghttp2 has validated names and values, and that each pseudo field is at the beginning and there once.
int Http2Core::add_field(Head& head, std::string_view name, std::string_view value) {
  head.bytes += name.size() + value.size() + kFieldOverhead;
  ++head.fields;
  if (head.bytes > 2 * bounds_.head_bytes_max) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;  // the stream is reset
  head.too_large = head.too_large || head.bytes > bounds_.head_bytes_max || head.fields > bounds_.fields_max;
  if (head.too_large) return 0;
  const auto find = [&](std::string_view wanted) {
    return std::ranges::find(head.headers, wanted, [](const auto& field) { return std::string_view(field.first); });
  };
  if (name == ":method") {
    head.method = value;
  } else if (name == ":path") {
    head.path = value;
  } else if (name == ":status") {
    std::from_chars(value.data(), value.data() + value.size(), head.status);
  } else if (name == ":authority") {
    head.headers.emplace_back("host", value);
  } else if (name == "cookie" && find(name) != head.headers.end()) {  // cookies may be split: RFC 9113, 8.2.3
    find(name)->second += fmt::format("; {}", value);
  } else if (name == "host" && find(name) != head.headers.end()) {
    return 0;
  } else if (!name.starts_with(':')) {
    head.headers.emplace_back(name, value);
  }
  return 0;
}

void Http2Core::on_frame(const nghttp2_frame& frame) {
  using Frame = FloodGuard::Frame;
  const std::int32_t stream = frame.hd.stream_id;
  const bool ends = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  const bool acknowledges = (frame.hd.flags & NGHTTP2_FLAG_ACK) != 0;
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS:
      if (auto head = heads_.extract(stream))
        on_head(stream, std::move(head.mapped()), ends);
      else if (ends)
        on_message_end(stream);
      break;
    case NGHTTP2_DATA:
      on_data_frame(frame.hd.length);
      if (frame.hd.length > 0)
        guard_.on_data_received();
      else if (!ends)
        count(Frame::kEmpty);
      if (ends) on_message_end(stream);
      break;
    case NGHTTP2_RST_STREAM:
      // A client that stops a watch, or an answer that it has begun to read, has paid for it as for any request. A
      // flood ends streams before they are answered.
      if (!answered_.contains(stream) || frame.rst_stream.error_code != NGHTTP2_CANCEL) count(Frame::kReset);
      break;
    case NGHTTP2_PING:
      if (!acknowledges) count(Frame::kPing);
      break;
    case NGHTTP2_SETTINGS:
      if (!acknowledges) count(Frame::kSettings);
      break;
    case NGHTTP2_WINDOW_UPDATE:
      count(Frame::kWindowUpdate);
      break;
    default:
      break;
  }
}

}  // namespace spillway::wire
