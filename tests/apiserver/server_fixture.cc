#include "apiserver/server_fixture.h"

#include "api/exchange/account_token.h"
#include "telemetry/log_line.h"
#include "wire/tls/certificate_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

constexpr std::int64_t kStartSeconds = 1'767'225'600;  // 2026-01-01T00:00:00Z

}  // namespace

void TestSink::on_response(api::Response answer) {
  EXPECT_FALSE(response.has_value()) << "answered twice";
  response = std::move(answer);
}

void TestSink::on_stream(api::Response head) {
  EXPECT_FALSE(response.has_value()) << "answered twice";
  streaming = true;
  response = std::move(head);
}

bool TestSink::write(std::shared_ptr<const std::string> chunk) {
  EXPECT_FALSE(ended) << "written to after the end";
  if (text.size() + chunk->size() > capacity) return false;
  text += *chunk;
  return true;
}

bool TestSink::write_event(std::shared_ptr<const std::string> line, api::WatchDocumentPtr event) {
  const Result<api::Json> parsed = api::parse_json(*line);
  EXPECT_TRUE(parsed && *parsed == api::Json::object({{"type", event->type}, {"object", *event->object}})) << *line;
  return write(std::move(line));
}

std::vector<api::Json> TestSink::events() const {
  std::vector<api::Json> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    EXPECT_NE(end, std::string::npos) << "unfinished line";
    if (end == std::string::npos) break;
    Result<api::Json> event = api::parse_json(std::string_view(text).substr(at, end - at));
    EXPECT_TRUE(event) << text.substr(at, end - at);
    if (event) out.push_back(*std::move(event));
    at = end + 1;
  }
  return out;
}

std::vector<std::string> TestSink::names() const {
  std::vector<std::string> out;
  for (const api::Json& event : events()) {
    out.push_back(std::string(event.string_at({"type"})) + ":" +
                  std::string(event.string_at({"object", "metadata", "name"})));
  }
  return out;
}

void TestGateway::open(const std::string& node, const std::string& host, int port, api::Request request,
                       std::shared_ptr<api::ResponseSink> sink) {
  if (request.target.starts_with("/stats/summary")) {
    asked.push_back(node);
    const auto summary = summaries.find(node);
    if (summary == summaries.end()) return silent.push_back(std::move(sink));
    return sink->on_response(api::Response{200, {}, summary->second});
  }
  if (refusal) return sink->on_response(*refusal);
  sink->on_stream(api::Response{200, {}, {}});
  const auto line =
      std::make_shared<const std::string>(node + " " + host + ":" + std::to_string(port) + request.target + "\n");
  EXPECT_TRUE(sink->write(line));
  sink->on_end();
}

Result<std::optional<TokenAuthenticator::Identity>> TestSigner::identify_token(
    std::string_view token, const std::vector<std::string>& audiences, WallTime now) const {
  if (!token.starts_with("head.")) return std::optional<Identity>();
  SPILLWAY_TRY(claims, api::parse_json(token.substr(5, token.size() - 10)));
  SPILLWAY_TRY(account, api::parse_claims(claims));
  if (now >= account.expires) return make_error(ErrorCode::kUnauthorized, "expired");
  Identity identity{{}, audiences.empty() ? account.audiences : audiences};
  identity.user = api::user_of(std::make_shared<const api::AccountToken>(std::move(account)));
  return std::optional(std::move(identity));
}

Result<std::string> TestAuthority::sign(const signing::RequestedCertificate& wanted, std::string_view, Duration life,
                                        WallTime) const {
  return fmt::format("{} for {} s", wanted.common_name, std::chrono::duration_cast<seconds>(life).count());
}

void TestWebhooks::call(std::uint64_t id, WebhookCall call, Done done) {
  api::Json review = api::parse_json(call.body).value_or(api::Json());
  asked.push_back({std::move(call), std::move(review)});
  open.emplace(id, std::move(done));
  auto response = answers ? answers(asked.back()) : std::nullopt;
  if (!response) return;
  post([this, id, response = *std::move(response)] {
    auto found = open.extract(id);
    if (!found.empty()) found.mapped()(response, now());
  });
}

std::vector<std::string> TestApis::Asked::headers(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : request.headers) {
    if (key == name) values.push_back(value);
  }
  return values;
}

std::size_t TestApis::count(std::string_view target) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(asked, [&](const Asked& one) { return one.request.target == target; }));
}

