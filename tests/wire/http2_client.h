// A client of HTTP/2 that waits, on nghttp2's own client side, and frames by hand for one that misbehaves.
#pragma once

#include "wire/wire_fixture.h"

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::wire {

class Http2Client {
 public:
  struct Got {
    int status = 0;
    std::map<std::string, std::string> fields;
    std::string body;
    bool closed = false;
    std::uint32_t code = 0;  // the error code at the end of the stream
  };

  using Fields = std::vector<std::pair<std::string, std::string>>;

  Http2Client(std::uint16_t port, const TlsContext& tls) : connection_(port, &tls) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_option* option = nullptr;
    nghttp2_option_new(&option);
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_session_client_new2(&session_, callbacks, this, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, nullptr, 0);
  }

  ~Http2Client() { nghttp2_session_del(session_); }

  Http2Client(const Http2Client&) = delete;
  Http2Client& operator=(const Http2Client&) = delete;

  std::string_view protocol() { return connection_.stream().protocol(); }

  /// `body`: nullopt for none.
  std::int32_t ask(std::string method, std::string path, Fields more = {}, std::optional<std::string> body = {}) {
    Fields fields = {
        {":method", std::move(method)}, {":scheme", "https"}, {":authority", "x"}, {":path", std::move(path)}};
    fields.insert(fields.end(), more.begin(), more.end());
    std::vector<nghttp2_nv> list;
    for (auto& [name, value] : fields)
      list.push_back({reinterpret_cast<std::uint8_t*>(name.data()), reinterpret_cast<std::uint8_t*>(value.data()),
                      name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
    auto upload = std::make_unique<Upload>(Upload{body.value_or(""), 0});
    nghttp2_data_provider provider{};
    provider.source.ptr = upload.get();
    provider.read_callback = read_upload;
    const std::int32_t stream =
        nghttp2_submit_request(session_, nullptr, list.data(), list.size(), body ? &provider : nullptr, nullptr);
    uploads_[stream] = std::move(upload);
    got_[stream];
    send();
    return stream;
  }

  /// Reads until the stream is closed, or the connection is.
  Got& answer(std::int32_t stream) {
    while (!got_[stream].closed && turn()) {
    }
    return got_[stream];
  }

  Got& get(std::string path) { return answer(ask("GET", std::move(path))); }

  /// Reads until the stream has this number of bytes of its body.
  Got& body_of(std::int32_t stream, std::size_t bytes) {
    while (got_[stream].body.size() < bytes && !got_[stream].closed && turn()) {
    }
    return got_[stream];
  }

  /// Handles the next frames; false at the end of the connection.
  bool turn() {
    if (!connection_.receive()) return false;
    const std::string bytes = std::exchange(connection_.received, {});
    const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
    if (nghttp2_session_mem_recv(session_, data, bytes.size()) < 0) return false;
    send();
    return true;
  }

  /// Reads to the end of the connection.
  void drain() {
    while (turn()) {
    }
  }

  /// Requests until uncork() leave together, in one piece.
  void cork() { corked_ = true; }

  void uncork() {
    corked_ = false;
    std::string all;
    const std::uint8_t* data = nullptr;
    for (ssize_t size = 0; (size = nghttp2_session_mem_send(session_, &data)) > 0;)
      all.append(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
    connection_.send(all);
  }

  /// Does not extend the window of this stream any more.
  void hold(std::int32_t stream) { held_ = stream; }

  void reset(std::int32_t stream) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
    send();
  }

  /// Until the server has answered, which has then read all that was sent before.
  void ping_and_wait() {
    nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
    send();
    for (const int before = pongs; pongs == before && turn();) {
    }
  }

  /// The error code of a received GOAWAY; nullopt: none.
  std::optional<std::uint32_t> went_away;
  int pongs = 0;

 private:
  struct Upload {
    std::string data;
    std::size_t taken = 0;
  };

  static Http2Client& of(void* self) { return *static_cast<Http2Client*>(self); }

  static std::string text(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
  }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                       const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* self) {
    Got& got = of(self).got_[frame->hd.stream_id];
    const std::string field = text(name, name_size);
    if (field == ":status")
      got.status = std::stoi(text(value, value_size));
    else
      got.fields[field] = text(value, value_size);
    return 0;
  }

  static int on_data(nghttp2_session* session, std::uint8_t, std::int32_t stream, const std::uint8_t* data,
                     std::size_t size, void* self) {
    of(self).got_[stream].body += text(data, size);
    if (of(self).held_ != stream) nghttp2_session_consume_stream(session, stream, size);
    nghttp2_session_consume_connection(session, size);
    return 0;
  }

  static int on_close(nghttp2_session*, std::int32_t stream, std::uint32_t code, void* self) {
    of(self).got_[stream].closed = true;
    of(self).got_[stream].code = code;
    return 0;
  }

  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    if (frame->hd.type == NGHTTP2_GOAWAY) of(self).went_away = frame->goaway.error_code;
    if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) ++of(self).pongs;
    return 0;
  }

  static ssize_t read_upload(nghttp2_session*, std::int32_t, std::uint8_t* into, std::size_t size, std::uint32_t* flags,
                             nghttp2_data_source* source, void*) {
    auto& upload = *static_cast<Upload*>(source->ptr);
    const std::size_t taken = upload.data.copy(reinterpret_cast<char*>(into), size, upload.taken);
    upload.taken += taken;
    if (upload.taken == upload.data.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(taken);
  }

  void send() {
    while (!corked_) {
      const std::uint8_t* data = nullptr;
      const ssize_t size = nghttp2_session_mem_send(session_, &data);
      if (size <= 0 || !connection_.send(text(data, static_cast<std::size_t>(size)))) return;
    }
  }

  TestClient connection_;
  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, Got> got_;
  std::map<std::int32_t, std::unique_ptr<Upload>> uploads_;
  std::int32_t held_ = 0;
  bool corked_ = false;
};

// Frames by hand. Source: RFC 9113, 4.1.
enum class FrameType : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
};

inline constexpr int kEndStream = 1;
inline constexpr int kEndHeaders = 4;

inline std::string big_endian(std::uint32_t number, int bytes = 4) {
  std::string out;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out += static_cast<char>(number >> shift);
  return out;
}

inline std::string frame_of(FrameType type, int flags, std::uint32_t stream, std::string_view payload) {
  std::string out = big_endian(static_cast<std::uint32_t>(payload.size()), 3);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  out += big_endian(stream);
  return out.append(payload);
}

inline std::string preface() {
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame_of(FrameType::kSettings, 0, 0, "");
}

/// GET / of https://x, without a table (RFC 7541, appendix A).
inline const std::string kGetHead = "\x82\x87\x84\x01\x01x";

inline std::string get_frame(std::uint32_t stream) {
  return frame_of(FrameType::kHeaders, kEndStream | kEndHeaders, stream, kGetHead);
}

}  // namespace spillway::wire
