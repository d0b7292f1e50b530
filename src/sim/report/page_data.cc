#include "sim/report/page_data.h"

#include "api/json/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <string_view>
#include <vector>

namespace spillway::sim {
namespace {

constexpr int kFormat = 2;  // version of the data; the page refuses another one

/// A JSON string in which nothing can be taken for the end of a script element.
std::string quoted(std::string_view text) {
  std::string safe;
  for (const char each : api::to_text(api::Json(text))) {
    if (each == '<') {
      safe += "\\u003c";
    } else {
      safe += each;
    }
  }
  return safe;
}

std::string list_of(const auto& values, auto convert) {
  std::string text = "[";
  for (const auto& value : values) {
    if (text.size() > 1) text += ',';
    text += convert(value);
  }
  return text + "]";
}

/// Texts by number, in the order of their first use.
class Texts {
 public:
  std::size_t place(const std::string& text) {
    const auto [known, added] = places_.emplace(text, texts_.size());
    if (added) texts_.push_back(text);
    return known->second;
  }

  std::string text() const { return list_of(texts_, quoted); }

 private:
  std::map<std::string, std::size_t> places_;
  std::vector<std::string> texts_;
};

std::string thresholds_text(const std::vector<MemoryThreshold>& thresholds) {
  return list_of(thresholds,
                 [](const MemoryThreshold& each) { return fmt::format("[{},{}]", each.kib, each.grace_s); });
}

std::string zone_text(const ZoneHistory& zone) {
  return fmt::format(R"({{"name":{},"state":{},"waiting":{},"brake":{}}})", quoted(zone.name), delta_text(zone.state),
                     delta_text(zone.waiting), delta_text(zone.brake));
}

/// Memory in steps of a 4,096th of the node's, at sample numbers: a third as long as KiB at milliseconds.
Series in_steps(const NodeHistory& node, std::int32_t sample_ms) {
  const std::int32_t step = std::max(node.memory_kib / 4096, 1);
  Series steps;
  for (const Point& point : node.available_kib) {
    steps.push_back({point.at_ms / std::max(sample_ms, 1), point.value < 0 ? -1 : point.value / step});
  }
  return steps;
}

std::string node_text(const NodeHistory& node, std::int32_t sample_ms) {
  return fmt::format("[{},{},{},{},{},{}]", quoted(node.name), node.zone, node.memory_kib, node.thresholds,
                     delta_text(node.state), delta_text(in_steps(node, sample_ms)));
}

/// The lines of an explanation by number: many decisions share most of theirs.
std::string decision_text(const RecordedDecision& recorded, const Explain& explain, Texts& texts) {
  std::vector<std::size_t> lines;
  const std::string text = explain(recorded.decision);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(texts.place(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return fmt::format("[{},{},{},{},{}]", recorded.at_ms, recorded.node,
                     texts.place(std::string(policy::to_string(recorded.decision.area))),
                     texts.place(std::string(policy::to_string(recorded.decision.verdict))),
                     list_of(lines, [](std::size_t line) { return fmt::format("{}", line); }));
}

std::string summary_text(const RunSummary& summary) {
  const auto bit = [](bool value) { return value ? 1 : 0; };
  const std::string expectations = list_of(summary.expectations, [&](const RunSummary::Expectation& each) {
    return fmt::format("[{},{},{}]", bit(each.held), quoted(each.text), quoted(each.seen));
  });
  const std::string figures = list_of(summary.figures, [&](const RunSummary::Figure& each) {
    return fmt::format("[{},{},{}]", quoted(each.value), quoted(each.words), bit(each.is_bad));
  });
  return fmt::format(R"({{"verdict":{},"good":{},"sentences":{},"expectations":{},"figures":{}}})",
                     quoted(summary.verdict), bit(summary.is_good), list_of(summary.sentences, quoted), expectations,
                     figures);
}

std::string run_text(const RunHistory& run, const Explain& explain) {
  Texts texts;
  std::string text =
      fmt::format(R"({{"name":{},"story":{},"seed":"{}","length":{},"timeline":{},"sample":{})", quoted(run.name),
                  quoted(run.story), run.seed, run.length_ms, run.timeline_ms, run.sample_ms);
  const auto member = [&text](std::string_view name, const std::string& value) {
    text += fmt::format(",\"{}\":{}", name, value);
  };
  member("summary", summary_text(run.summary));
  member("thresholds", list_of(run.thresholds, thresholds_text));
  member("brakes", list_of(run.brakes, quoted));
  member("zones", list_of(run.zones, zone_text));
  member("nodes", list_of(run.nodes, [&run](const NodeHistory& node) { return node_text(node, run.sample_ms); }));
  member("running", delta_text(run.running));
  member("pending", delta_text(run.pending));
  member("terminating", delta_text(run.terminating));
  member("events", list_of(run.events, [&texts](const Event& event) {
           return fmt::format("[{},{},{},{},{}]", event.at_ms, static_cast<int>(event.kind), event.node,
                              quoted(event.subject), texts.place(event.text));
         }));
  member("decisions",
         list_of(run.decisions, [&](const RecordedDecision& each) { return decision_text(each, explain, texts); }));
  member("violations", list_of(run.violations, quoted));
  member("leftOut", fmt::format("[{},{},{}]", run.points_left_out, run.events_left_out, run.decisions_left_out));
  member("texts", texts.text());
  return text + "}";
}

}  // namespace

std::string delta_text(const Series& series) {
  std::string text = "[";
  std::int32_t before = 0;
  for (const Point& point : series) {
    if (text.size() > 1) text += ',';
    fmt::format_to(std::back_inserter(text), "{},{}", point.at_ms - before, point.value);
    before = point.at_ms;
  }
  return text + "]";
}

std::string page_data(std::span<const RunHistory> runs, const Explain& explain) {
  return fmt::format(R"({{"format":{},"runs":{}}})", kFormat,
                     list_of(runs, [&explain](const RunHistory& run) { return run_text(run, explain); }));
}

}  // namespace spillway::sim
