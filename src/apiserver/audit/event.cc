#include "apiserver/audit/event.h"

#include "api/text/time_text.h"
#include "apiserver/audit/plain_line.h"
#include "base/json_string.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::apiserver {
namespace {

constexpr std::string_view kCut = "...TRUNCATED";
constexpr std::string_view kNoId = "00000000-0000-0000-0000-000000000000";

/// Members of one JSON object, in the order in which they are added.
class Members {
 public:
  explicit Members(std::string& out) : out_(out) { out_ += '{'; }

  ~Members() { out_ += '}'; }

  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;

  void text(std::string_view name, std::string_view value, std::size_t bytes_max = kAuditNameMax) {
    begin(name);
    append_cut(value, bytes_max);
  }

  void text_if_any(std::string_view name, std::string_view value, std::size_t bytes_max = kAuditNameMax) {
    if (!value.empty()) text(name, value, bytes_max);
  }

  void list_if_any(std::string_view name, const std::vector<std::string>& values) {
    if (values.empty()) return;
    begin(name);
    char before = '[';
    for (const std::string& value : std::span(values).first(std::min(values.size(), kAuditListMax))) {
      out_ += std::exchange(before, ',');
      append_cut(value, kAuditNameMax);
    }
    out_ += ']';
  }

  /// Appends `json` unchanged.
  void raw(std::string_view name, std::string_view json) {
    begin(name);
    out_ += json;
  }

  Members object(std::string_view name) {
    begin(name);
    return Members(out_);
  }

 private:
  void begin(std::string_view name) {
    if (std::exchange(any_, true)) out_ += ',';
    append_cut(name, kAuditNameMax);
    out_ += ':';
  }

  void append_cut(std::string_view text, std::size_t bytes_max) {
    if (text.size() <= bytes_max) return append_json_string(text, out_);
    std::size_t end = bytes_max;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;  // not within a character
    append_json_string(fmt::format("{}{}", text.substr(0, end), kCut), out_);
  }

  std::string& out_;
  bool any_ = false;
};

void add_user(Members user, const api::UserInfo& who) {
  user.text_if_any("username", who.name);
  user.text_if_any("uid", who.uid);
  user.list_if_any("groups", who.groups);
  if (who.extra.empty()) return;
  Members extra = user.object("extra");
  for (std::size_t left = kAuditListMax; const auto& [key, values] : who.extra) {
    if (left-- == 0) break;
    extra.list_if_any(key, values);
  }
}

void add_object(Members ref, const AuditObject& object) {
  ref.text_if_any("resource", object.resource);
  ref.text_if_any("namespace", object.ns);
  ref.text_if_any("name", object.name);
  ref.text_if_any("uid", object.uid);
  ref.text_if_any("apiGroup", object.group);
  ref.text_if_any("apiVersion", object.version);
  ref.text_if_any("resourceVersion", object.resource_version);
  ref.text_if_any("subresource", object.subresource);
}

void add_status(Members out, const AuditStatus& status) {
  out.raw("metadata", "{}");
  out.text_if_any("status", status.status);
  out.text_if_any("message", status.message, kAuditMessageMax);
  out.text_if_any("reason", status.reason);
  if (status.details) {
    const std::string details = api::to_text(*status.details);
    if (details.size() <= kAuditMessageMax) out.raw("details", details);
  }
  if (status.code) out.raw("code", fmt::format("{}", *status.code));
}

std::string written(const AuditEvent& event) {
  std::string line;
  line.reserve(1'024 + event.request_object.size() + event.response_object.size());
  {
    Members out(line);
    out.text("kind", "Event");
    out.text("apiVersion", "audit.k8s.io/v1");
    out.text("level", to_string(event.level));
    out.text("auditID", event.audit_id);
    out.text("stage", to_string(event.stage));
    out.text("requestURI", event.uri, kAuditUriMax);
    out.text("verb", event.verb);
    add_user(out.object("user"), event.user);
    if (event.impersonated) add_user(out.object("impersonatedUser"), *event.impersonated);
    out.list_if_any("sourceIPs", event.source_ips);
    out.text_if_any("userAgent", event.user_agent, kAuditUserAgentMax);
    if (event.object) add_object(out.object("objectRef"), *event.object);
    if (event.status) add_status(out.object("responseStatus"), *event.status);
    if (!event.request_object.empty()) out.raw("requestObject", event.request_object);
    if (!event.response_object.empty()) out.raw("responseObject", event.response_object);
    out.text("requestReceivedTimestamp", api::format_micro_time(event.received));
    out.text("stageTimestamp", api::format_micro_time(event.at));
    if (!event.annotations.empty()) {
      Members annotations = out.object("annotations");
      for (const auto& [key, value] : event.annotations) annotations.text(key, value);
    }
  }
  return plain_line(std::move(line));
}

bool is_address(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return inet_pton(AF_INET, text.c_str(), bytes.data()) == 1 || inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1;
}

/// The addresses in X-Forwarded-For. If there are too many, the last ones: proxies near this server added them.
std::vector<std::string> forwarded_for(std::string_view header) {
  std::vector<std::string> found;
  while (!header.empty() && found.size() < kAuditListMax) {
    const std::size_t comma = header.rfind(',');
    std::string_view each = comma == std::string_view::npos ? header : header.substr(comma + 1);
    header = header.substr(0, comma == std::string_view::npos ? 0 : comma);
    while (each.starts_with(' ')) each.remove_prefix(1);
    while (each.ends_with(' ')) each.remove_suffix(1);
    if (std::string text(each.substr(0, INET6_ADDRSTRLEN)); is_address(text)) found.push_back(std::move(text));
  }
  std::ranges::reverse(found);
  return found;
}

}  // namespace

std::optional<std::string> audit_line(AuditEvent event, std::size_t bytes_max) {
  for (const bool whole : {true, false}) {
    if (!whole) {
      if (event.request_object.empty() && event.response_object.empty()) break;
      event.request_object.clear();
      event.response_object.clear();
      event.annotations.insert_or_assign(std::string(kTruncatedAnnotation), "true");
    }
    if (event.request_object.size() + event.response_object.size() > bytes_max) continue;
    if (std::string line = written(event); line.size() <= bytes_max) return line;
  }
  return std::nullopt;
}

std::string audit_loss_line(std::uint64_t lost, WallTime at) {
  AuditEvent event;
  event.stage = AuditStage::kPanic;
  event.audit_id = kNoId;
  event.received = at;
  event.at = at;
  event.annotations = {{"spillway.dev/audit-events-lost", fmt::format("{}", lost)}};
  event.status = AuditStatus{.code = std::nullopt,
                             .status = "Failure",
                             .message = fmt::format("{} audit event{} lost", lost, lost == 1 ? "" : "s")};
  return written(event);
}

std::vector<std::string> source_addresses(const api::Request& request) {
  std::vector<std::string> found = forwarded_for(request.header("x-forwarded-for"));
  if (const std::string real(request.header("x-real-ip"));
      is_address(real) && std::ranges::find(found, real) == found.end()) {
    found.push_back(real);
  }
  if (!request.source.empty() && (found.empty() || found.back() != request.source)) found.push_back(request.source);
  return found;
}

}  // namespace spillway::apiserver
