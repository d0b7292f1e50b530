#include "host/reaction/host_events.h"

#include "base/check.h"

namespace spillway::host {

void HostEvents::listen(std::function<void()> before_event, std::function<void()> targets_changed) {
  before_event_ = std::move(before_event);
  targets_changed_ = std::move(targets_changed);
}

void HostEvents::emit(agent::HostEvent event) {
  SPILLWAY_DCHECK(loop_.is_ours());
  if (before_event_) before_event_();
  loop_.post(alive_.guard([this, event = std::move(event)]() mutable { receiver_.on_host_event(std::move(event)); }));
}

void HostEvents::notify(const std::string& uid, const std::string& container, agent::PodNotice::Weight weight,
                        std::string reason, std::string message) {
  emit(agent::PodNotice{uid, container, weight, std::move(reason), std::move(message)});
}

void HostEvents::change_targets() {
  SPILLWAY_DCHECK(loop_.is_ours());
  if (targets_changed_) targets_changed_();
}

}  // namespace spillway::host
