#include "wire/http/http_parser.h"

#include "base/ascii.h"

// Beast 1.81 asserts that the end of a last chunk, "0\r\n" CRLF, never arrives in two pieces; it may, and is then
// parsed correctly.
#define BOOST_DISABLE_ASSERTS

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace spillway::wire {

namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::iequals;
using boost::beast::string_view;

// The most that a Content-Length alone makes us allocate.
constexpr std::size_t kBodyReserveMax = std::size_t{64} * 1024;

std::string_view view(string_view text) {
  return {text.data(), text.size()};
}

/// An origin-form target, also from "http://host/path"; empty if it is neither.
std::string origin_form(std::string_view target) {
  if (target.starts_with('/') || target == "*") return std::string(target);
  const std::size_t scheme = target.find("://");
  if (scheme == std::string_view::npos) return {};
  const std::size_t path = target.find_first_of("/?", scheme + 3);
  if (path == std::string_view::npos) return "/";
  return target[path] == '/' ? std::string(target.substr(path)) : "/" + std::string(target.substr(path));
}

/// Feeds `parser` from the front of `input` until it is done, fails or wants more. Sets `error` on failure only. The
/// number of bytes consumed.
template <bool kIsRequest>
std::size_t pump(http::basic_parser<kIsRequest>& parser, std::string& input, std::size_t unparsed_max,
                 error_code& error) {
  std::size_t used = 0;
  while (!parser.is_done() && used < input.size()) {
    const std::size_t taken = parser.put({input.data() + used, input.size() - used}, error);
    used += taken;
    if (error == http::error::need_more) {
      error = {};
      if (input.size() - used > unparsed_max) error = http::error::header_limit;  // an endless chunk or trailer line
      break;
    }
    if (error) break;
  }
  input.erase(0, used);
  return used;
}

/// Measures the head of a request as its bytes arrive, each once.
class HeadMeter {
 public:
  explicit HeadMeter(const RequestBounds& bounds) : bounds_(bounds) {}

  /// `input`: the received bytes that are not consumed; their beginning may have been measured before. Zero, or the
  /// HTTP status of a head that is too long.
  int measure(std::string_view input) {
    std::size_t at = measured_;
    while (!complete_ && at < input.size()) {
      const std::size_t end = input.find('\n', at);
      const std::size_t next = end == std::string_view::npos ? input.size() : end + 1;
      const bool ends_with_cr = next - at > 1 ? input[next - 2] == '\r' : last_ == '\r';
      bytes_ += next - at;
      line_bytes_ += next - at;
      last_ = input[next - 1];
      at = next;
      if (lines_ == 0 && line_bytes_ > bounds_.request_line_bytes_max) return 414;
      if (bytes_ > bounds_.head_bytes_max) return 431;
      if (end == std::string_view::npos) break;
      complete_ = line_bytes_ == 2 && ends_with_cr && lines_ > 0;
      if (!complete_ && lines_ > bounds_.fields_max) return 431;
      ++lines_;
      line_bytes_ = 0;
    }
    measured_ = input.size();
    return 0;
  }

  void consume(std::size_t bytes) { measured_ -= std::min(measured_, bytes); }

  /// Bytes of the head so far; of the whole head once it is complete.
  std::size_t bytes() const { return bytes_; }

 private:
  const RequestBounds& bounds_;
  std::size_t measured_ = 0;  // leading bytes of the input
  std::size_t bytes_ = 0;
  std::size_t lines_ = 0;
  std::size_t line_bytes_ = 0;  // bytes of the line that has not ended
  char last_ = 0;
  bool complete_ = false;
};

/// The characters of a name, an address or a port (RFC 3986, 3.2.2); may be empty.
bool is_host(std::string_view text) {
  constexpr std::string_view kOthers = "!$%&'()*+,-.:;=[]_~";
  return std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kOthers.find(c) != std::string_view::npos;
  });
}

}  // namespace

// Receives the events of Beast's parser and keeps them as a Request.
struct RequestParser::Impl {
  class Message final : public http::basic_parser<true> {
   public:
    explicit Message(std::size_t body_bytes_max) {
      eager(true);
      header_limit(std::numeric_limits<std::uint32_t>::max());  // HeadMeter counts exactly
      body_limit(body_bytes_max);
    }

    api::Request request;
    int version = 11;
    bool has_host = false;
    std::string_view host_problem;  // why the request is refused for its Host; empty: valid
    bool expects_continue = false;

