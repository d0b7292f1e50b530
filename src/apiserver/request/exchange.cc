#include "apiserver/request/exchange.h"

#include "api/json/indented_text.h"
#include "api/schema/protobuf.h"
#include "api/schema/protobuf_writer.h"
#include "apiserver/request/observed_upgrade.h"
#include "apiserver/resource/slice_queue.h"
#include "base/ascii.h"
#include "base/check.h"
#include "base/utf8.h"

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::apiserver {

namespace {

constexpr std::size_t kStandardHeaders = 8;           // room for those of most answers
constexpr std::size_t kWarningBytesMax = 4U << 10U;   // total of the Warning headers of an answer; the rest is left out
constexpr std::size_t kWarningCutBytes = 256;         // each warning is cut to this length when the total is too long
constexpr std::size_t kPrettyBlanks = 2;              // as upstream
constexpr std::size_t kPrettyBytesMax = 256U << 10U;  // longer answers are not indented
constexpr std::size_t kWholeBytesMin = 128U << 10U;   // below this an answer has a length, and is not compressed

/// A Warning header value may not carry quotes or control characters unescaped.
std::string warning_value(std::string_view text) {
  std::string value = "299 - \"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) continue;
    if (c == '"' || c == '\\') value += '\\';
    value += c;
  }
  return value + '"';
}

}  // namespace

const ReadBody Exchange::kUnread;

Exchange::Exchange(std::uint64_t id, api::Request request, std::shared_ptr<const api::UserInfo> user,
                   std::shared_ptr<const ReadRequest> read, std::shared_ptr<api::ResponseSink> sink,
                   std::string audit_id, Finished finished)
    : target(read->target),
      asked(read->asked),
      id_(id),
      request_(std::move(request)),
      user_(std::move(user)),
      read_(std::move(read)),
      sink_(std::move(sink)),
      audit_id_(std::move(audit_id)),
      finished_(std::move(finished)) {
  SPILLWAY_CHECK(sink_ != nullptr);
}

std::string Exchange::user_agent_name() const {
  const std::string_view agent = request_.header("user-agent");
  const std::string_view name = agent.substr(0, agent.find('/'));
  return name.empty() ? "unknown" : std::string(name.substr(0, 128));
}

void Exchange::replace_body(const api::Json& document) {
  request_.body = api::to_text(document);
  request_.document = nullptr;
  body_replaced_ = true;
  std::erase_if(request_.headers, [](const auto& header) { return header.first == "content-type"; });
  request_.headers.emplace_back("content-type", "application/json");
}

api::HeaderList Exchange::standard_headers(std::string_view content_type) const {
  api::HeaderList headers;
  headers.reserve(kStandardHeaders);
  headers.emplace_back("Audit-Id", audit_id_);
  headers.emplace_back("Cache-Control", "no-cache, private");
  headers.emplace_back("Content-Type", content_type);
  if (flow != nullptr) {
    headers.emplace_back("X-Kubernetes-PF-FlowSchema-UID", flow->schema_uid);
    headers.emplace_back("X-Kubernetes-PF-PriorityLevel-UID", flow->level_uid);
  }
  std::size_t all = 0;
  for (const std::string& warning : warnings) all += warning.size();
  std::size_t bytes = 0;
  for (const std::string& warning : warnings) {
    const std::string shown = all > kWarningBytesMax ? shortened(warning, kWarningCutBytes) : warning;
    bytes += shown.size();
    if (bytes > kWarningBytesMax) break;
    headers.emplace_back("Warning", warning_value(shown));
  }
  return headers;
}

api::HeaderList Exchange::with_standard_headers(std::string_view content_type, api::HeaderList headers) const {
  api::HeaderList all = standard_headers(content_type);
  bool is_cached_as_said = false;
  for (auto& header : headers) {
    if (equal_ignoring_case(header.first, "Cache-Control") && !std::exchange(is_cached_as_said, true))
      all[1] = std::move(header);
    else
      all.push_back(std::move(header));
  }
  return all;
}

void Exchange::answer(int code, std::string body, std::string_view content_type, api::HeaderList headers) {
  answer_with(code, std::move(body), content_type, std::move(headers), nullptr);
}

void Exchange::answer_with(int code, std::string body, std::string_view content_type, api::HeaderList headers,
                           const api::Json* document) {
  if (is_complete()) return;
  if (in_pieces_) return cut();  // too late for another answer
  send({code, with_standard_headers(content_type, std::move(headers)), std::move(body)}, document, false);
}

bool Exchange::is_pretty() const {
  if (target.find("pretty") != nullptr) return query_flag(target, "pretty");
  const std::string_view agent = request_.header("user-agent");
  constexpr std::array<std::string_view, 3> kRead{"curl", "Wget", "Mozilla/5.0"};
  return std::ranges::any_of(kRead, [&](std::string_view name) { return agent.starts_with(name); });
}

bool Exchange::takes_pieces() const {
  const api::PacedSink* sink = sink_ == nullptr ? nullptr : api::paced(*sink_);
  return sink != nullptr && sink->takes_pieces();
}

std::size_t Exchange::whole_bytes_min() const {
  std::size_t bytes = kWholeBytesMin;
  if (form.encoding == Encoding::kJson && is_pretty()) bytes = kPrettyBytesMax + 1;
  return std::max(bytes, observer_ ? observer_->body_bytes_wanted() + 1 : 0);
}

