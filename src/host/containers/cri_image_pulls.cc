#include "host/containers/cri_image_pulls.h"

#include "agent/cri/image_credentials.h"
#include "agent/cri/image_name.h"
#include "host/containers/cri_run.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <variant>

namespace spillway::host {

enum class ImagePullStep : std::uint8_t {
  kPresence,     // ask the runtime for the image, unless an earlier failure decides
  kTurn,         // wait until fewer images are pulled
  kCredentials,  // ask the credential plug-ins
  kPull,         // try the next credential, until one is accepted
  kSize,         // read the pulled image
};

namespace {

using api::Json;

constexpr Duration kPullMax = minutes(60);

/// Credentials of pull Secrets are tried before those of plug-ins.
std::vector<Json> auths_for(const std::string& repository, const std::vector<agent::PullSecret>& secrets,
                            const std::vector<agent::PlacedCredential>& answered, std::string& problem) {
  std::vector<Json> auths;
  auto credentials = agent::credentials_for(repository, secrets);
  if (!credentials) {
    problem = credentials.error().message;
    return auths;
  }
  std::ranges::move(agent::credentials_among(repository, answered), std::back_inserter(*credentials));
  for (const agent::ImageCredential& each : *credentials)
    auths.push_back(Json::object({{"username", each.username}, {"password", each.password}}));
  if (auths.empty()) auths.emplace_back();
  return auths;
}

constexpr auto kStepsOfImagePull = [] {
  using enum ImagePullStep;
  return std::array{kPresence, kTurn, kCredentials, kPull, kSize};
}();

}  // namespace

Json image_request(std::string_view name) {
  return Json::object({{"image", Json::object({{"image", name}})}});
}

/// One image for one container.
class CriImagePull final : public CriRun<CriImagePull, ImagePullStep> {
 public:
  CriImagePull(CriImagePulls& pulls, CriImagePulls::Wish wish, CriImagePulls::Done done)
      : CriRun(kStepsOfImagePull), pulls_(pulls), wish_(std::move(wish)), done_(std::move(done)) {}

 private:
  Next run(ImagePullStep step) override {
    switch (step) {
      case ImagePullStep::kPresence:
        return ask_presence();
      case ImagePullStep::kTurn:
        return wait_for_turn();
      case ImagePullStep::kCredentials:
        return ask_credentials();
      case ImagePullStep::kPull:
        return pull();
      case ImagePullStep::kSize:
        return ask_size();
    }
    return Next::kEnd;
  }

  Next ask_presence() {
    if (const auto known = pulls_.images_.begin(wish_.image, now())) return decide(*known);
    call("ImageStatus", image_request(agent::parse_image_name(wish_.image.image)->to_pull), kRuntimeCallMax,
         then(&CriImagePull::on_presence));
    return Next::kWait;
  }

  Next on_presence(const Result<Json>& status) {
    Result<std::string> present = std::string();
    if (!status) present = Error{status.error().code, rpc_text(status.error()), {}};
    if (status && status->find("image") != nullptr) present = std::string(status->string_at({"image", "id"}));
    return decide(pulls_.images_.on_status(wish_.image, present, now()));
  }

  /// The image is used, pulled, or refused.
  Next decide(const agent::ImageAnswer& answer) {
    for (const agent::ImageNews& each : answer.news)
      pulls_.host_.events.notify(wish_.image.pod_uid, wish_.container, each.weight, each.reason, each.message);
    if (const auto* refusal = std::get_if<agent::ImageRefusal>(&answer.what)) return end(*refusal);
    const auto* wanted = std::get_if<agent::ImageToPull>(&answer.what);
    if (wanted == nullptr) return end(std::nullopt);
    name_ = wanted->name;
    if (!pulls_.take_token()) return on_pulled(Error{ErrorCode::kTooManyRequests, "pull QPS exceeded", {}});
    if (pulls_.waiting_.size() >= CriImagePulls::kPullsMax)
      return end(agent::ImageRefusal{"ErrImagePull", "too many images are being pulled"});
    steps_.go_to(ImagePullStep::kTurn);
    return Next::kStep;
  }

