#include "wire/http/http_head.h"

#include "base/ascii.h"
#include "base/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>

namespace spillway::wire {

namespace {

std::string_view reason_phrase(int status) {
  switch (status) {
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "Request Entity Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Entity";
    case 429:
      return "Too Many Requests";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Status";
  }
}

bool is_framing(std::string_view name) {
  return equal_ignoring_case(name, "content-length") || equal_ignoring_case(name, "transfer-encoding") ||
         equal_ignoring_case(name, "connection");
}

void append_header(std::string_view name, std::string_view value, std::string& out) {
  out += name;
  out += ": ";
  out += field_value(value);
  out += "\r\n";
}

}  // namespace

std::string field_value(std::string_view text) {
  std::string value(text);
  std::ranges::replace_if(
      value,
      [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return (byte < 0x20 && c != '\t') || byte == 0x7f;
      },
      ' ');
  return value;
}

std::string format_response_head(const api::Response& response, const ResponseFrame& frame) {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\n", response.status, reason_phrase(response.status));
  for (const auto& [name, value] : response.headers) {
    if (!is_framing(name)) append_header(name, value, out);
  }
  if (response.header("date").empty()) append_header("Date", format_http_date(frame.date), out);
  if (frame.framing == Framing::kLength) append_header("Content-Length", fmt::format("{}", frame.body_bytes), out);
  if (frame.framing == Framing::kChunked) append_header("Transfer-Encoding", "chunked", out);
  if (!frame.keep_alive) append_header("Connection", "close", out);
  out += "\r\n";
  return out;
}

std::string format_upgrade_head(const api::Response& response) {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\n", response.status, reason_phrase(response.status));
  for (const auto& [name, value] : response.headers) append_header(name, value, out);
  out += "\r\n";
  return out;
}

std::string format_request_head(const api::Request& request, std::size_t body_bytes, std::string_view host) {
  std::string out = fmt::format("{} {} HTTP/1.1\r\n", api::to_string(request.method), request.target);
  append_header("Host", host, out);
  for (const auto& [name, value] : request.headers) {
    if (!is_framing(name) && !equal_ignoring_case(name, "host")) append_header(name, value, out);
  }
  if (!request.header("upgrade").empty()) append_header("Connection", "Upgrade", out);
  const bool expects_body = request.method == api::Method::kPost || request.method == api::Method::kPut ||
                            request.method == api::Method::kPatch;
  if (body_bytes > 0 || expects_body) {
    append_header("Content-Length", fmt::format("{}", body_bytes), out);
  }
  out += "\r\n";
  return out;
}

std::string format_http_date(WallTime time) {
  static constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::chrono::sys_seconds whole(std::chrono::floor<seconds>(time.time_since_epoch()));
  const auto day = std::chrono::floor<std::chrono::days>(whole);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(whole - day);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[std::chrono::weekday(day).c_encoding()],
                     static_cast<unsigned>(date.day()), kMonths[static_cast<unsigned>(date.month()) - 1],
                     static_cast<int>(date.year()), clock.hours().count(), clock.minutes().count(),
                     clock.seconds().count());
}

void append_chunk(std::string_view data, std::string& out) {
  SPILLWAY_DCHECK(!data.empty());
  fmt::format_to(std::back_inserter(out), "{:x}\r\n", data.size());
  out += data;
  out += "\r\n";
}

}  // namespace spillway::wire
