#include "cli/flags/help_text.h"

#include "cli/flags/checks.h"
#include "cli/flags/help_topics.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

namespace spillway::cli {
namespace {

constexpr std::size_t kColumn = 32;  // where explanations begin
constexpr std::size_t kWidth = 100;

/// "  left    right", the right side cut at blanks and indented.
std::string in_columns(std::string_view left, std::string_view right) {
  std::string text = fmt::format("  {}", left);
  if (text.size() + 2 > kColumn) text += "\n" + std::string(kColumn, ' ');
  text.resize(std::max(text.size(), kColumn), ' ');
  while (right.size() > kWidth - kColumn) {
    std::size_t cut = right.rfind(' ', kWidth - kColumn);
    if (cut == std::string_view::npos) cut = std::min(right.find(' '), right.size());
    text += fmt::format("{}\n{:{}}", right.substr(0, cut), "", kColumn);
    right.remove_prefix(std::min(cut + 1, right.size()));
  }
  text += right;
  return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
}

/// The lines of one paragraph: as they are if each fits into kWidth columns.
std::string filled_paragraph(std::string paragraph) {
  std::size_t longest = 0;
  for (std::size_t at = 0; at <= paragraph.size();) {
    const std::size_t end = std::min(paragraph.find('\n', at), paragraph.size());
    longest = std::max(longest, end - at);
    at = end + 1;
  }
  if (longest <= kWidth) return paragraph;
  std::ranges::replace(paragraph, '\n', ' ');
  for (std::size_t begin = 0; paragraph.size() - begin > kWidth;) {
    const std::size_t cut = paragraph.rfind(' ', begin + kWidth);
    if (cut == std::string::npos || cut <= begin) break;
    paragraph[cut] = '\n';
    begin = cut + 1;
  }
  return paragraph;
}

/// Breaks the text into lines of at most kWidth columns, at blanks. A paragraph with a longer line is filled anew;
/// empty lines, indented lines and lines that begin with "Exit codes" begin a paragraph.
std::string in_paragraphs(std::string_view text) {
  std::vector<std::string> paragraphs;
  bool is_new = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    is_new = is_new || line.empty() || line.starts_with(' ') || line.starts_with("Exit codes");
    is_new ? paragraphs.emplace_back(line) : paragraphs.back() += "\n" + std::string(line);
    is_new = line.empty() || line.starts_with(' ');
    at = end + 1;
  }
  std::string filled;
  for (std::string& paragraph : paragraphs) filled += filled_paragraph(std::move(paragraph)) + "\n";
  return filled;
}

std::string label_of(const CLI::Option& option) {
  const std::string type = value_words(option);
  return type.empty() || type == "TEXT" || type == "FILE" ? option.get_name(true, false) : type;
}

/// "--etcd-certfile, --etcd-keyfile".
std::string names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options)
    names.push_back(option->get_positional() ? label_of(*option) : option->get_name());
  std::ranges::sort(names);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Names separated by commas, in lines of at most kWidth columns, indented.
std::string in_lines(const std::vector<std::string>& names) {
  std::string text;
  std::string line = " ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string next = " " + names[i] + (i + 1 == names.size() ? "" : ",");
    if (line.size() + next.size() > kWidth) {
      text += line + "\n";
      line = " ";
    }
    line += next;
  }
  return text + line + "\n";
}

/// The command behind the program's name: "store backup"; empty for the program itself.
std::string topic_of(const CLI::App& app) {
  const std::string words = command_words(app);
  const std::size_t blank = words.find(' ');
  return blank == std::string::npos ? std::string() : words.substr(blank + 1);
}