AggregatedGateway::Ticket TestApis::open(const AggregatedServer& to, api::Request request,
                                         std::shared_ptr<api::ResponseSink> sink) {
  asked.push_back({to, std::move(request), std::move(sink)});
  const Ticket ticket = asked.size();
  auto response = answers ? answers(asked.back()) : std::nullopt;
  if (!response) return ticket;
  post([this, ticket, response = *std::move(response)]() mutable {
    const std::shared_ptr<api::ResponseSink> waiting = std::exchange(asked.at(ticket - 1).sink, nullptr);
    if (waiting == nullptr) return;
    auto body = std::make_shared<const std::string>(std::exchange(response.body, {}));
    waiting->on_stream(std::move(response));
    if (!waiting->write(std::move(body))) return;
    waiting->on_end();
  });
  return ticket;
}

void TestWebhooks::answer_next(const Result<api::Response>& response) {
  ASSERT_FALSE(open.empty());
  auto found = open.extract(open.begin());
  found.mapped()(response, now());
}

api::Json causes_of(const api::Json& status) {
  std::vector<std::pair<std::string, std::string>> causes;
  const api::Json* list = status.at({"details", "causes"});
  if (list != nullptr && list->if_array() != nullptr) {
    for (const api::Json& cause : *list->if_array()) {
      causes.emplace_back(cause.string_at({"field"}), cause.string_at({"reason"}));
    }
  }
  std::ranges::sort(causes);
  api::Json::Array out;
  for (const auto& [field, reason] : causes) out.push_back(api::Json::array({field, reason}));
  return out;
}

TestServer::TestServer(ApiServer::Controllers controllers, AdmissionRules admission, std::string root_ca_pem)
    : controllers_(controllers),
      admission_(admission),
      root_ca_pem_(std::move(root_ca_pem)),
      now_{Instant(seconds(1000)), WallTime(seconds(kStartSeconds))},
      certificates_(std::make_unique<wire::OpensslCertificateReader>()),
      store_([this](std::move_only_function<void()> task) { tasks_.push_back(std::move(task)); }) {
  start();
}

void TestServer::start() {
  begin_start();
  run_until_idle();
  EXPECT_TRUE(ready_);
}

void TestServer::begin_start() {
  webhooks.post = [this](std::move_only_function<void()> task) { tasks_.push_back(std::move(task)); };
  webhooks.now = [this] { return now_; };
  apis.post = webhooks.post;
  const telemetry::Log log(
      [this](telemetry::Level level, std::string_view event, std::span<const telemetry::Field> fields) {
        warnings.push_back(telemetry::render_logfmt(level, event, fields));
      },
      telemetry::Level::kWarning);
  server_ = std::make_unique<ApiServer>(store_, metrics_, log,
                                        ApiServer::Options{.seed = 1,
                                                           .controllers = controllers_,
                                                           .gateway = &gateway_,
                                                           .pods = &pods_,
                                                           .signer = &signer_,
                                                           .token_life_max = token_life_max,
                                                           .authenticator = &signer_,
                                                           .certificates = certificates_.get(),
                                                           .serving_authority = &authority_,
                                                           .client_authority = &authority_,
                                                           .bootstrap_tokens = &bootstrap_tokens,
                                                           .webhooks = &webhooks,
                                                           .aggregated = aggregated,
                                                           .futures = futures,
                                                           .auditor = auditor,
                                                           .tracer = tracer,
                                                           .root_ca_pem = root_ca_pem_,
                                                           .proxy_ca_pem = proxy_ca_pem,
                                                           .admission = admission_,
                                                           .fair = fair,
                                                           .flows = flows,
                                                           .seats = seats,
                                                           .short_renewals = short_renewals,
                                                           .storage = storage,
                                                           .checks = [this] { return more_checks; }});
  ready_ = false;
  server_->start(now_, [this](Outcome outcome) {
    EXPECT_TRUE(outcome) << outcome.error().text();
    ready_ = true;
  });
}

void TestServer::restart() {
  server_.reset();
  start();
}

void TestServer::begin_restart() {
  server_.reset();
  begin_start();
}

std::string TestServer::at_rest(const std::string& store_key) {
  std::string bytes;
  store_.range({store_key, {}, 1, std::nullopt}, [&](const Result<store::RangeResult>& found) {
    if (found && !found->entries.empty() && found->entries.front().key == store_key)
      bytes = *found->entries.front().value;
  });
  run_until_idle();
  return bytes;
}

