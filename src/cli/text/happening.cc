#include "cli/text/happening.h"

#include "api/object/kind_id.h"
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

// Columns of the lines of `spillway watch` do not grow beyond these: a longer cell pushes its own line only.
constexpr std::size_t kPlaceWidthMax = 32;
constexpr std::size_t kReasonWidthMax = 26;  // NodeHasInsufficientMemory, the longest of Kubernetes, has 25
constexpr std::size_t kSubjectWidthMax = 48;

struct EventReason {
  std::string_view reason;
  bool is_bad = true;
  bool once = false;
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
    {"FailedCreate", true, true},  // by a quota, a webhook or a policy; repeated until the pod is created
    // schedulers
    {"Preempted"},
    {"FailedScheduling"},
    // node-problem-detector
    {"OOMKilling"},
    // kubelets delay the next start of a container that crashes, or the next pull of its image
    {"BackOff", true, true},
});

struct Opposite {
  std::string_view good;
  std::string_view bad;
};

constexpr auto kOpposites = std::to_array<Opposite>({{"NodeHasSufficientMemory", "NodeHasInsufficientMemory"},
                                                     {"NodeHasNoDiskPressure", "NodeHasDiskPressure"},
                                                     {"NodeHasSufficientPID", "NodeHasInsufficientPID"},
                                                     {"NodeReady", "NodeNotReady"}});

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

api::KindId kind_of_subject(const api::Json& event) {
  return api::kind_id(event.string_at({"involvedObject", "apiVersion"}), event.string_at({"involvedObject", "kind"}));
}

/// The node itself, or the node on which a kubelet wrote it.
std::string node_of(const api::Json& event) {
  if (kind_of_subject(event) == api::KindId{"", "Node"})
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

std::string subject_column(const Happening& happening) {
  std::string text = one_line(happening.subject.text());
  if (happening.count > 1) text += fmt::format(" x{}", happening.count);
  return text;
}

std::string padded_to(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

std::string time_column(WallTime at) {
  return api::format_time(at);
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

bool reports_decision(std::string_view reason) {
  return find_reason(reason) != nullptr || is_shortage(reason);
}

std::optional<Happening> happening_of(const api::Json& event) {
  Happening happening;
  happening.reason = std::string(event.string_at({"reason"}));
  happening.subject = {.kind = api::text_of(kind_of_subject(event)),
                       .ns = std::string(event.string_at({"involvedObject", "namespace"})),
                       .name = std::string(event.string_at({"involvedObject", "name"})),
                       .uid = std::string(event.string_at({"involvedObject", "uid"}))};
  if (happening.reason.empty() || happening.subject.kind.empty() || happening.subject.name.empty()) return std::nullopt;
  happening.at = time_of(event);
  happening.node = node_of(event);
  happening.message = std::string(event.string_at({"message"}));
  happening.count = std::max<std::int64_t>({1, integer_in(event, {"count"}), integer_in(event, {"series", "count"})});
  const EventReason* known = find_reason(happening.reason);
  happening.is_bad = known != nullptr ? known->is_bad : event.string_at({"type"}) == "Warning";
  return happening;
}

Happening happening_of(const policy::Decision& decision, std::string node) {
  Happening happening{.at = decision.at,
                      .source = Happening::Source::kDecision,
                      .node = std::move(node),
                      .subject = decision.subject,
                      .message = cause_of(decision),
                      .decision = decision};
  const std::string done = as_reason(action_done(decision.action));
  switch (decision.verdict) {
    case policy::Verdict::kActs:
      happening.reason = done;
      happening.is_bad = decision.subject.kind == "Pod" && decision.action != "admit" && decision.action != "start";
      break;
    case policy::Verdict::kRefuses:
      happening.reason = "Not" + done;
      happening.is_bad = true;
      break;
    case policy::Verdict::kWaits:
      happening.reason = (is_shadow(decision) ? "WouldBe" : "NotYet") + done;
      break;
    case policy::Verdict::kRests:
      happening.reason = "Not" + done;
      break;
  }
  if (happening.message.empty()) happening.message = decision.message;
  return happening;
}

bool is_shown_once(std::string_view reason) {
  const EventReason* known = find_reason(reason);
  return known != nullptr && known->once;
}

std::string_view opposite_of(std::string_view reason) {
  const auto found = std::ranges::find(kOpposites, reason, &Opposite::good);
  return found == kOpposites.end() ? std::string_view() : found->bad;
}

bool has_opposite(std::string_view reason) {
  return std::ranges::find(kOpposites, reason, &Opposite::bad) != kOpposites.end();
}

void HappeningLines::fit(const Happening& happening) {
  const auto widen = [](std::size_t& width, std::size_t size, std::size_t most) {
    if (size <= most) width = std::max(width, size);
  };
  widen(place_, one_line(place_column(happening)).size(), kPlaceWidthMax);
  widen(reason_, one_line(happening.reason).size(), kReasonWidthMax);
  widen(subject_, subject_column(happening).size(), kSubjectWidthMax);
}

std::string HappeningLines::line(const Happening& happening) {
  fit(happening);
  const bool paints = paint_ == Paint::kTerminal && happening.is_bad;
  std::string line =
      fmt::format("{}  {}  {}{}{}  ", time_column(happening.at), padded_to(one_line(place_column(happening)), place_),
                  paints ? "\x1b[31m" : "", padded_to(one_line(happening.reason), reason_), paints ? "\x1b[0m" : "");
  if (happening.message.empty()) return line + subject_column(happening) + "\n";
  line += padded_to(subject_column(happening), subject_);
  return line + "  " + shortened(one_line(happening.message), kMessageBytesMax) + "\n";
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
