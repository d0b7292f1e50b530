// An API server over the store in memory, on a clock that the test moves. Requests are answered before call() returns,
// unless the server waits for time to pass.
#pragma once

#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "apiserver/ports/aggregated_gateway.h"
#include "apiserver/ports/bootstrap_tokens.h"
#include "apiserver/ports/certificate_reader.h"
#include "apiserver/ports/node_gateway.h"
#include "apiserver/ports/pod_gateway.h"
#include "apiserver/ports/request_authority.h"
#include "apiserver/ports/tokens.h"
#include "apiserver/ports/webhook_caller.h"
#include "apiserver/server.h"
#include "apiserver/signing/node_signer.h"
#include "store/memory_store.h"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

class Auditor;
class FutureSimulator;

/// Collects one answer.
class TestSink final : public api::ResponseSink {
 public:
  void on_response(api::Response response) override;
  void on_stream(api::Response head) override;
  bool write(std::shared_ptr<const std::string> chunk) override;
  /// Checks that the document equals the line.
  bool write_event(std::shared_ptr<const std::string> line, api::WatchDocumentPtr event) override;

  void on_end() override { ended = true; }

  bool answered() const { return response.has_value(); }

  /// Lines of a watch stream, parsed.
  std::vector<api::Json> events() const;
  /// "ADDED:name" per event.
  std::vector<std::string> names() const;

  std::optional<api::Response> response;
  bool streaming = false;
  bool ended = false;
  std::string text;
  std::size_t capacity = 1U << 30U;
};

/// Answers logs with what it was asked, as a stream of one chunk, and summaries as the test says.
class TestGateway final : public NodeGateway {
 public:
  void open(const std::string& node, const std::string& host, int port, api::Request request,
            std::shared_ptr<api::ResponseSink> sink) override;

  /// Summaries by node. Nodes without one do not answer, and their sinks are kept here.
  std::map<std::string, std::string> summaries;
  std::vector<std::shared_ptr<api::ResponseSink>> silent;
  std::vector<std::string> asked;        // for summaries: "n1"
  std::optional<api::Response> refusal;  // the answer to all other requests
};

/// Records requests; a test answers through the sinks.
class TestPods final : public PodGateway {
 public:
  struct Asked {
    PodServer to;
    api::Request request;
    std::shared_ptr<api::ResponseSink> sink;
  };

  Ticket open(const PodServer& to, api::Request request, std::shared_ptr<api::ResponseSink> sink) override {
    asked.push_back({to, std::move(request), std::move(sink)});
    return asked.size();
  }

  void cancel(Ticket ticket) override {
    cancelled.push_back(ticket);
    asked.at(ticket - 1).sink.reset();
  }

  std::vector<Asked> asked;
  std::vector<Ticket> cancelled;
};

/// Aggregated API servers: keeps what it was asked. Answers come from `answers`, in a turn of their own; where that
/// says nothing, a test answers through the sinks.
class TestApis final : public AggregatedGateway {
 public:
  struct Asked {
    AggregatedServer to;
    api::Request request;
    std::shared_ptr<api::ResponseSink> sink;

    /// The values of a header, in order.
    std::vector<std::string> headers(std::string_view name) const;
  };

  Ticket open(const AggregatedServer& to, api::Request request, std::shared_ptr<api::ResponseSink> sink) override;

  void cancel(Ticket ticket) override {
    cancelled.push_back(ticket);
    asked.at(ticket - 1).sink.reset();
  }

  /// Requests for a target.
  std::size_t count(std::string_view target) const;

  std::function<std::optional<api::Response>(const Asked& asked)> answers;
  std::vector<Asked> asked;
  std::vector<Ticket> cancelled;
  std::function<void(std::move_only_function<void()>)> post;
};

/// Tokens whose middle part has the claims, which are accepted unverified.
class TestSigner final : public TokenSigner, public TokenAuthenticator {
 public:
  std::string issuer() const override { return "https://issuer"; }

  Result<std::string> sign(const api::Json& claims) const override { return "head." + api::to_text(claims) + ".tail"; }

  Result<std::optional<Identity>> identify_token(std::string_view token, const std::vector<std::string>& audiences,
                                                 WallTime now) const override;
};

/// Signs with a text that names the request.
class TestAuthority final : public RequestAuthority {
 public:
  Result<std::string> sign(const signing::RequestedCertificate& wanted, std::string_view request_pem, Duration life,
                           WallTime now) const override;
};

class TestBootstrapTokens final : public BootstrapTokens {
 public:
  void set(BootstrapToken token) override { known.insert(token.id); }

  void erase(const std::string& id) override { known.erase(id); }

  std::set<std::string> known;
};

/// Webhooks that answer as the test says, or not at all.
class TestWebhooks final : public WebhookCaller {
 public:
  struct Asked {
    WebhookCall call;
    api::Json review;

    std::string uid() const { return std::string(review.string_at({"request", "uid"})); }
  };

  using Answers = std::function<std::optional<Result<api::Response>>(const Asked& asked)>;

  void call(std::uint64_t id, WebhookCall call, Done done) override;

  void cancel(std::uint64_t id) override { open.erase(id); }