void TestServer::put_at_rest(const std::string& store_key, std::string bytes) {
  store::Value value = bytes.empty() ? nullptr : std::make_shared<const std::string>(std::move(bytes));
  store_.write({store_key, std::move(value), std::nullopt},
               [](const Result<store::WriteResult>& result) { EXPECT_TRUE(result && result->committed); });
  run_until_idle();
}

bool TestServer::run_turn() {
  if (!tasks_.empty()) {
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    task();
    return true;
  }
  if (!server_ || !server_->next_wakeup() || *server_->next_wakeup() > now_.mono) return false;
  server_->on_wakeup(now_);  // the next slice of something long
  ++slices;
  return true;
}

void TestServer::run_until_idle() {
  while (run_turn()) {
  }
}

namespace {

/// Adds the parsed document to the request, as client::ApiClient does.
void add_document(api::Request& request) {
  auto document = api::parse_json(request.body);
  if (!document) return;
  request.body = api::to_text(*document);
  request.document = std::make_shared<const api::Json>(*std::move(document));
}

}  // namespace

void expect_as_bytes(const api::Response& response, const std::string& what) {
  if (!response.document) return;
  const Result<api::Json> body = api::parse_json(response.body);
  EXPECT_TRUE(body && *body == *response.document) << what << ": not what the bytes say";
}

std::shared_ptr<TestSink> TestServer::begin(api::Method method, std::string target, std::string body,
                                            api::HeaderList headers) {
  auto sink = std::make_shared<TestSink>();
  api::Request request{method, std::move(target), std::move(headers), std::move(body)};
  if (in_process) add_document(request);
  if (request.document && method == api::Method::kPut && reads_ahead_) request.body.clear();  // sent without its text
  // Every other request is parsed in advance, as on another thread.
  reads_ahead_ = !reads_ahead_;
  const auto read = server_->read(request, user, reads_ahead_ ? ApiServer::Body::kYes : ApiServer::Body::kNo);
  last_id = server_->handle(std::move(request), std::make_shared<const api::UserInfo>(user), read, sink, now_);
  return sink;
}

std::shared_ptr<TestSink> TestServer::send(api::Method method, std::string target, std::string body,
                                           api::HeaderList headers) {
  auto sink = begin(method, std::move(target), std::move(body), std::move(headers));
  run_until_idle();
  return sink;
}

Answer TestServer::call(api::Method method, std::string target, std::string body, api::HeaderList headers) {
  const std::string what = std::string(api::to_string(method)) + " " + target;
  const auto sink = send(method, std::move(target), std::move(body), std::move(headers));
  EXPECT_TRUE(sink->answered()) << what;
  if (!sink->answered()) return {};
  Answer answer{sink->response->status, sink->response->headers, sink->response->body, {}};
  if (Result<api::Json> parsed = api::parse_json(answer.text)) answer.body = *std::move(parsed);
  expect_as_bytes(*sink->response, what);
  return answer;
}

Answer TestServer::get(std::string target, std::string accept) {
  api::HeaderList headers;
  if (!accept.empty()) headers.emplace_back("accept", std::move(accept));
  return call(api::Method::kGet, std::move(target), {}, std::move(headers));
}

Answer TestServer::merge(std::string target, std::string body) {
  return call(api::Method::kPatch, std::move(target), std::move(body),
              {{"content-type", "application/merge-patch+json"}});
}

Answer TestServer::strategic(std::string target, std::string body) {
  return call(api::Method::kPatch, std::move(target), std::move(body),
              {{"content-type", "application/strategic-merge-patch+json"}});
}

Answer TestServer::json_patch(std::string target, std::string body) {
  return call(api::Method::kPatch, std::move(target), std::move(body),
              {{"content-type", "application/json-patch+json"}});
}

void TestServer::advance(Duration by) {
  const Instant end = now_.mono + by;
  for (;;) {
    const std::optional<Instant> next = server_->next_wakeup();
    const Instant until = next && *next < end ? std::max(*next, now_.mono) : end;
    now_.wall += std::chrono::duration_cast<microseconds>(until - now_.mono);
    now_.mono = until;
    server_->on_wakeup(now_);
    run_until_idle();
    if (until == end && (!server_->next_wakeup() || *server_->next_wakeup() > end)) return;
  }
}

}  // namespace spillway::apiserver
