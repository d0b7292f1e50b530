#include "wire/http_parser.h"

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

constexpr std::size_t kBodyReserveMax = std::size_t{64} * 1024;  // what a Content-Length alone makes us allocate

std::string_view view(string_view text) {
  return {text.data(), text.size()};
}

std::string lower(string_view text) {
  std::string out(text.data(), text.size());
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
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

/// Feeds `parser` from the front of `input` until it is done, fails or wants more. Sets `error` on failure only.
template <bool kIsRequest>
void pump(http::basic_parser<kIsRequest>& parser, std::string& input, std::size_t unparsed_max, error_code& error) {
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
}

}  // namespace

// What Beast tells of a request, kept as a Request.
struct RequestParser::Impl {
  class Message final : public http::basic_parser<true> {
   public:
    Message(std::size_t header_bytes_max, std::size_t body_bytes_max) {
      eager(true);
      header_limit(static_cast<std::uint32_t>(header_bytes_max));
      body_limit(body_bytes_max);
    }

    api::Request request;
    int version = 11;
    bool has_host = false;
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
      if (field == http::field::host) has_host = true;
      if (field == http::field::expect && iequals(value, "100-continue")) expects_continue = true;
      request.headers.emplace_back(lower(name), std::string(view(value)));
    }

    void on_header_impl(error_code& ec) override {
      header_complete_ = true;
      if (version >= 11 && !has_host) ec = http::error::bad_field;
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

  Impl(std::size_t header_max, std::size_t body_max) : header_bytes_max(header_max), body_bytes_max(body_max) {
    message.emplace(header_bytes_max, body_bytes_max);
  }

  std::size_t header_bytes_max;
  std::size_t body_bytes_max;
  std::optional<Message> message;
};

RequestParser::RequestParser(std::size_t header_bytes_max, std::size_t body_bytes_max)
    : impl_(std::make_unique<Impl>(header_bytes_max, body_bytes_max)) {}

RequestParser::~RequestParser() = default;

Result<RequestParser::Step> RequestParser::feed(std::string& input) {
  Impl::Message& message = *impl_->message;
  if (!message.got_some()) {
    // Some clients end a body with a line end that is not part of it.
    input.erase(0, std::min(input.find_first_not_of("\r\n"), input.size()));
  }
  error_code error;
  pump(message, input, impl_->header_bytes_max, error);
  if (error == http::error::body_limit) {
    return make_error(ErrorCode::kRequestEntityTooLarge, "Request entity too large: limit is {}",
                      impl_->body_bytes_max);
  }
  if (error == http::error::header_limit) {
    return make_error(ErrorCode::kBadRequest, "malformed HTTP request: more than {} bytes of header",
                      impl_->header_bytes_max);
  }
  if (error) {
    const bool host = message.is_header_done() && message.version >= 11 && !message.has_host;
    return make_error(ErrorCode::kBadRequest, "malformed HTTP request: {}",
                      host ? "missing Host header" : error.message());
  }
  if (message.is_done()) return Step::kDone;
  return message.is_header_done() ? Step::kBody : Step::kNeedMore;
}

const api::Request& RequestParser::request() const {
  return impl_->message->request;
}

api::Request RequestParser::take() {
  api::Request request = std::move(impl_->message->request);
  impl_->message.emplace(impl_->header_bytes_max, impl_->body_bytes_max);
  return request;
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

// What Beast tells of an answer: status and headers kept, body bytes passed on.
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
  std::optional<Message> message;
};

ResponseParser::ResponseParser(api::Method to) : impl_(std::make_unique<Impl>(to == api::Method::kHead)) {}

ResponseParser::~ResponseParser() = default;

Result<ResponseParser::Step> ResponseParser::feed(std::string& input) {
  constexpr std::size_t kUnparsedMax = std::size_t{64} * 1024;
  error_code error;
  pump(*impl_->message, input, kUnparsedMax, error);
  while (!error && impl_->message->is_done() && impl_->message->head.status / 100 == 1) {
    impl_->message.emplace(impl_->no_body);
    pump(*impl_->message, input, kUnparsedMax, error);
  }
  return impl_->step(error);
}

Result<ResponseParser::Step> ResponseParser::finish() {
  if (!impl_->message->got_some()) {
    return make_error(ErrorCode::kServiceUnavailable, "connection closed before an answer came");
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
