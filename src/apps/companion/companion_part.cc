#include "apps/companion/companion_part.h"

#include "base/file_lock.h"
#include "base/rng.h"
#include "host/kernel/kernel_file.h"
#include "runtime/entropy.h"

#include <fcntl.h>

#include <filesystem>
#include <utility>

namespace spillway::apps {

namespace {

/// True for an error that may pass: the kubelet restarts, or is not up yet.
bool is_passing(ErrorCode code) {
  return code == ErrorCode::kServiceUnavailable || code == ErrorCode::kTimeout || code == ErrorCode::kTooManyRequests;
}

}  // namespace

CompanionPart::CompanionPart(Process& process, CompanionPartOptions options, std::unique_ptr<client::Transport> api,
                             std::unique_ptr<client::Transport> kubelet)
    : process_(process),
      options_(std::move(options)),
      api_(std::move(api)),
      kubelet_(std::move(kubelet)),
      feed_({.pods = options_.args.pods_from_kubelet}, Rng(runtime::entropy()).fork("feed"),
            {[this](Result<agent::KubeletSettings> settings, Now) {
               process_.loop().post(
                   [this, settings = std::move(settings)]() mutable { on_settings(std::move(settings)); });
             },
             [this](Result<std::vector<api::Pod>> pods, Now) {
               process_.loop().post([this, pods = std::move(pods)]() mutable { on_pods(std::move(pods)); });
             }}) {}

CompanionPart::~CompanionPart() = default;

Result<std::unique_ptr<CompanionPart>> CompanionPart::create(Process& process, CompanionPartOptions options,
                                                             std::unique_ptr<client::Transport> api,
                                                             std::unique_ptr<client::Transport> kubelet) {
  std::error_code error;
  std::filesystem::create_directories(options.state_dir, error);
  if (error) return Error{ErrorCode::kInternalError, "cannot create: " + error.message(), options.state_dir};
  std::unique_ptr<CompanionPart> part(  // NOLINT: private constructor
      new CompanionPart(process, std::move(options), std::move(api), std::move(kubelet)));
  SPILLWAY_TRY_VOID(part->lock_state());
  part->feed_driver_ = std::make_unique<runtime::EngineDriver>(process.loop(), part->feed_, *part->kubelet_);
  part->feed_driver_->start();
  return part;
}

/// Two companions on one machine would evict twice.
Outcome CompanionPart::lock_state() {
  const std::string path = options_.state_dir + "/companion.lock";
  lock_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock_) return errno_error(path, errno);
  const Outcome locked = lock_exclusively(lock_.get(), lock_patience());
  if (locked || locked.error().code != ErrorCode::kConflict) return locked;
  return Error{ErrorCode::kConflict, "another companion works in this directory", options_.state_dir};
}

void CompanionPart::on_settings(Result<agent::KubeletSettings> settings) {
  if (!settings) {
    const Error& error = settings.error();
    if (running_) return report_problem("/configz", "the kubelet's configuration is unknown", error);
    if (is_passing(error.code)) return report_problem("/configz", "waiting for the kubelet", error);
    if (!options_.args.shadow) {
      process_.fail(
          Error{error.code,
                agent::explain_refusal(error, "/configz") +
                    "; a companion that evicts must know the kubelet's thresholds; a shadow (--shadow) need not",
                options_.args.kubelet + "/configz"});
    } else {
      report_problem("/configz", "the kubelet's thresholds are unknown", error);
      if (const Outcome begun = begin(nullptr); !begun) process_.fail(begun.error());
    }
    return;
  }
  reported_problems_.erase("/configz");
  if (!running_) {
    settings_ = *settings;
    if (const Outcome begun = begin(&*settings); !begun) process_.fail(begun.error());
    return;
  }
  if (options_.args.shadow || (settings_ && settings_->config == settings->config)) return;
  settings_ = *std::move(settings);
  const Outcome clear = running_->check_clearance(*settings_);
  process_.log().warning("the kubelet's configuration changed",
                         {{"thresholds", thresholds_text(settings_->thresholds)},
                          {"acting", clear ? "as before" : "held: " + clear.error().text()}});
  running_->set_hold(clear ? std::nullopt : std::optional(clear.error().text()));
}

/// Pages are read periodically: an equal error is reported once.
void CompanionPart::report_problem(const std::string& page, std::string_view what, const Error& error) {
  std::string why = agent::explain_refusal(error, page);
  std::string& reported = reported_problems_[page];
  if (reported == why) return;
  process_.log().warning(what, {{"url", options_.args.kubelet + page}, {"error", why}});
  reported = std::move(why);
}

void CompanionPart::on_pods(Result<std::vector<api::Pod>> pods) {
  if (!running_) return;
  if (!pods) {
    return report_problem("/pods", "the kubelet's pods could not be read", pods.error());
  }
  if (reported_problems_.erase("/pods") > 0) process_.log().info("the kubelet's pods are read again");
  running_->set_pods(*std::move(pods));
}

Outcome CompanionPart::begin(const agent::KubeletSettings* settings) {
  SPILLWAY_TRY(running, RunningCompanion::create(process_, options_, *api_, settings));
  running_ = std::move(running);
  return {};
}

void CompanionPart::stop(runtime::Loop::Task done) {
  feed_driver_->stop();
  if (!running_) return done();
  running_->stop(std::move(done));
}

}  // namespace spillway::apps