  /// Answers the first request that has no answer yet.
  void answer_next(const Result<api::Response>& response);

  Answers answers;  // nullopt: no answer
  std::vector<Asked> asked;
  std::map<std::uint64_t, Done> open;
  std::function<void(std::move_only_function<void()>)> post;
  std::function<Now()> now;
};

struct Answer {
  int code = 0;
  api::HeaderList headers;
  std::string text;
  api::Json body;

  std::string string_at(std::initializer_list<std::string_view> path) const {
    return std::string(body.string_at(path));
  }
};

/// Checks that the document beside the bytes equals them.
void expect_as_bytes(const api::Response& response, const std::string& what);

/// [field, reason] of every cause of a Status, sorted.
api::Json causes_of(const api::Json& status);

inline const std::string kMaps = "/api/v1/namespaces/default/configmaps";
inline const api::UserInfo kAdmin{"admin", {}, {"system:masters", "system:authenticated"}};
inline const api::UserInfo kNode{"system:node:n1", {}, {"system:nodes", "system:authenticated"}};

class TestServer {
 public:
  explicit TestServer(ApiServer::Controllers controllers = ApiServer::Controllers::kUnknown,
                      AdmissionRules admission = {}, std::string root_ca_pem = {});
  /// A second server over the same store, as after a restart.
  void restart();
  /// As above, up to the first call of the store.
  void begin_restart();

  std::shared_ptr<TestSink> send(api::Method method, std::string target, std::string body = {},
                                 api::HeaderList headers = {});
  /// Hands a request over and keeps its calls of the store waiting, until `run_until_idle()`.
  std::shared_ptr<TestSink> begin(api::Method method, std::string target, std::string body = {},
                                  api::HeaderList headers = {});
  Answer call(api::Method method, std::string target, std::string body = {}, api::HeaderList headers = {});

  Answer get(std::string target, std::string accept = {});

  Answer post(std::string target, std::string body) {
    return call(api::Method::kPost, std::move(target), std::move(body));
  }

  Answer put(std::string target, std::string body) {
    return call(api::Method::kPut, std::move(target), std::move(body));
  }

  Answer remove(std::string target, std::string body = {}) {
    return call(api::Method::kDelete, std::move(target), std::move(body));
  }

  Answer merge(std::string target, std::string body);
  Answer strategic(std::string target, std::string body);
  Answer json_patch(std::string target, std::string body);

  std::shared_ptr<TestSink> watch(std::string target) { return send(api::Method::kGet, std::move(target)); }

  /// Advances the time, with all wake-ups that the server requests.
  void advance(Duration by);
  /// Runs the first queued task, or the due timers. False: there are none.
  bool run_turn();
  /// Runs queued tasks and due timers until none is left.
  void run_until_idle();

  Now now() const { return now_; }

  ApiServer& server() { return *server_; }

  TestGateway& gateway() { return gateway_; }

  TestPods& pods() { return pods_; }

  store::MemoryStore& store() { return store_; }

  telemetry::Registry& metrics() { return metrics_; }

  /// The bytes of a key as the store holds them; empty: none.
  std::string at_rest(const std::string& store_key);
  /// Another writer's value; empty: the key is deleted.
  void put_at_rest(const std::string& store_key, std::string bytes);

  /// The server's warnings and errors, as the log shows them.
  std::vector<std::string> warnings;
  TestBootstrapTokens bootstrap_tokens;
  bool in_process = false;                                     // JSON bodies are handed over in parsed form
  std::optional<Duration> token_life_max;                      // for the next restart()
  std::vector<HealthCheck> more_checks;                        // checks by other parts of the server's process
  const Auditor* auditor = nullptr;                            // for the next restart()
  FutureSimulator* futures = nullptr;                          // likewise
  AggregatedGateway* aggregated = nullptr;                     // likewise
  std::string proxy_ca_pem;                                    // likewise
  telemetry::Tracer* tracer = nullptr;                         // likewise
  bool fair = true;                                            // likewise
  flow::Configuration flows = flow::built_in_configuration();  // likewise
  int seats = 600;                                             // likewise
  bool short_renewals = true;                                  // likewise
  StorageOptions storage;                                      // likewise
  TestWebhooks webhooks;
  TestApis apis;  // used if `aggregated` names it
  api::UserInfo user{"admin", {}, {"system:masters", "system:authenticated"}};
  RequestId last_id = 0;
  /// Wake-ups of `run_until_idle()`: slices for which one turn has no room.
  int slices = 0;

 private:
  bool reads_ahead_ = false;
  void start();
  void begin_start();

  ApiServer::Controllers controllers_;
  AdmissionRules admission_;
  std::string root_ca_pem_;
  Now now_;
  TestGateway gateway_;
  TestPods pods_;
  TestSigner signer_;
  std::unique_ptr<CertificateReader> certificates_;
  TestAuthority authority_;
  std::deque<std::move_only_function<void()>> tasks_;
  store::MemoryStore store_;
  telemetry::Registry metrics_;
  std::unique_ptr<ApiServer> server_;
  bool ready_ = false;
};

}  // namespace spillway::apiserver
