#include "apps/node/manifest_url.h"

#include "wire/client/kubeconfig.h"
#include "yaml/yaml_document.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::apps {

namespace {

constexpr int kStatusOk = 200;
constexpr wire::HttpClient::Limits kManifestLimits{.connections_max = 1,
                                                   .waiting_max = 1,
                                                   .body_bytes_max = ManifestUrl::kBytesMax,
                                                   .connect_max = ManifestUrl::kAnswerMax,
                                                   .idle_max = seconds(30)};

agent::StaticManifests failure(std::string problem) {
  return {.files = {}, .problem = std::move(problem), .source = agent::ManifestSource::kUrl};
}

}  // namespace

/// State on the loop. A fetch that ends after its owner finds the state gone.
struct ManifestUrl::Polling {
  runtime::Loop& loop;
  Duration period;
  Listener listener;
  std::function<void()> ask;
  std::optional<runtime::Loop::TimerId> timer = std::nullopt;

  /// nullopt: the answer was the same as before.
  void on_answer(const std::optional<agent::StaticManifests>& read) {
    timer = loop.at(loop.now().mono + period, [this] {
      timer.reset();
      ask();
    });
    if (read) listener(*read);
  }
};

/// One request and its answer. Thread: that of the connection, but for the task that it posts at its end.
class ManifestUrl::Fetch final : public wire::HttpClient::Listener {
 public:
  /// `last`: the last answer that could be read; used by one fetch after the other.
  Fetch(const std::shared_ptr<Polling>& polling, std::string url, std::shared_ptr<std::string> last)
      : loop_(polling->loop), polling_(polling), url_(std::move(url)), last_(std::move(last)) {}

  void on_head(const api::Response& head) override { status_ = head.status; }

  void on_data(std::string data) override { text_ += data; }  // the client bounds it

  void on_done(std::optional<Error> error) override {
    std::optional<agent::StaticManifests> manifests = error ? failure(error->text()) : read();
    if (manifests && !manifests->problem.empty()) last_->clear();  // the HTTP client limits the size
    loop_.post([polling = polling_, manifests = std::move(manifests)] {
      if (const auto still = polling.lock()) still->on_answer(manifests);
    });
  }

 private:
  std::optional<agent::StaticManifests> read() {
    if (status_ != kStatusOk) return failure(fmt::format("{}: {}", url_, status_));
    if (text_.empty()) {
      last_->clear();
      return agent::StaticManifests{.files = {}, .problem = {}, .source = agent::ManifestSource::kUrl};  // no pods
    }
    if (text_ == *last_) return std::nullopt;
    Result<agent::StaticManifests> manifests = manifests_in(url_, text_);
    if (!manifests) return failure(manifests.error().text());
    *last_ = std::move(text_);
    return *std::move(manifests);
  }

  runtime::Loop& loop_;
  std::weak_ptr<Polling> polling_;
  std::string url_;
  std::shared_ptr<std::string> last_;
  int status_ = 0;
  std::string text_;
};

Result<agent::StaticManifests> manifests_in(const std::string& url, const std::string& text) {
  agent::StaticManifests made{.files = {}, .problem = {}, .source = agent::ManifestSource::kUrl};
  SPILLWAY_TRY(parsed, yaml::parse(url, text));
  const std::string_view kind = parsed.value.string_at({"kind"});
  if (kind == "Pod") {
    made.files.push_back({url, std::move(parsed.value)});
    return made;
  }
  const api::Json* items = parsed.value.find("items");
  if (kind != "PodList" || items == nullptr || items->if_array() == nullptr)
    return invalid(url, "expected a Pod or a PodList, got kind \"{}\"", kind);
  if (items->if_array()->size() > ManifestUrl::kPodsMax)
    return invalid(url, "expected at most {} pods, there are {}", ManifestUrl::kPodsMax, items->if_array()->size());
  for (const api::Json& each : *items->if_array()) {
    api::Json pod = each;
    if (pod.is_object()) {  // elements of a list need not repeat its type
      if (pod.find("apiVersion") == nullptr) pod["apiVersion"] = "v1";
      if (pod.find("kind") == nullptr) pod["kind"] = "Pod";
    }
    made.files.push_back({fmt::format("{}#{}", url, made.files.size()), std::move(pod)});
  }
  return made;
}

ManifestUrl::ManifestUrl(runtime::Loop& loop, wire::HttpEndpoint endpoint, agent::ManifestUrlSettings settings,
                         Listener listener)
    : settings_(std::move(settings)),
      polling_(std::make_shared<Polling>(loop, settings_.period, std::move(listener), [this] { ask(); })),
      io_("spillway-static"),
      client_(std::make_shared<wire::HttpClient>(io_.loop(), std::move(endpoint), kManifestLimits)) {
  ask();
}

ManifestUrl::~ManifestUrl() {
  if (polling_->timer) polling_->loop.cancel(*polling_->timer);
  io_.stop();
}

void ManifestUrl::ask() {
  api::Request request{.method = api::Method::kGet,
                       .target = settings_.target,
                       .headers = settings_.headers,
                       .body = {},
                       .document = nullptr};
  auto fetch = std::make_shared<Fetch>(polling_, settings_.server + settings_.target, last_text_);
  io_.loop().post(
      [client = client_, id = ++last_id_, request = std::move(request), fetch = std::move(fetch)]() mutable {
        client->start(id, std::move(request), wire::HttpClient::Kind::kCall, kAnswerMax, std::move(fetch));
      });
}

Result<std::unique_ptr<ManifestUrl>> ManifestUrl::create(runtime::Loop& loop, agent::ManifestUrlSettings settings,
                                                         Listener listener) {
  wire::Kubeconfig config;
  config.server = settings.server;
  SPILLWAY_TRY(endpoint, wire::make_endpoint(config, "staticPodURL"));
  return std::unique_ptr<ManifestUrl>(
      new ManifestUrl(loop, std::move(endpoint), std::move(settings), std::move(listener)));  // NOLINT: private
}

}  // namespace spillway::apps