   private:
    void on_request_impl(http::verb, string_view method, string_view target, int http_version,
                         error_code& ec) override {
      request.method = api::parse_method(view(method));
      request.target = origin_form(view(target));
      version = http_version;
      if (request.target.empty()) ec = http::error::bad_target;
    }

    void on_response_impl(int, string_view, int, error_code&) override {}

    void on_field_impl(http::field field, string_view name, string_view value, error_code& ec) override {
      if (header_complete_) return;  // a trailer: must not pass for a header
      if (field == http::field::transfer_encoding && !iequals(value, "chunked")) {
        ec = http::error::bad_transfer_encoding;  // a coding we would have to undo to find the end of the body
        return;
      }
      if (field == http::field::host) {
        if (has_host) host_problem = "too many Host headers";
        if (!is_host(view(value))) host_problem = "malformed Host header";
        if (!host_problem.empty()) {
          ec = http::error::bad_field;
          return;
        }
        has_host = true;
      }
      if (field == http::field::expect && iequals(value, "100-continue")) expects_continue = true;
      request.headers.emplace_back(lower_case(view(name)), std::string(view(value)));
    }

    void on_header_impl(error_code& ec) override {
      header_complete_ = true;
      if (version >= 11 && !has_host) {
        host_problem = "missing Host header";
        ec = http::error::bad_field;
      }
    }

    void on_body_init_impl(const boost::optional<std::uint64_t>& length, error_code&) override {
      if (length) request.body.reserve(std::min<std::size_t>(*length, kBodyReserveMax));
    }

    std::size_t on_body_impl(string_view body, error_code&) override {
      request.body.append(body.data(), body.size());
      return body.size();
    }

    void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}

    std::size_t on_chunk_body_impl(std::uint64_t, string_view body, error_code&) override {
      request.body.append(body.data(), body.size());
      return body.size();
    }

    void on_finish_impl(error_code&) override {}

    bool header_complete_ = false;
  };

  explicit Impl(const RequestBounds& given) : bounds(given) { begin(); }

  void begin() {
    message.emplace(bounds.body_bytes_max);
    meter.emplace(bounds);
    consumed = 0;
  }

  Error refuse(int status, std::string why) {
    http_status = status;
    const ErrorCode code = status == 413 ? ErrorCode::kRequestEntityTooLarge : ErrorCode::kBadRequest;
    return Error{code, std::move(why), {}};
  }

  const RequestBounds bounds;
  std::optional<Message> message;
  std::optional<HeadMeter> meter;
  std::size_t consumed = 0;  // bytes of the present request that the parser has taken
  int http_status = 400;
};

RequestParser::RequestParser(const RequestBounds& bounds) : impl_(std::make_unique<Impl>(bounds)) {}

RequestParser::~RequestParser() = default;

Result<RequestParser::Step> RequestParser::feed(std::string& input) {
  Impl::Message& message = *impl_->message;
  if (!message.got_some()) {
    // Some clients end a body with a line end that is not part of it.
    input.erase(0, std::min(input.find_first_not_of("\r\n"), input.size()));
  }
  const RequestBounds& bounds = impl_->bounds;
  if (!message.is_header_done()) {
    const int status = impl_->meter->measure(input);
    if (status == 414) {
      return impl_->refuse(status, fmt::format("malformed HTTP request: more than {} bytes of request line",
                                               bounds.request_line_bytes_max));
    }
    if (status != 0) {
      return impl_->refuse(status, fmt::format("malformed HTTP request: more than {} bytes or {} fields of header",
                                               bounds.head_bytes_max, bounds.fields_max));
    }
  }
  error_code error;
  const std::size_t used = pump(message, input, bounds.chunking_bytes_max, error);
  impl_->consumed += used;
  impl_->meter->consume(used);
  if (error == http::error::body_limit) {
    return impl_->refuse(413, fmt::format("Request entity too large: limit is {}", bounds.body_bytes_max));
  }
  if (error == http::error::header_limit) {
    return impl_->refuse(400, fmt::format("malformed HTTP request: more than {} bytes of chunk header or trailer",
                                          bounds.chunking_bytes_max));
  }
  if (error) {
    const std::string why = message.host_problem.empty() ? error.message() : std::string(message.host_problem);
    return impl_->refuse(400, fmt::format("malformed HTTP request: {}", why));
  }
  if (message.is_header_done()) {
    const std::size_t body = message.request.body.size();
    const std::size_t chunking = impl_->consumed - std::min(impl_->consumed, impl_->meter->bytes() + body);
    if (chunking > bounds.chunking_bytes_max + bounds.chunking_bytes_per_byte * body) {
      return impl_->refuse(
          400, fmt::format("malformed HTTP request: {} bytes of chunk headers and trailers around {} bytes of body",
                           chunking, body));
    }
  }
  if (message.is_done()) return Step::kDone;
  return message.is_header_done() ? Step::kBody : Step::kNeedMore;
}