void Exchange::open_pieces(std::function<void()> drop) {
  if (finished()) return;
  SPILLWAY_CHECK(takes_pieces());
  streaming_ = in_pieces_ = true;
  drop_ = std::move(drop);
  const std::shared_ptr<api::ResponseSink> sink = sink_;
  const bool protobuf = form.encoding == Encoding::kProtobuf;
  const std::string_view type = protobuf ? api::kProtobufContentType : "application/json";
  api::paced(*sink)->on_pieces(api::Response{200, standard_headers(type), {}});
}

void Exchange::when_below(std::size_t bytes, std::function<void()> act) {
  api::PacedSink* sink = sink_ == nullptr ? nullptr : api::paced(*sink_);
  if (sink != nullptr) sink->when_below(bytes, std::move(act));
}

void Exchange::cut() {
  if (finished()) return;
  SPILLWAY_CHECK(streaming_);
  const std::shared_ptr<api::ResponseSink> sink = sink_;
  const std::function<void()> drop = std::exchange(drop_, nullptr);
  end_observation();
  finish(0);
  api::PacedSink* paced = api::paced(*sink);
  paced != nullptr ? paced->on_cut() : sink->on_end();
  if (drop) drop();
}

void Exchange::send(api::Response response, const api::Json* document, bool composed) {
  if (const auto observer = std::exchange(observer_, nullptr)) {
    observer->on_answer({response.status, document, response.body, response.header("content-type"), composed});
  }
  if (finished()) return;
  const std::shared_ptr<api::ResponseSink> sink = sink_;
  effort += response.body.size() / kCopyShare;
  finish(response.status);
  sink->on_response(std::move(response));
}

void Exchange::answer(int code, const api::Json& document, api::HeaderList headers) {
  if (is_complete()) return;
  if (form.encoding == Encoding::kProtobuf) {
    const api::Type* type = api::protobuf_type(document.string_at({"apiVersion"}), document.string_at({"kind"}));
    if (type != nullptr) {
      return answer_with(code, api::write_protobuf(*type, document), api::kProtobufContentType, std::move(headers),
                         &document);
    }
  }
  answer_with(code, (is_pretty() ? api::to_indented_text(document, kPrettyBlanks) : api::to_text(document)) + "\n",
              "application/json", std::move(headers), &document);
}

void Exchange::answer_object(int code, std::string bytes, api::DocumentPtr document) {
  if (is_complete()) return;
  if (form.encoding == Encoding::kProtobuf) {
    return answer_with(code, std::move(bytes), api::kProtobufContentType, {}, document.get());
  }
  if (bytes.size() <= kPrettyBytesMax && is_pretty()) {
    if (const Result<api::Json> parsed = api::parse_json(bytes)) return answer(code, *parsed);
  }
  bytes += '\n';
  const api::DocumentPtr said = document;
  send({code, standard_headers("application/json"), std::move(bytes), std::move(document)}, said.get(), true);
}

void Exchange::fail(const api::Status& status) {
  if (is_complete()) return;
  api::HeaderList headers;
  if (status.details && status.details->retry_after_seconds) {
    headers.emplace_back("Retry-After", std::to_string(*status.details->retry_after_seconds));
  }
  answer(status.code, api::to_json(status), std::move(headers));
}

void Exchange::wait_for_others(std::function<void()> drop) {
  if (finished()) return;
  waits_for_others_ = true;
  drop_ = std::move(drop);
}

void Exchange::open_stream(std::string_view content_type, std::function<void()> drop, int code,
                           api::HeaderList headers) {
  if (finished()) return;
  streaming_ = true;
  stream_code_ = code;
  drop_ = std::move(drop);
  if (observer_) observer_->on_stream(code);
  const std::shared_ptr<api::ResponseSink> sink = sink_;
  sink->on_stream(api::Response{code, with_standard_headers(content_type, std::move(headers)), {}});
}

bool Exchange::write(std::shared_ptr<const std::string> chunk) {
  if (finished()) return false;
  const std::shared_ptr<api::ResponseSink> sink = sink_;
  if (in_pieces_) effort += chunk->size() / kCopyShare;
  return sink->write(std::move(chunk));
}

bool Exchange::write_event(const std::shared_ptr<const std::string>& line, const api::WatchDocumentPtr& event) {
  if (finished()) return false;
  const std::shared_ptr<api::ResponseSink> sink = sink_;
  return event ? sink->write_event(line, event) : sink->write(line);
}

void Exchange::end() {
  if (finished()) return;
  SPILLWAY_CHECK(streaming_);
  const std::shared_ptr<api::ResponseSink> sink = sink_;
  drop_ = nullptr;
  end_observation();
  finish(stream_code_);
  sink->on_end();
}

void Exchange::abandon() {
  if (finished()) return;
  const std::function<void()> drop = std::exchange(drop_, nullptr);
  if (streaming_) end_observation();
  finish(0);
  if (drop) drop();
}

void Exchange::end_observation() {
  const auto observer = std::exchange(observer_, nullptr);
  if (!observer) return;
  if (!in_pieces_) return observer->on_end();
  const bool protobuf = form.encoding == Encoding::kProtobuf;
  observer->on_answer(
      {.code = 200, .content_type = protobuf ? api::kProtobufContentType : "application/json", .in_pieces = true});
}

std::shared_ptr<api::ResponseSink> Exchange::release() {
  std::shared_ptr<api::ResponseSink> sink = sink_;
  if (observer_) sink = observed(std::move(sink), std::move(observer_));
  finish(0);
  return sink;
}

void Exchange::finish(int code) {
  sink_ = nullptr;
  Finished finished = std::move(finished_);
  if (finished) finished(*this, code);
}

}  // namespace spillway::apiserver
