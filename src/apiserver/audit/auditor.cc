#include "apiserver/audit/auditor.h"

#include "apiserver/audit/audited_object.h"
#include "base/ascii.h"
#include "base/check.h"

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::apiserver {
namespace {

using api::Json;

constexpr std::string_view kDecision = "authorization.k8s.io/decision";
constexpr std::string_view kReason = "authorization.k8s.io/reason";
constexpr std::string_view kClosedEarly = "Connection closed early";
constexpr int kUnauthorized = 401;

/// True for a long-running request. The request decides, not its answer, as upstream.
bool is_long_running(const RequestAttributes& asked) {
  if (!asked.is_resource) return false;
  constexpr std::array<std::string_view, 5> kSubresources = {"attach", "exec", "proxy", "log", "portforward"};
  return asked.verb == "watch" || std::ranges::find(kSubresources, asked.subresource) != kSubresources.end();
}

AuditObject object_of(const RequestAttributes& asked) {
  return {.resource = asked.resource,
          .ns = asked.ns,
          .name = asked.name,
          .uid = {},
          .group = asked.group,
          .version = asked.version,
          .resource_version = {},
          .subresource = asked.subresource};
}

/// The core group's kind: a custom kind may have that name, too.
bool is_status(const Json& object) {
  return object.string_at({"apiVersion"}) == "v1" && object.string_at({"kind"}) == "Status";
}

/// Fills in the parts of the reference that the path left open, from the object.
void complete_object(AuditObject& ref, const Json& object) {
  if (is_status(object)) return;
  const auto fill = [&](std::string& into, std::string_view member) {
    if (into.empty()) into = object.string_at({"metadata", member});
  };
  fill(ref.ns, "namespace");
  fill(ref.name, "name");
  fill(ref.uid, "uid");
  fill(ref.resource_version, "resourceVersion");
}

Error too_large() {
  return make_error(ErrorCode::kRequestEntityTooLarge, "too large for the audit log");
}

bool is_too_large(const Result<Json>& object) {
  return !object && object.error().code == ErrorCode::kRequestEntityTooLarge;
}

AuditStatus status_of(int code, const Json* document) {
  AuditStatus status{.code = code};
  if (document == nullptr || !is_status(*document)) return status;
  status.status = document->string_at({"status"});
  status.message = document->string_at({"message"});
  status.reason = document->string_at({"reason"});
  if (const Json* details = document->find("details")) status.details = *details;
  return status;
}

}  // namespace

RequestAttributes audited_attributes(const api::Request& request) {
  if (const Result<api::Target> target = api::parse_target(request.target)) {
    return request_attributes(request.method, *target);
  }
  RequestAttributes asked;
  asked.verb = lower_case(api::to_string(request.method));
  asked.path = request.target.substr(0, request.target.find('?'));
  return asked;
}

AuditRecord::AuditRecord(const Auditor& auditor, AuditEvent event, AuditDecision decision, bool long_running)
    : auditor_(auditor),
      alive_(auditor.alive_.ref()),
      event_(std::move(event)),
      decision_(decision),
      long_running_(long_running) {}

AuditRecord::~AuditRecord() {
  if (completed_) return;
  if (!event_.status) event_.status = AuditStatus{.code = std::nullopt, .message = std::string(kClosedEarly)};
  complete();
}

void AuditRecord::receive(std::move_only_function<void(Outcome)> proceed) {
  event_.stage = AuditStage::kRequestReceived;
  const bool wanted = !decision_.omit_stages.has(AuditStage::kRequestReceived);
  if (!wanted || auditor_.options_.wait == Auditor::Wait::kNever) {
    if (wanted) auditor_.write(event_);
    return proceed({});
  }
  auto line = audit_line(event_, auditor_.options_.event_bytes_max);
  auditor_.events_.add();
  const bool needed = auditor_.options_.wait == Auditor::Wait::kKept;
  auto on_kept = [needed, rejected = auditor_.rejected_, proceed = std::move(proceed)](const Outcome& kept) mutable {
    if (kept || !needed) return proceed({});
    rejected.add();
    proceed(make_error(ErrorCode::kInternalError, "failed to store audit event"));
  };
  if (line) return auditor_.options_.log->write(*std::move(line), std::move(on_kept));
  auditor_.errors_.add();
  on_kept(make_error(ErrorCode::kRequestEntityTooLarge, "the event is too long"));
}

void AuditRecord::on_verdict(const Exchange& exchange, bool allowed, std::string_view reason) {
  event_.annotations.insert_or_assign(std::string(kDecision), allowed ? "allow" : "forbid");
  event_.annotations.insert_or_assign(std::string(kReason), std::string(reason));
  if (allowed && event_.object && event_.level >= AuditLevel::kRequest) take_request(exchange.request());
}

void AuditRecord::on_name(std::string_view name) {
  if (event_.object && event_.object->name.empty()) event_.object->name = name;
}

void AuditRecord::on_annotation(std::string_view key, std::string_view value) {
  if (event_.annotations.size() < kAuditListMax) event_.annotations.try_emplace(std::string(key), value);
}

void AuditRecord::take_request(const api::Request& request) {
  if (request.body.empty() && !request.document) return;
  Result<Json> object = request.document                                           ? Result<Json>(*request.document)
                        : request.body.size() <= auditor_.options_.event_bytes_max ? audited_object(request.body)
                                                                                   : too_large();
  if (object) event_.request_object = shown(*std::move(object));
  left_out_ = left_out_ || is_too_large(object);
}

/// The name in the stored object, for a create whose path has no name.
void AuditRecord::take_name(const Answer& answer) {
  AuditObject& ref = *event_.object;
  if (!ref.name.empty() || event_.verb != "create") return;
  if (event_.status->details) ref.name = event_.status->details->string_at({"name"});
  if (answer.code >= 300 || answer.content_type.starts_with("text/")) return;
  if (answer.document != nullptr) return complete_object(ref, *answer.document);
  if (const Result<Json> object = audited_object(answer.body)) complete_object(ref, *object);
}

void AuditRecord::take_answer(const Answer& answer) {
  event_.status = status_of(answer.code, answer.document);
  if (!event_.object) return;
  take_name(answer);
  if (event_.level < AuditLevel::kRequestResponse || answer.content_type.starts_with("text/")) return;
  std::string text;
  if (answer.in_pieces || answer.body.size() > auditor_.options_.event_bytes_max) {
    left_out_ = true;
  } else if (answer.composed && !decision_.omit_managed_fields) {
    // An answer composed by this server is copied. Any other answer is parsed: text that only looks like an object
    // could continue after its end.
    text = answer.body.substr(0, answer.body.size() - (answer.body.ends_with('\n') ? 1 : 0));
  } else {
    Result<Json> object = answer.document != nullptr ? Result<Json>(*answer.document) : audited_object(answer.body);
    left_out_ = left_out_ || !object;  // or a list in protobuf
    if (object) text = shown(*std::move(object));
  }
  // A refusal quotes the request, in the client's words.
  const bool repeats = event_.status->status == "Failure" && text.size() > kAuditMessageMax;
  left_out_ = left_out_ || repeats;
  if (!repeats) event_.response_object = std::move(text);
}

std::string AuditRecord::shown(Json object) const {
  return api::to_text(decision_.omit_managed_fields ? without_managed_fields(std::move(object)) : object);
}

std::size_t AuditRecord::body_bytes_wanted() const {
  const bool wanted = event_.object && event_.level >= AuditLevel::kRequestResponse && !alive_.expired();
  return wanted ? auditor_.options_.event_bytes_max : 0;
}

void AuditRecord::on_answer(const Answer& answer) {
  take_answer(answer);
  if (long_running_) write(AuditStage::kResponseStarted);
  complete();
}

void AuditRecord::on_stream(int code) {
  event_.status = AuditStatus{.code = code};
  write(AuditStage::kResponseStarted);
}

void AuditRecord::on_end() {
  complete();
}

void AuditRecord::complete() {
  completed_ = true;
  write(AuditStage::kResponseComplete);
}

void AuditRecord::write(AuditStage stage) {
  if (decision_.omit_stages.has(stage) || alive_.expired()) return;
  event_.stage = stage;
  event_.at = auditor_.options_.clock();
  if (left_out_) event_.annotations.insert_or_assign(std::string(kTruncatedAnnotation), "true");
  auditor_.write(event_);
}

Auditor::Auditor(Options options) : options_(std::move(options)) {
  SPILLWAY_CHECK(options_.log != nullptr && options_.clock);
  options_.event_bytes_max = std::min(options_.event_bytes_max, kEventBytesMax);
  if (options_.metrics == nullptr) return;
  events_ = options_.metrics->counter("apiserver_audit_event_total", "Events made for the audit log");
  errors_ = options_.metrics->counter(kAuditErrors, kAuditErrorsHelp, {{"plugin", "log"}});
  rejected_ = options_.metrics->counter("apiserver_audit_requests_rejected_total",
                                        "Requests refused because the audit log could not be written");
}

std::unique_ptr<AuditRecord> Auditor::begin(const Exchange& exchange) const {
  const api::UserInfo& acting = exchange.user();
  const api::UserInfo& user = acting.impersonator ? *acting.impersonator : acting;
  const AuditDecision decision = decide_audit(options_.policy, &user, exchange.asked);
  if (decision.level == AuditLevel::kNone) return nullptr;
  AuditEvent event = event_of(exchange.request(), &acting, exchange.asked, exchange.audit_id());
  event.level = decision.level;
  return std::make_unique<AuditRecord>(*this, std::move(event), decision, is_long_running(exchange.asked));
}

AuditEvent Auditor::event_of(const api::Request& request, const api::UserInfo* user, const RequestAttributes& asked,
                             std::string audit_id) const {
  AuditEvent event;
  event.audit_id = std::move(audit_id);
  event.uri = request.target;
  event.verb = asked.verb;
  if (user != nullptr && user->impersonator) {
    event.user = *user->impersonator;
    event.impersonated = *user;
  } else if (user != nullptr) {
    event.user = *user;
  }
  event.source_ips = source_addresses(request);
  event.user_agent = request.header("user-agent");
  if (asked.is_resource) event.object = object_of(asked);
  event.received = event.at = options_.clock();
  return event;
}

void Auditor::refused(const api::Request& request, const api::UserInfo* user, std::string audit_id, int code,
                      std::string message) const {
  const RequestAttributes asked = audited_attributes(request);
  const AuditDecision decision = decide_audit(options_.policy, user, asked);
  // An answer to an unauthenticated client is recorded as started and not as complete, as upstream.
  const AuditStage stage = code == kUnauthorized ? AuditStage::kResponseStarted : AuditStage::kResponseComplete;
  if (decision.level == AuditLevel::kNone || decision.omit_stages.has(stage)) return;
  AuditEvent event = event_of(request, user, asked, std::move(audit_id));
  event.level = decision.level;
  event.stage = stage;
  event.status = AuditStatus{.code = code, .status = "Failure", .message = std::move(message)};
  write(event);
}

void Auditor::write(const AuditEvent& event) const {
  events_.add();
  if (std::optional<std::string> line = audit_line(event, options_.event_bytes_max)) {
    options_.log->write(*std::move(line));
  } else {
    errors_.add();
  }
}

}  // namespace spillway::apiserver
