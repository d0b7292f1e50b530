#include "wire/server/request_intake.h"

#include "api/json/json.h"
#include "api/text/identities.h"
#include "apiserver/audit/auditor.h"
#include "base/ascii.h"
#include "runtime/clock.h"

#include <utility>

namespace spillway::wire {

namespace {

constexpr int kStatusUnauthorized = 401;
constexpr int kStatusForbidden = 403;

/// The head of a request as an audit log records it, without its body.
api::Request audited_head(const api::Request& request) {
  api::Request head{.method = request.method, .target = request.target, .headers = {}, .body = {}, .document = {}};
  for (const std::string_view name : {"user-agent", "x-forwarded-for", "x-real-ip"}) {
    if (const std::string_view value = request.header(name); !value.empty()) head.headers.emplace_back(name, value);
  }
  head.source = request.source;
  return head;
}

/// The message of a failed authentication, in upstream's words.
std::string failed_authentication(const api::Request& head, bool certificate) {
  std::string tried;
  const std::string scheme = lower_case(head.header("authorization").substr(0, 6));
  if (scheme == "basic ") tried = "basic";
  if (scheme == "bearer") tried = "bearer";
  if (certificate) tried += tried.empty() ? "x509" : ", x509";
  return tried.empty() ? "Authentication failed, no credentials provided"
                       : "Authentication failed, attempted: " + tried;
}

}  // namespace

RequestIntake::RequestIntake(std::uint64_t connection, ConnectionOwner& owner, std::string network, std::string address)
    : connection_(connection), owner_(owner), client_(std::move(network)), address_(std::move(address)) {}

bool RequestIntake::accept(std::optional<PeerCertificate> peer) {
  peer_ = std::move(peer);
  if (!peer_ || peer_->problem) return true;
  client_ = peer_->common_name;
  return prove(rank_of({peer_->common_name, "", peer_->organizations}));
}

Result<UserPtr> RequestIntake::identify(const api::Request& head) {
  const HttpServer::Options& options = owner_.options();
  if (options.authenticator)
    return options.authenticator->authenticate(peer_, head, runtime::RealClock::read().wall, of_certificate_);
  return std::make_shared<const api::UserInfo>(
      api::UserInfo{std::string(api::kAnonymousUser), "", {std::string(api::kUnauthenticatedGroup)}});
}

bool RequestIntake::admit(const api::UserInfo& user) {
  const ClientRank rank = rank_of(user);
  if (rank != ClientRank::kUnproven) client_ = user.name;
  if (prove(rank)) return true;
  count(Refusal::kConnections);
  return false;
}

bool RequestIntake::prove(ClientRank rank) {
  if (rank == ClientRank::kUnproven || rank == rank_) return true;
  rank_ = rank;
  return owner_.prove(connection_, rank);
}

bool RequestIntake::is_too_large(std::size_t body_bytes) const {
  const HttpServer::Options& options = owner_.options();
  return rank_ == ClientRank::kUnproven && options.authenticator && body_bytes > options.limits.unproven_body_bytes_max;
}

Error RequestIntake::too_large() const {
  return make_error(ErrorCode::kRequestEntityTooLarge, "Request entity too large: limit is {} without credentials",
                    owner_.options().limits.unproven_body_bytes_max);
}

std::variant<std::shared_ptr<HttpExchange>, api::Response> RequestIntake::hand_over(api::Request request, UserPtr user,
                                                                                    std::weak_ptr<AnswerTaker> taker,
                                                                                    std::int32_t stream) {
  const HttpServer::Options& options = owner_.options();
  const bool keeps_token =
      options.authenticator && options.authenticator->tokens_verified() == Authenticator::Tokens::kHandler;
  if (!keeps_token) std::erase_if(request.headers, [](const auto& header) { return header.first == "authorization"; });

  request.source = address_;
  auto exchange = std::make_shared<HttpExchange>();
  exchange->client = user->name;
  exchange->rank = rank_of(*user);
  exchange->of = class_of(exchange->rank, request.method, request.target);
  const bool reads = request.method == api::Method::kGet || request.method == api::Method::kHead;
  exchange->repeatable = reads && exchange->of != RequestClass::kHeartbeat;
  exchange->stream = stream;
  const api::Request head = options.auditor != nullptr ? audited_head(request) : api::Request();
  const auto refusal = owner_.deliver(exchange, {std::move(request), user}, std::move(taker));
  if (!refusal) return exchange;
  owner_.answer_context()->refusals->count(*refusal, exchange->client, runtime::RealClock::read_mono());
  exchange->gone = true;  // no answer will be used
  api::Response answer =
      *refusal == Refusal::kWaitingBytes
          ? no_room_response()
          : status_response(make_error(ErrorCode::kTooManyRequests, "too many requests, please try again later"));
  audit(head, user.get(), answer);
  return answer;
}

void RequestIntake::audit(const api::Request& head, const api::UserInfo* user, api::Response& answer) const {
  const HttpServer::Options& options = owner_.options();
  if (options.auditor == nullptr || !head.target.starts_with('/')) return;  // not even a path was understood
  std::optional<api::UserInfo> sender;
  // A refused impersonation still names the real user.
  if (user == nullptr && answer.status == kStatusForbidden && options.authenticator) {
    auto known = options.authenticator->identify(peer_, head, runtime::RealClock::read().wall);
    if (known) user = &sender.emplace(*std::move(known));
  }
  std::string message;
  if (answer.status == kStatusUnauthorized) {
    message = failed_authentication(head, peer_.has_value());
  } else if (const Result<api::Json> status = api::parse_json(answer.body)) {
    message = status->string_at({"message"});
  }
  std::string id = owner_.make_audit_id();
  answer.headers.emplace_back("Audit-Id", id);
  api::Request audited = audited_head(head);
  audited.source = address_;
  options.auditor->refused(audited, user, std::move(id), answer.status, std::move(message));
}

void RequestIntake::complete(api::Response& answer) const {
  if (answer.header("audit-id").empty()) answer.headers.emplace_back("Audit-Id", owner_.make_audit_id());
  if (answer.header("cache-control").empty()) answer.headers.emplace_back("Cache-Control", "no-cache, private");
}

void RequestIntake::count(Refusal refusal) const {
  owner_.answer_context()->refusals->count(refusal, client_, runtime::RealClock::read_mono());
}

}  // namespace spillway::wire
