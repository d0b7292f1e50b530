#include "host/containers/cri_status_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>

namespace spillway::host {
namespace {

using api::Json;

constexpr Duration kStatusInterval = seconds(5);
constexpr Duration kImagesInterval = seconds(30);
constexpr Duration kDownAfter = seconds(30);

std::vector<std::string> strings_in(const Json& document, std::string_view member) {
  std::vector<std::string> made;
  for (const Json& each : list_in(document, member)) made.emplace_back(each.string_at({}));
  return made;
}

/// " (/run/containerd/containerd.sock: No such file or directory)" of an error of a call, which gRPC words as "failed
/// to connect to all addresses; last error: UNKNOWN: unix:/run/…". Empty for an empty text.
std::string because(const std::string& error) {
  constexpr std::string_view kScheme = "unix:";
  if (error.empty()) return {};
  const std::size_t socket = error.rfind(kScheme);
  return fmt::format(" ({})", socket == std::string::npos ? error : error.substr(socket + kScheme.size()));
}

}  // namespace

void CriStatusFeed::start() {
  ask_status();
  ask_images();
}

void CriStatusFeed::set_version(std::string version) {
  version_ = std::move(version);
  report();
}

void CriStatusFeed::ask_status() {
  calls_.call("Status", Json::object(), kStatusInterval, [this](const Result<Json>& answer) { on_status(answer); });
}

void CriStatusFeed::on_status(const Result<Json>& answer) {
  if (answer) {
    status_at_ = loop_.now().mono;
    status_ = agent::runtime_status(*answer);
  }
  silence_ = answer ? std::string() : answer.error().text();
  report();
  loop_.at(loop_.now().mono + kStatusInterval, alive_.guard([this] { ask_status(); }));
}

void CriStatusFeed::ask_images() {
  calls_.call("ListImages", Json::object(), kRuntimeCallMax, [this](const Result<Json>& answer) { on_images(answer); });
}

void CriStatusFeed::on_images(const Result<Json>& answer) {
  if (answer) {
    images_.clear();
    for (const Json& each : list_in(*answer, "images"))
      images_.push_back({strings_in(each, "repo_digests"), strings_in(each, "repo_tags"), number_in(each, {"size"})});
    std::ranges::sort(images_, [](const agent::NodeImage& a, const agent::NodeImage& b) {
      return std::tie(b.size_bytes, a.repo_tags, a.repo_digests) < std::tie(a.size_bytes, b.repo_tags, b.repo_digests);
    });
    report();
  }
  loop_.at(loop_.now().mono + kImagesInterval, alive_.guard([this] { ask_images(); }));
}

void CriStatusFeed::report() {
  const Instant now = loop_.now().mono;
  agent::RuntimeReported report{.problem = status_.problem,
                                .network_problem = status_.network_problem,
                                .images = images_,
                                .version = version_,
                                .handlers = status_.handlers,
                                .supplemental_groups_policy = status_.supplemental_groups_policy};
  if (!status_at_) {
    report.problem = "container runtime status check may not have completed yet" + because(silence_);
  } else if (now - *status_at_ >= kDownAfter) {
    report.problem = "container runtime is down" + because(silence_);
  } else if (report.problem.empty()) {
    if (const auto unhealthy = lists_.problem(now)) report.problem = "PLEG is not healthy: " + *unhealthy;
  }
  if (reported_ == report) return;
  reported_ = report;
  events_.emit(std::move(report));
}

}  // namespace spillway::host
