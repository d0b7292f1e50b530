#include "cli/flags/checks.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

namespace spillway::cli {
namespace {

/// "a, b or c".
std::string enumerated(const std::vector<std::string>& words) {
  if (words.size() < 2) return words.empty() ? "" : words.front();
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

std::string not_expected(std::string_view expected, std::string_view given) {
  return fmt::format("expected {}, got \"{}\"", expected, given);
}

CLI::Validator number_that(std::function<bool(double)> holds, std::string expected, std::string shown) {
  return CLI::Validator(
      [holds = std::move(holds), expected = std::move(expected)](std::string& text) {
        double number = 0;
        if (CLI::detail::lexical_cast(text, number) && holds(number)) return std::string();
        return not_expected(expected, text);
      },
      std::move(shown));
}

/// The library's names for the types of flags, and the placeholders that help shows.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kTypes = {{{"TEXT", "TEXT"},
                                                                                  {"LIST", "LIST"},
                                                                                  {"INT", "NUMBER"},
                                                                                  {"UINT", "NUMBER"},
                                                                                  {"FLOAT", "NUMBER"},
                                                                                  {"ENUM", "TEXT"},
                                                                                  {"BOOLEAN", "true|false"}}};

}  // namespace

CLI::Validator one_of(std::vector<std::string> words) {
  std::string shown = fmt::format("{}", fmt::join(words, "|"));
  return CLI::Validator(
      [words = std::move(words)](std::string& text) {
        return std::ranges::find(words, text) != words.end() ? std::string() : not_expected(enumerated(words), text);
      },
      std::move(shown));
}

CLI::Validator choice_of(std::vector<std::pair<std::string, int>> words) {
  std::vector<std::string> names;
  for (const auto& [name, number] : words) names.push_back(name);
  std::string shown = fmt::format("{}", fmt::join(names, "|"));
  return CLI::Validator(
      [words = std::move(words), names = std::move(names)](std::string& text) {
        const auto at = std::ranges::find(names, text);
        if (at == names.end()) return not_expected(enumerated(names), text);
        text = std::to_string(words[static_cast<std::size_t>(at - names.begin())].second);
        return std::string();
      },
      std::move(shown));
}

CLI::Validator between(std::int64_t least, std::int64_t most) {
  return number_that(
      [=](double number) { return number >= static_cast<double>(least) && number <= static_cast<double>(most); },
      fmt::format("{} to {}", least, most), fmt::format("{}..{}", least, most));
}

CLI::Validator between_shares(double least, double most) {
  return number_that([=](double number) { return number >= least && number <= most; },
                     fmt::format("{} to {}", least, most), fmt::format("{}..{}", least, most));
}

CLI::Validator file_name() {
  return CLI::Validator(
      [](const std::string& text) { return text.empty() ? not_expected("a file", text) : std::string(); }, "FILE");
}

CLI::Validator above_zero() {
  return number_that([](double number) { return number > 0; }, "a number above 0", "NUMBER");
}

CLI::Validator not_negative() {
  return number_that([](double number) { return number >= 0; }, "0 or more", "NUMBER");
}

std::string value_words(const CLI::Option& option) {
  if (option.get_type_size() == 0) return {};
  const std::string type = option.get_type_name();
  for (const auto& [name, words] : kTypes) {
    if (type == name) return std::string(words);
    if (!type.starts_with(name) || type[name.size()] != ':') continue;
    const std::string checked = type.substr(name.size() + 1);
    return checked;
  }
  return type;
}

}  // namespace spillway::cli