class HelpText final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    if (mode == CLI::AppFormatMode::Sub) return CLI::Formatter::make_help(app, std::move(name), mode);
    const HelpTopic* const topic = find_help_topic(topic_of(*app));
    std::string text = make_description(app) + make_usage(app, std::move(name));
    if (topic != nullptr) text += examples_of(*topic);
    text += make_positionals(app);
    const bool brief = mode == CLI::AppFormatMode::Normal && topic != nullptr && !topic->most_used.empty();
    text += brief ? most_used_of(*app, *topic) : make_groups(app, mode);
    return text + make_subcommands(app, mode) + "\n" + make_footer(app);
  }

  std::string make_usage(const CLI::App* app, std::string /*name*/) const override {
    std::string usage = "\nUsage: " + command_words(*app);
    if (!app->get_subcommands({}).empty()) usage += " COMMAND";
    for (const CLI::Option* option : app->get_options([](const CLI::Option* each) { return each->get_positional(); })) {
      const std::string label = label_of(*option) + (is_list(*option) ? "..." : "");
      usage += option->get_required() ? " " + label : " [" + label + "]";
    }
    return usage + " [FLAGS]\n\n";
  }

  std::string make_description(const CLI::App* app) const override { return in_paragraphs(app->get_description()); }

  std::string make_positionals(const CLI::App* app) const override {
    const auto options = app->get_options([](const CLI::Option* each) { return each->get_positional(); });
    return options.empty() ? "" : make_group("Arguments", true, options) + "\n";
  }

  std::string make_group(std::string heading, bool positional, std::vector<const CLI::Option*> options) const override {
    heading += ":\n";
    for (const CLI::Option* option : options) heading += make_option(option, positional);
    return heading;
  }

  std::string make_option(const CLI::Option* option, bool positional) const override {
    return in_columns(positional ? label_of(*option) : names_and_value(*option), explained(*option));
  }

  std::string make_subcommand(const CLI::App* app) const override {
    return in_columns(app->get_name(), app->get_description());
  }

  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode /*mode*/) const override {
    const auto commands = app->get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); });
    if (commands.empty()) return {};
    if (app->get_parent() != nullptr) {
      std::string text = "\nCommands:\n";
      for (const CLI::App* each : commands) text += make_subcommand(each);
      return text;
    }
    std::string text;
    std::string_view heading;
    for (const HelpTopic& topic : help_topics()) {
      if (topic.group.empty()) continue;
      if (topic.group != heading) text += fmt::format("\n{}:\n", topic.group);
      heading = topic.group;
      text += make_subcommand(app->get_subcommand(std::string(topic.command)));
    }
    return text;
  }

  std::string make_footer(const CLI::App* app) const override {
    const std::string footer = in_paragraphs(CLI::Formatter::make_footer(app));
    if (app->get_parent() == nullptr) return footer;
    return footer + "Every command also takes --log-level and --log-format. All exit codes: spillway help exit-codes\n";
  }

 private:
  static std::string examples_of(const HelpTopic& topic) {
    std::string text = "Examples:\n";
    for (const auto& [call, meaning] : topic.examples) text += fmt::format("  # {}\n  {}\n", meaning, call);
    return text + "\n";
  }

  /// The flags of topic.most_used, then the headings of all groups with their numbers of flags.
  std::string most_used_of(const CLI::App& app, const HelpTopic& topic) const {
    std::string text = "\nMost used flags:\n";
    for (const std::string_view flag : topic.most_used) text += make_option(app.get_option(std::string(flag)), false);
    std::vector<std::string> groups;
    for (const std::string& group : app.get_groups()) {
      const auto options = app.get_options(
          [&group](const CLI::Option* each) { return each->get_group() == group && each->nonpositional(); });
      if (!group.empty() && group != "Options" && !options.empty())
        groups.push_back(fmt::format("{} ({})", group, options.size()));
    }
    return text + fmt::format("\nAll flags, by topic (`{} --help-all`):\n{}", command_words(app), in_lines(groups));
  }

  static bool is_list(const CLI::Option& option) {
    return option.get_expected_max() == CLI::detail::expected_max_vector_size;
  }

  static std::string names_and_value(const CLI::Option& option) {
    std::vector<std::string> names;
    for (const std::string& name : option.get_snames()) names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
    const std::string type = value_words(option);
    return fmt::format("{}{}{}", fmt::join(names, ", "), type.empty() ? "" : " " + type,
                       is_list(option) && !type.ends_with("...") ? " ..." : "");
  }

  static std::string explained(const CLI::Option& option) {
    std::string text = option.get_description();
    if (!option.get_default_str().empty()) text += fmt::format(" (default {})", option.get_default_str());
    if (option.get_required()) text += " (required)";
    if (!option.get_needs().empty()) text += fmt::format(" (together with {})", names_of(option.get_needs()));
    if (!option.get_excludes().empty()) text += fmt::format(" (not with {})", names_of(option.get_excludes()));
    return text;
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_text() {
  return std::make_shared<HelpText>();
}

void begin_group(CLI::App& app, const std::string& heading) {
  app.option_defaults()->group(heading);
}

std::string command_words(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : command_words(*app.get_parent()) + " " + app.get_name();
}

}  // namespace spillway::cli
