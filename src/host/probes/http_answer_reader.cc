#include "host/probes/http_answer_reader.h"

#include <algorithm>
#include <charconv>

namespace spillway::host {
namespace {

using containers::HttpAnswer;

constexpr std::string_view kLineEnd = "\r\n";

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

template <typename Number>
std::optional<Number> number_in(std::string_view text, int base = 10) {
  Number number{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (problem != std::errc() || end == text.data()) return std::nullopt;
  return number;
}

bool has_no_body(int status) {
  return status == 204 || status == 304;
}

}  // namespace

Outcome HttpAnswerReader::read_head() {
  std::size_t end = text_.find("\r\n\r\n");
  std::size_t gap = 4;
  if (end == std::string::npos) {
    end = text_.find("\n\n");
    gap = 2;
  }
  if (end == std::string::npos) {
    if (text_.size() > head_max_) return invalid({}, "net/http: server response headers exceeded {} bytes", head_max_);
    return {};
  }
  std::string_view head = std::string_view(text_).substr(0, end);
  const std::string_view first = head.substr(0, head.find('\n'));
  const std::size_t blank = first.find(' ');
  const auto status = blank == std::string_view::npos ? std::nullopt : number_in<int>(first.substr(blank + 1));
  if (!first.starts_with("HTTP/1.") || !status || *status < 100 || *status > 999)
    return invalid({}, "net/http: HTTP/1.x transport connection broken: malformed HTTP response");
  HttpAnswer answer{.status = *status, .location = {}, .body = {}};
  length_.reset();
  chunked_ = false;
  while (!head.empty()) {
    const std::size_t stop = std::min(head.find('\n'), head.size());
    const std::string_view line = head.substr(0, stop);
    head.remove_prefix(std::min(stop + 1, head.size()));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (same_name(name, "Location")) answer.location = value;
    if (same_name(name, "Content-Length")) length_ = number_in<std::size_t>(value);
    if (same_name(name, "Transfer-Encoding") && same_name(value, "chunked")) chunked_ = true;
  }
  text_.erase(0, end + gap);
  if (answer.status < 200) return read_head();  // an interim answer: the final one follows
  if (has_no_body(answer.status)) length_ = 0;
  head_ = std::move(answer);
  return {};
}

std::string HttpAnswerReader::body(bool& whole) const {
  whole = false;
  if (!chunked_) {
    const std::size_t wanted = std::min(length_.value_or(body_max_), body_max_);
    whole = text_.size() >= wanted;
    return text_.substr(0, wanted);
  }
  std::string made;
  std::string_view rest = text_;
  while (made.size() < body_max_) {
    const std::size_t stop = rest.find('\n');
    const auto size = stop == std::string_view::npos ? std::nullopt : number_in<std::size_t>(rest.substr(0, stop), 16);
    if (!size) break;
    if (*size == 0) {
      whole = true;
      break;
    }
    rest.remove_prefix(stop + 1);
    made += rest.substr(0, *size);
    if (rest.size() < *size || rest.size() - *size < kLineEnd.size()) break;
    rest.remove_prefix(*size + kLineEnd.size());
  }
  if (made.size() >= body_max_) whole = true;
  made.resize(std::min(made.size(), body_max_));
  return made;
}

Result<std::optional<HttpAnswer>> HttpAnswerReader::add(std::string_view bytes) {
  text_ += bytes;
  if (!head_) SPILLWAY_TRY_VOID(read_head());
  if (!head_) return std::optional<HttpAnswer>();
  bool whole = false;
  HttpAnswer answer = *head_;
  answer.body = body(whole);
  if (text_.size() > head_max_) whole = true;  // chunks this small: the answer is taken as it is
  return whole ? std::optional(std::move(answer)) : std::nullopt;
}

Result<HttpAnswer> HttpAnswerReader::end() const {
  if (!head_) return invalid({}, "EOF");
  bool whole = false;
  HttpAnswer answer = *head_;
  answer.body = body(whole);
  if (!whole && (chunked_ || length_)) return invalid({}, "unexpected EOF");
  return answer;
}

}  // namespace spillway::host
