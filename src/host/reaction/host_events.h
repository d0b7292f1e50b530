// The events of a runtime on their way to its receiver, and the listener for what must precede them: the outcome of a
// reaction to memory pressure. Thread: loop. An event is delivered in a later turn, never from inside emit(), and not
// after the end of this object. Bounds: those of the loop's tasks.
#pragma once

#include "agent/contract/ports.h"
#include "base/alive.h"
#include "runtime/loop.h"

#include <functional>
#include <string>
#include <utility>

namespace spillway::host {

class HostEvents {
 public:
  /// Both must outlive this object.
  HostEvents(runtime::Loop& loop, agent::Host::Receiver& receiver) : loop_(loop), receiver_(receiver) {}

  HostEvents(const HostEvents&) = delete;
  HostEvents& operator=(const HostEvents&) = delete;
  ~HostEvents() = default;

  /// `before_event`: called before each event. `targets_changed`: called by change_targets().
  void listen(std::function<void()> before_event, std::function<void()> targets_changed);

  void emit(agent::HostEvent event);

  /// Emits an event about a pod, or about one of its containers.
  void notify(const std::string& uid, const std::string& container, agent::PodNotice::Weight weight, std::string reason,
              std::string message);

  /// A function that emits an answer which arrives on the loop, unless this object has ended.
  template <typename Event>
  std::function<void(Event)> emitter() {
    return alive_.guard([this](Event event) { emit(std::move(event)); });
  }

  /// Containers that a reaction can kill were added or removed.
  void change_targets();

 private:
  runtime::Loop& loop_;
  agent::Host::Receiver& receiver_;
  std::function<void()> before_event_;
  std::function<void()> targets_changed_;
  Alive alive_;
};

}  // namespace spillway::host
