#include "agent/serving/log_choice.h"

#include <charconv>

namespace spillway::agent {
namespace {

std::string without_scheme(const std::string& id) {
  const std::size_t scheme = id.find("://");
  return scheme == std::string::npos ? std::string() : id.substr(scheme + 3);
}

const api::ContainerStatus* find_status(const api::PodStatus& status, std::string_view container) {
  for (const auto* list :
       {&status.container_statuses, &status.init_container_statuses, &status.ephemeral_container_statuses}) {
    for (const api::ContainerStatus& each : *list) {
      if (each.name == container) return &each;
    }
  }
  return nullptr;
}

std::string_view waiting_words(std::string_view reason) {
  if (reason == "ErrImagePull") return "image can't be pulled";
  if (reason == "ImagePullBackOff") return "trying and failing to pull image";
  return reason;
}

}  // namespace

Result<std::string> choose_log(const api::Pod& pod, std::string_view container, LogInstance wanted) {
  const auto refuse = [&](std::string_view what) {
    return make_error(ErrorCode::kBadRequest, "container \"{}\" in pod \"{}\" is {}", container, pod.metadata.name,
                      what);
  };
  const api::ContainerStatus* status = find_status(pod.status, container);
  if (status == nullptr) return refuse("not available");
  const auto& ended_before = status->last_state.terminated;
  const std::string before = ended_before ? without_scheme(ended_before->container_id) : std::string();
  if (wanted == LogInstance::kPrevious) {
    if (!before.empty()) return before;
    return make_error(ErrorCode::kBadRequest, "previous terminated container \"{}\" in pod \"{}\" not found", container,
                      pod.metadata.name);
  }
  if (status->state.running) return without_scheme(status->container_id);
  const auto& ended = status->state.terminated;
  if (ended && !ended->container_id.empty()) return without_scheme(ended->container_id);
  if (!before.empty()) return before;
  if (ended || ended_before) return refuse("terminated");
  if (status->state.waiting) {
    return refuse(fmt::format("waiting to start: {}", waiting_words(status->state.waiting->reason)));
  }
  return refuse("waiting to start - no logs yet");
}

std::optional<std::int32_t> attempt_of(std::string_view id) {
  const std::string_view text = id.substr(id.rfind('/') + 1);
  std::int32_t attempt = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), attempt);
  if (error != std::errc{} || end != text.data() + text.size() || attempt < 0) return std::nullopt;
  return attempt;
}

}  // namespace spillway::agent
