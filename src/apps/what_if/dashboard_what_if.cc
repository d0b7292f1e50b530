#include "apps/what_if/dashboard_what_if.h"

#include <fmt/format.h>

namespace spillway::apps {

void DashboardWhatIf::open(std::uint64_t id, const api::Json& question, std::shared_ptr<api::ResponseSink> sink) {
  if (run_ != nullptr) return sink->on_response(what_if_busy());
  const auto what_if = sim::parse_what_if(question);
  if (!what_if) return sink->on_response(what_if_refusal(422, "Invalid", what_if.error().text()));
  WhatIfCluster cluster{.arguments = {"--from-cluster"}, .texts = {}};
  for (const auto& [flag, value] : {std::pair("--kubeconfig", api_.kubeconfig),
                                    {"--context", api_.context},
                                    {"--cluster", api_.cluster},
                                    {"--user", api_.user}}) {
    if (!value.empty()) cluster.arguments.push_back(fmt::format("{}={}", flag, value));
  }
  auto run = start_what_if(loop_, *what_if, std::move(cluster),
                           [this](api::Response response) { answer(std::move(response)); });
  if (!run) return sink->on_response(what_if_refusal(502, "NotPlayed", run.error().text()));
  id_ = id;
  sink_ = std::move(sink);
  run_ = *std::move(run);
}

void DashboardWhatIf::abandon(std::uint64_t id) {
  if (run_ == nullptr || id != id_) return;
  run_.reset();
  sink_.reset();
}

void DashboardWhatIf::answer(api::Response response) {
  const auto sink = std::exchange(sink_, nullptr);
  run_.reset();
  sink->on_response(std::move(response));
}

}  // namespace spillway::apps