const api::Request& RequestParser::request() const {
  return impl_->message->request;
}

api::Request RequestParser::take() {
  api::Request request = std::move(impl_->message->request);
  impl_->begin();
  return request;
}

int RequestParser::http_status() const {
  return impl_->http_status;
}

bool RequestParser::keep_alive() const {
  return impl_->message->keep_alive();
}

bool RequestParser::expects_continue() const {
  return impl_->message->expects_continue;
}

bool RequestParser::http_1_0() const {
  return impl_->message->version < 11;
}

bool RequestParser::started() const {
  return impl_->message->got_some();
}

// Receives the events of Beast's parser: status and headers are kept, body bytes passed on.
struct ResponseParser::Impl {
  class Message final : public http::basic_parser<false> {
   public:
    explicit Message(bool no_body) {
      eager(true);
      header_limit(std::numeric_limits<std::uint16_t>::max());
      body_limit(boost::none);
      skip(no_body);
    }

    api::Response head;
    std::string body;

   private:
    void on_request_impl(http::verb, string_view, string_view, int, error_code&) override {}

    void on_response_impl(int code, string_view, int, error_code&) override { head.status = code; }

    void on_field_impl(http::field field, string_view name, string_view value, error_code& ec) override {
      if (header_complete_) return;
      if (field == http::field::transfer_encoding && !iequals(value, "chunked")) {
        ec = http::error::bad_transfer_encoding;
        return;
      }
      head.headers.emplace_back(std::string(view(name)), std::string(view(value)));
    }

    void on_header_impl(error_code&) override { header_complete_ = true; }

    void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}

    std::size_t on_body_impl(string_view text, error_code&) override {
      body.append(text.data(), text.size());
      return text.size();
    }

    void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}

    std::size_t on_chunk_body_impl(std::uint64_t, string_view text, error_code&) override {
      body.append(text.data(), text.size());
      return text.size();
    }

    void on_finish_impl(error_code&) override {}

    bool header_complete_ = false;
  };

  explicit Impl(bool head_request) : no_body(head_request) { message.emplace(no_body); }

  Result<Step> step(const error_code& error) const {
    if (error) return make_error(ErrorCode::kServiceUnavailable, "malformed HTTP answer: {}", error.message());
    if (message->is_done()) return Step::kDone;
    return message->is_header_done() ? Step::kBody : Step::kNeedMore;
  }

  bool no_body;
  bool may_upgrade = false;
  std::optional<Message> message;
};

ResponseParser::ResponseParser(api::Method to, Upgrade upgrade)
    : impl_(std::make_unique<Impl>(to == api::Method::kHead)) {
  impl_->may_upgrade = upgrade == Upgrade::kAsked;
}

ResponseParser::~ResponseParser() = default;

Result<ResponseParser::Step> ResponseParser::feed(std::string& input) {
  constexpr std::size_t kUnparsedMax = std::size_t{64} * 1024;
  error_code error;
  pump(*impl_->message, input, kUnparsedMax, error);
  const auto is_interim = [this](int status) { return status / 100 == 1 && !(status == 101 && impl_->may_upgrade); };
  while (!error && impl_->message->is_done() && is_interim(impl_->message->head.status)) {
    impl_->message.emplace(impl_->no_body);
    pump(*impl_->message, input, kUnparsedMax, error);
  }
  return impl_->step(error);
}

Result<ResponseParser::Step> ResponseParser::finish() {
  if (!impl_->message->got_some()) {
    return make_error(ErrorCode::kServiceUnavailable, "connection closed before an answer arrived");
  }
  error_code error;
  impl_->message->put_eof(error);
  if (error) return make_error(ErrorCode::kServiceUnavailable, "connection closed in the middle of an answer");
  return Step::kDone;
}

const api::Response& ResponseParser::head() const {
  return impl_->message->head;
}

std::string ResponseParser::take_body() {
  return std::exchange(impl_->message->body, {});
}

bool ResponseParser::keep_alive() const {
  return impl_->message->is_header_done() && impl_->message->keep_alive();
}

}  // namespace spillway::wire
