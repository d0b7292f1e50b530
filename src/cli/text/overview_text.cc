#include "cli/text/overview_text.h"

#include "base/ascii.h"
#include "base/utf8.h"
#include "cli/text/outlook_text.h"
#include "cli/text/value_text.h"
#include "policy/decision_json.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::cli {
namespace {

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string summary_of(const outlook::Overview& overview) {
  std::string text = counted(overview.nodes, "node");
  if (overview.nodes_ready != overview.nodes) text += fmt::format(" ({} ready)", overview.nodes_ready);
  text += ", " + counted(overview.pods, "pod");
  if (overview.pods_running != overview.pods) text += fmt::format(" ({} running)", overview.pods_running);
  if (overview.concerns_total == 0) return text + ". Nothing needs a look.";
  return text + (overview.concerns_total == 1 ? std::string(". One object needs a look:")
                                              : fmt::format(". {} objects need a look:", overview.concerns_total));
}

}  // namespace

std::string sentence_of(const outlook::Concern& concern) {
  std::string text = concern.subject.kind == "Cluster" ? std::string("cluster") : concern.subject.text();
  if (concern.more > 0) text += fmt::format(" and {} more of {}", concern.more, concern.owner);
  return printable_line(text + ": " + sentence_of(concern.remark));
}

std::string command_for(const policy::Subject& subject, std::string_view name_space) {
  if (subject.kind == "Cluster") return {};
  const std::string kind = subject.kind == "PersistentVolumeClaim" ? "pvc" : lower_case(subject.kind);
  std::string command = printable_line(fmt::format("spillway explain {}/{}", kind, subject.name));
  if (!subject.ns.empty() && subject.ns != name_space) command += printable_line(" -n " + subject.ns);
  return command;
}

std::string overview_text(const outlook::Overview& overview, std::string_view name_space, Paint paint,
                          std::size_t width) {
  const bool paints = paint == Paint::kTerminal;
  std::string text = fmt::format("{}{}{}\n", paints ? "\x1b[1m" : "", summary_of(overview), paints ? "\x1b[0m" : "");
  for (const outlook::Concern& each : overview.concerns) {
    text += "\n" + wrapped(sentence_of(each), "  ", width);
    if (const std::string command = command_for(each.subject, name_space); !command.empty()) {
      text += fmt::format("{}      {}{}\n", paints ? "\x1b[2m" : "", command, paints ? "\x1b[0m" : "");
    }
  }
  const std::int64_t more = overview.concerns_total - static_cast<std::int64_t>(overview.concerns.size());
  if (more > 0) text += fmt::format("\n  and {} more\n", more);
  return text;
}

api::Json overview_json(const outlook::Overview& overview, std::string_view name_space) {
  api::Json items = api::Json::array();
  for (const outlook::Concern& each : overview.concerns) {
    items.if_array()->push_back(api::Json::object({{"subject", policy::to_json(each.subject)},
                                                   {"code", outlook::to_string(each.remark.code)},
                                                   {"facts", policy::to_json(each.remark.facts)},
                                                   {"sentence", sentence_of(each)},
                                                   {"command", command_for(each.subject, name_space)},
                                                   {"more", each.more}}));
  }
  return api::Json::object({{"kind", "Overview"},
                            {"apiVersion", "spillway/v1"},
                            {"nodes", overview.nodes},
                            {"nodesReady", overview.nodes_ready},
                            {"pods", overview.pods},
                            {"podsRunning", overview.pods_running},
                            {"total", overview.concerns_total},
                            {"items", std::move(items)}});
}

}  // namespace spillway::cli
