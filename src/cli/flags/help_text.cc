#include "cli/flags/help_text.h"

#include "cli/flags/checks.h"

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

class HelpText final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string /*name*/) const override {
    std::string usage = "\nUsage: " + command_words(*app);
    if (!app->get_subcommands({}).empty()) usage += " COMMAND";
    for (const CLI::Option* option : app->get_options([](const CLI::Option* each) { return each->get_positional(); })) {
      const std::string label = label_of(*option) + (is_list(*option) ? "..." : "");
      usage += option->get_required() ? " " + label : " [" + label + "]";
    }
    return usage + " [FLAGS]\n\n";
  }

  std::string make_description(const CLI::App* app) const override { return app->get_description() + "\n"; }

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

  std::string make_footer(const CLI::App* app) const override {
    const std::string footer = CLI::Formatter::make_footer(app);
    if (app->get_parent() == nullptr) return footer;
    return footer + "Every command also takes --log-level and --log-format.\n";
  }

 private:
  static bool is_list(const CLI::Option& option) {
    return option.get_expected_max() == CLI::detail::expected_max_vector_size;
  }

  static std::string names_and_value(const CLI::Option& option) {
    std::vector<std::string> names;
    for (const std::string& name : option.get_snames()) names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
    const std::string type = value_words(option);
    return fmt::format("{}{}{}", fmt::join(names, ", "), type.empty() ? "" : " " + type, is_list(option) ? " ..." : "");
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
