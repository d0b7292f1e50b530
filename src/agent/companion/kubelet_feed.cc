#include "agent/companion/kubelet_feed.h"

#include "api/codec/codec.h"

#include <utility>

namespace spillway::agent {
namespace {

Result<std::vector<api::Pod>> pods_of(const api::Json& list) {
  const api::Json* items = list.find("items");
  std::vector<api::Pod> pods;
  if (items == nullptr || items->is_null()) return pods;
  if (items->if_array() == nullptr) return invalid("/pods", "items is no list");
  for (const api::Json& item : *items->if_array()) {
    auto pod = api::decode<api::Pod>(item);
    if (!pod) return invalid("/pods", "{}", pod.error().text());
    pods.push_back(*std::move(pod));
  }
  return pods;
}

}  // namespace

std::string explain_refusal(const Error& error, std::string_view page) {
  if (error.code == ErrorCode::kUnauthorized) {
    return error.text() +
           ": the kubelet does not know who asks; it takes tokens with authentication.webhook.enabled, certificates of "
           "its authentication.x509.clientCAFile, and neither once they have expired";
  }
  if (error.code == ErrorCode::kForbidden) {
    return fmt::format("{}: allow get of nodes{}, or of nodes/proxy where the kubelet is older than 1.33", error.text(),
                       page);
  }
  return error.text();
}

KubeletFeed::KubeletFeed(Options options, Rng rng, Listener listener)
    : options_(options), listener_(std::move(listener)), api_("spillway-companion", rng.fork("kubelet")) {}

void KubeletFeed::start(Now now) {
  api_.start(now);
  read_settings();
  if (options_.pods) read_pods();
}

void KubeletFeed::read_settings() {
  api_.get("/configz", [this](const Result<api::Json>& outcome, Now now) { on_settings(outcome, now); });
}

void KubeletFeed::on_settings(const Result<api::Json>& outcome, Now now) {
  Result<KubeletSettings> settings = outcome ? parse_configz(*outcome) : Result<KubeletSettings>(outcome.error());
  const Duration wait = settings ? options_.config_period : options_.retry;
  listener_.on_settings(std::move(settings), now);
  api_.at(now.mono + wait, [this](Now) { read_settings(); });
}

void KubeletFeed::read_pods() {
  api_.get("/pods", [this](const Result<api::Json>& outcome, Now now) { on_pods(outcome, now); });
}

void KubeletFeed::on_pods(const Result<api::Json>& outcome, Now now) {
  listener_.on_pods(outcome ? pods_of(*outcome) : Result<std::vector<api::Pod>>(outcome.error()), now);
  api_.at(now.mono + options_.pods_period, [this](Now) { read_pods(); });
}

}  // namespace spillway::agent
