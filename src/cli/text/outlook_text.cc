#include "cli/text/outlook_text.h"

#include "base/utf8.h"
#include "cli/text/value_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace spillway::cli {
namespace {

using outlook::Outlook;
using outlook::Part;
using policy::Fact;

constexpr std::string_view kStrong = "\x1b[1m";
constexpr std::string_view kPlain = "\x1b[0m";

/// Heading of the first column of a part: "PODS" for "pods".
std::string column_of(const Part& part) {
  std::string name = part.name;
  if (name == "policies") return "POLICY";
  if (name == "addresses") return "ADDRESS";
  if (name == "ports") return "NAME";
  if (name.ends_with('s')) name.pop_back();
  return heading_of(name);
}

/// The heading of Row::state.
std::string state_column_of(const Part& part) {
  if (part.name == "ports") return "PORT";
  if (part.name == "slices") return "FAMILY";
  if (part.name == "addresses") return "KIND";
  return part.name == "endpoints" ? "USE" : "STATE";
}

Table table_of(const Part& part) {
  std::vector<const outlook::Row*> fullest;  // facts have the order of the columns
  for (const outlook::Row& row : part.rows) fullest.push_back(&row);
  std::ranges::stable_sort(fullest, std::greater{}, [](const outlook::Row* row) { return row->facts.size(); });
  std::vector<std::string> names;
  for (const outlook::Row* row : fullest) {
    for (const Fact& fact : row->facts) {
      if (std::ranges::find(names, fact.name) == names.end()) names.push_back(fact.name);
    }
  }
  std::vector<std::string> headings{column_of(part), state_column_of(part)};
  for (const std::string& name : names) headings.push_back(heading_of(name));
  Table table(std::move(headings));
  for (const outlook::Row& row : part.rows) {
    std::vector<std::string> cells{row.name, row.state};
    for (const std::string& name : names) {
      const Fact* fact = policy::find_fact(row.facts, name);
      cells.push_back(fact == nullptr ? std::string() : value_text(*fact));
    }
    table.add(std::move(cells));
  }
  return table;
}

std::string part_text(const Part& part, std::size_t width) {
  std::string text = table_of(part).text("    ", width);
  const std::int64_t more = part.total - static_cast<std::int64_t>(part.rows.size());
  if (more > 0) text += fmt::format("    and {} more\n", more);
  return text;
}

std::string title_of(const Part& part) {
  std::string title = part.name;
  if (!title.empty() && title[0] >= 'a' && title[0] <= 'z') title[0] = static_cast<char>(title[0] - 32);
  return title;
}

}  // namespace

std::string headline(const Outlook& outlook) {
  const std::string who = printable_line(outlook.subject.text());
  return outlook.remarks.empty() ? who : who + ": " + printable_line(sentence_of(outlook.remarks.front()));
}

std::string explain(const Outlook& outlook, Paint paint, std::size_t width) {
  const std::string_view strong = paint == Paint::kTerminal ? kStrong : "";
  const std::string_view plain = paint == Paint::kTerminal ? kPlain : "";
  const std::string first = wrapped(headline(outlook), "", width);
  std::string text = fmt::format("{}{}{}\n", strong, first.substr(0, first.size() - 1), plain);
  const auto section = [&](std::string_view title, const std::string& body) {
    text += fmt::format("\n  {}{}{}\n{}", strong, title, plain, body);
  };
  std::string besides;
  for (std::size_t i = 1; i < outlook.remarks.size(); ++i) {
    besides += wrapped(printable_line(sentence_of(outlook.remarks[i])), "    ", width);
  }
  if (!besides.empty()) section("Also", besides);
  for (const Part& part : outlook.parts) section(printable_line(title_of(part)), part_text(part, width));
  return text;
}

api::Json explanation_json(const Outlook& outlook) {
  return api::Json::object({{"kind", "Explanation"},
                            {"apiVersion", "spillway/v1"},
                            {"headline", headline(outlook)},
                            {"outlook", outlook::to_json(outlook)}});
}

}  // namespace spillway::cli
