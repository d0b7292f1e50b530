// One decision, as `spillway watch` shows it: from a Kubernetes event, a decision of an agent, or a change of a node's
// taints or of a zone. Thread: any (pure). Source: Kubernetes API reference, "Event" (core/v1; events of events.k8s.io
// have their time and count in eventTime and series).
#pragma once

#include "api/json/json.h"
#include "base/time.h"
#include "cli/text/explanation.h"
#include "policy/reason.h"

#include <cstddef>
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
bool reports_decision(std::string_view reason);

/// True for an event that comes again and again without a new decision: it is shown once.
bool is_shown_once(std::string_view reason);

/// The reason of the opposite event: "NodeHasInsufficientMemory" of "NodeHasSufficientMemory". Kubelets send the latter
/// at every start as well, when nothing is decided. Empty: the event has no opposite.
std::string_view opposite_of(std::string_view reason);
/// True for the reason of a problem of a node that such an event ends.
bool has_opposite(std::string_view reason);

/// Lines with columns as wide as the widest cell so far, within bounds, so that the lines of one output align.
class HappeningLines {
 public:
  explicit HappeningLines(Paint paint) : paint_(paint) {}

  /// Widens the columns, before the first of several happenings is printed.
  void fit(const Happening& happening);
  /// "2026-11-26T06:13:02Z  n1  Evicted  pod shop/hog  memory.available was 90Mi, …": one line, whatever was sent.
  std::string line(const Happening& happening);

 private:
  Paint paint_;
  std::size_t place_ = 10;
  std::size_t reason_ = 20;
  std::size_t subject_ = 20;
};

/// The decision as one complete line of JSON.
api::Json happening_json(const Happening& happening);

}  // namespace spillway::cli