  Next wait_for_turn() {
    pulls_.waiting_.push_back(shared_from_this());
    pulls_.begin_next();
    return Next::kWait;
  }

  Next ask_credentials() {
    counts_ = true;
    began_ = now();
    const auto parsed = agent::parse_image_name(wish_.image.image);
    repository_ = parsed ? parsed->repository : std::string();
    pulls_.credential_plugins_.ask(repository_, then(&CriImagePull::on_credentials));
    return Next::kWait;
  }

  Next on_credentials(const std::vector<agent::PlacedCredential>& answered) {
    auths_ = auths_for(repository_, wish_.secrets, answered, last_problem_);
    return Next::kStep;
  }

  Next pull() {
    if (auths_.empty()) return on_pulled(Error{ErrorCode::kInternalError, std::move(last_problem_), {}});
    Json request = image_request(name_);
    if (!auths_.front().is_null()) request["auth"] = auths_.front();
    if (const CriPod* pod = pulls_.pods_.find(wish_.image.pod_uid)) request["sandbox_config"] = pod->sandbox_config;
    auths_.erase(auths_.begin());
    call("PullImage", std::move(request), kPullMax, then(&CriImagePull::on_pull_answer));
    return Next::kWait;
  }

  Next on_pull_answer(const Result<Json>& pulled) {
    if (pulled) return Next::kStep;
    last_problem_ = rpc_text(pulled.error());
    steps_.go_to(ImagePullStep::kPull);
    return Next::kStep;
  }

  Next ask_size() {
    call("ImageStatus", image_request(name_), kRuntimeCallMax, then(&CriImagePull::on_size));
    return Next::kWait;
  }

  Next on_size(const Result<Json>& status) {
    agent::PulledImage image{.took = now() - began_, .took_with_waiting = now() - wish_.asked};
    if (status) {
      image.ref = status->string_at({"image", "id"});
      image.size_bytes = number_in(*status, {"image", "size"});
    }
    return on_pulled(std::move(image));
  }

  /// The pull is over: another one may begin once its result is delivered.
  Next on_pulled(const Result<agent::PulledImage>& pulled) {
    if (std::exchange(counts_, false)) --pulls_.pulling_;
    const Next next = decide(pulls_.images_.on_pulled(wish_.image, pulled, now()));
    pulls_.begin_next();
    return next;
  }

  Next end(std::optional<agent::ImageRefusal> refusal) {
    done_(std::move(refusal));
    return Next::kEnd;
  }

  void call(std::string_view method, Json request, Duration deadline, RuntimeCalls::Answer answer) {
    pulls_.host_.calls.call(method, std::move(request), deadline, std::move(answer));
  }

  Instant now() const { return pulls_.host_.loop.now().mono; }

  CriImagePulls& pulls_;
  CriImagePulls::Wish wish_;
  CriImagePulls::Done done_;
  std::string name_;  // to be pulled
  std::string repository_;
  std::vector<Json> auths_;  // not tried yet
  std::string last_problem_;
  Instant began_{};
  bool counts_ = false;  // as one of the pulls at a time
};

CriImagePulls::CriImagePulls(const CriHost& host, const CriPods& pods)
    : host_(host),
      pods_(pods),
      credential_plugins_(host.loop, host.log, host.options.credential_plugin_dir, host.options.credential_providers) {
  if (host.options.pulls_per_second > 0) {
    tokens_.emplace(BucketKind::kContinuous, static_cast<float>(host.options.pulls_per_second),
                    static_cast<int>(host.options.pull_burst), host.loop.now().mono);
  }
}

CriImagePulls::~CriImagePulls() = default;

void CriImagePulls::ensure(Wish wish, Done done) {
  std::make_shared<CriImagePull>(*this, std::move(wish), std::move(done))->advance();
}

bool CriImagePulls::take_token() {
  return !tokens_ || tokens_->try_take(host_.loop.now().mono);
}

void CriImagePulls::begin_next() {
  while (pulling_ < host_.options.parallel_pulls && !waiting_.empty()) {
    const std::shared_ptr<CriImagePull> next = std::move(waiting_.front());
    waiting_.pop_front();
    ++pulling_;
    next->advance();
  }
}

}  // namespace spillway::host
