#include "cli/text/happening.h"

#include "api/text/time_text.h"
#include "base/utf8.h"
#include "policy/decision_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::cli {
namespace {

constexpr std::size_t kMessageBytesMax = 400;

struct EventReason {
  std::string_view reason;
  bool is_bad = true;
};

constexpr auto kDecisionReasons = std::to_array<EventReason>({
    // kubelets: evictions, pressure, admission, shutdown
    {"Evicted"},
    {"EvictionThresholdMet"},
    {"ExceededGracePeriod"},
    {"Preempting"},
    {"NodeHasInsufficientMemory"},
    {"NodeHasSufficientMemory", false},
    {"NodeHasDiskPressure"},
    {"NodeHasNoDiskPressure", false},
    {"NodeHasInsufficientPID"},
    {"NodeHasSufficientPID", false},
    {"NodeNotReady"},
    {"NodeReady", false},
    {"NodeNotSchedulable", false},
    {"NodeSchedulable", false},
    {"Rebooted"},
    {"SystemOOM"},
    {"FreeDiskSpaceFailed"},
    {"ImageGCFailed"},
    {"UnexpectedAdmissionError"},
    {"NodeAffinity"},
    {"NodeName"},
    {"NodePorts"},
    {"NodeShutdown"},
    {"SysctlForbidden"},
    {"TopologyAffinityError"},
    {"SMTAlignmentError"},
    {"Shutdown"},
    // controllers
    {"TaintManagerEviction"},
    {"NodeControllerEviction"},
    {"DeletingAllPods"},
    {"TerminatingEvictedPod"},
    {"DeletingNode"},
    {"RemovingNode"},
    {"EvictedByVPA"},
    {"DisruptionTarget"},
    // schedulers
    {"Preempted"},
    {"FailedScheduling"},
    // node-problem-detector
    {"OOMKilling"},
});

/// "OutOfmemory", "OutOfcpu", "OutOfpods": one for each resource, as kubelets write them.
bool is_shortage(std::string_view reason) {
  return reason.starts_with("OutOf") || reason.starts_with("Outof");
}

const EventReason* find_reason(std::string_view reason) {
  const auto found = std::ranges::find(kDecisionReasons, reason, &EventReason::reason);
  return found == kDecisionReasons.end() ? nullptr : &*found;
}

std::int64_t integer_in(const api::Json& object, std::initializer_list<std::string_view> path) {
  const api::Json* at = &object;
  for (const std::string_view key : path) {
    at = at->find(key);
    if (at == nullptr) return 0;
  }
  return at->if_int64().value_or(0);
}

/// The time of the last occurrence.
WallTime time_of(const api::Json& event) {
  for (const std::string_view text :
       {event.string_at({"series", "lastObservedTime"}), event.string_at({"lastTimestamp"}),
        event.string_at({"eventTime"}), event.string_at({"firstTimestamp"}),
        event.string_at({"metadata", "creationTimestamp"})}) {
    if (text.empty()) continue;
    if (const auto time = api::parse_time(text)) return *time;
  }
  return {};
}

/// The node itself, or the node on which a kubelet wrote it.
std::string node_of(const api::Json& event) {
  if (event.string_at({"involvedObject", "kind"}) == "Node")
    return std::string(event.string_at({"involvedObject", "name"}));
  if (const auto host = event.string_at({"source", "host"}); !host.empty()) return std::string(host);
  const bool by_kubelet = event.string_at({"reportingComponent"}) == "kubelet";
  return std::string(by_kubelet ? event.string_at({"reportingInstance"}) : std::string_view());
}

/// "CleanedUp" of "cleaned up": as reasons of events are written.
std::string as_reason(std::string_view words) {
  std::string text;
  bool begins = true;
  for (const char c : words) {
    const bool is_lower = c >= 'a' && c <= 'z';
    const bool is_letter = is_lower || (c >= 'A' && c <= 'Z');
    if (is_letter) text += begins && is_lower ? static_cast<char>(c - 32) : c;
    begins = !is_letter;
  }
  return text;
}

/// The text without line feeds and tabs, and printable.
std::string one_line(std::string_view text) {
  std::string line = printable(text);
  std::ranges::replace(line, '\n', ' ');
  std::ranges::replace(line, '\t', ' ');
  return line;
}

std::string padded_to(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

std::string time_column(WallTime at) {
  const std::string text = api::format_time(at);
  return text.substr(0, 10) + " " + text.substr(11);
}

std::string place_column(const Happening& happening) {
  if (happening.source == Happening::Source::kZone) return "zone " + happening.zone;
  return happening.node.empty() ? "-" : happening.node;
}

std::string_view source_text(Happening::Source source) {
  switch (source) {
    case Happening::Source::kEvent:
      return "event";
    case Happening::Source::kDecision:
      return "decision";
    case Happening::Source::kNode:
      return "node";
    case Happening::Source::kZone:
      return "zone";
  }
  return {};
}

}  // namespace

bool tells_of_decision(std::string_view reason) {
  return find_reason(reason) != nullptr || is_shortage(reason);
}

std::optional<Happening> happening_of(const api::Json& event) {
  Happening told;
  told.reason = std::string(event.string_at({"reason"}));
  told.subject = {.kind = std::string(event.string_at({"involvedObject", "kind"})),
                  .ns = std::string(event.string_at({"involvedObject", "namespace"})),
                  .name = std::string(event.string_at({"involvedObject", "name"})),
                  .uid = std::string(event.string_at({"involvedObject", "uid"}))};
  if (told.reason.empty() || told.subject.kind.empty() || told.subject.name.empty()) return std::nullopt;
  told.at = time_of(event);
  told.node = node_of(event);
  told.message = std::string(event.string_at({"message"}));
  told.count = std::max<std::int64_t>({1, integer_in(event, {"count"}), integer_in(event, {"series", "count"})});
  const EventReason* known = find_reason(told.reason);
  told.is_bad = known != nullptr ? known->is_bad : event.string_at({"type"}) == "Warning";
  return told;
}

Happening happening_of(const policy::Decision& decision, std::string node) {
  Happening told{.at = decision.at,
                 .source = Happening::Source::kDecision,
                 .node = std::move(node),
                 .subject = decision.subject,
                 .message = cause_of(decision),
                 .decision = decision};
  const std::string done = as_reason(action_done(decision.action));
  switch (decision.verdict) {
    case policy::Verdict::kActs:
      told.reason = done;
      told.is_bad = decision.subject.kind == "Pod" && decision.action != "admit" && decision.action != "start";
      break;
    case policy::Verdict::kRefuses:
      told.reason = "Not" + done;
      told.is_bad = true;
      break;
    case policy::Verdict::kWaits:
      told.reason = (is_shadow(decision) ? "WouldBe" : "NotYet") + done;
      break;
    case policy::Verdict::kRests:
      told.reason = "Not" + done;
      break;
  }
  if (told.message.empty()) told.message = decision.message;
  return told;
}

std::string happening_line(const Happening& happening, Paint paint) {
  const bool paints = paint == Paint::kTerminal && happening.is_bad;
  std::string line =
      fmt::format("{}  {}  {}{}{}  ", time_column(happening.at), padded_to(one_line(place_column(happening)), 16),
                  paints ? "\x1b[31m" : "", padded_to(one_line(happening.reason), 20), paints ? "\x1b[0m" : "");
  const bool is_of_place = happening.subject.kind == "Zone" ||
                           (happening.subject.kind == "Node" && happening.subject.name == happening.node);
  line += is_of_place ? "-" : one_line(happening.subject.text());
  if (happening.count > 1) line += fmt::format(" x{}", happening.count);
  if (!happening.message.empty()) line += "  " + shortened(one_line(happening.message), kMessageBytesMax);
  return line + "\n";
}

api::Json happening_json(const Happening& happening) {
  api::Json document = api::Json::object({{"kind", "Happening"},
                                          {"apiVersion", "spillway/v1"},
                                          {"at", api::format_micro_time(happening.at)},
                                          {"source", std::string(source_text(happening.source))},
                                          {"reason", happening.reason},
                                          {"subject", policy::to_json(happening.subject)},
                                          {"message", happening.message}});
  if (!happening.node.empty()) document["node"] = happening.node;
  if (!happening.zone.empty()) document["zone"] = happening.zone;
  if (happening.count > 1) document["count"] = happening.count;
  if (happening.decision) document["decision"] = policy::to_json(*happening.decision);
  return document;
}

}  // namespace spillway::cli
