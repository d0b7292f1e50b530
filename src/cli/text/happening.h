// One decision, as `spillway watch` shows it: from a Kubernetes event, a decision of an agent, or a change of a node's
// taints or of a zone. Thread: any (pure). Source: Kubernetes API reference, "Event" (core/v1; events of events.k8s.io
// have their time and count in eventTime and series).
#pragma once

#include "api/json/json.h"
#include "base/time.h"
#include "cli/text/explanation.h"
#include "policy/reason.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::cli {

struct Happening {
  enum class Source { kEvent, kDecision, kNode, kZone };

  WallTime at{};
  Source source = Source::kEvent;
  std::string node;         // empty: unknown, or of no node
  std::string zone;         // empty: unknown
  std::string reason;       // the decision: the event's reason, "Evicted", "WouldBeEvicted", "Tainted", "Held"
  policy::Subject subject;  // for a zone: kind "Zone"
  std::string message;      // the reasons in short
  std::int64_t count = 1;   // the event's count
  bool is_bad = false;      // a pod or node loses something
  std::optional<policy::Decision> decision;
};

/// The happening of an event, a decision or not. nullopt: it is no event, or has no subject.
std::optional<Happening> happening_of(const api::Json& event);
Happening happening_of(const policy::Decision& decision, std::string node);

/// True for a reason by which kubelets, controllers and schedulers report a decision about nodes or pods: evicted,
/// preempted, refused, tainted, deleted, marked, under pressure.
bool tells_of_decision(std::string_view reason);

/// "2026-11-26 06:13:02Z  n1  Evicted  pod shop/hog  memory.available was 90Mi, …": one line, whatever was sent.
std::string happening_line(const Happening& happening, Paint paint);
/// The same on one line of JSON, complete.
api::Json happening_json(const Happening& happening);

}  // namespace spillway::cli
