#include "api/text/names.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::api {
namespace {

constexpr std::size_t kLabelValueMax = 63;
constexpr std::size_t kSubdomainMax = 253;
constexpr std::string_view kNameRule =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
constexpr std::string_view kValueRule =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
constexpr std::string_view kSubdomainRule =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
constexpr std::string_view kLabelRule =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

constexpr std::string_view kOldLabelRule =
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')";

bool is_lower_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_alphanumeric(char c) {
  return is_lower_alphanumeric(c) || (c >= 'A' && c <= 'Z');
}

bool is_name(std::string_view text) {
  return !text.empty() && is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

bool is_dns_label(std::string_view text) {
  return !text.empty() && is_lower_alphanumeric(text.front()) && is_lower_alphanumeric(text.back()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_lower_alphanumeric(c) || c == '-'; });
}

bool is_dns_subdomain(std::string_view text) {
  for (;;) {
    const std::size_t point = text.find('.');
    if (!is_dns_label(text.substr(0, point))) return false;
    if (point == std::string_view::npos) return true;
    text.remove_prefix(point + 1);
  }
}

std::string too_long(std::size_t max) {
  return fmt::format("must be no more than {} characters", max);
}

}  // namespace

std::vector<std::string> qualified_name_errors(std::string_view text) {
  std::vector<std::string> problems;
  const std::size_t slash = text.find('/');
  std::string_view name = text;
  if (slash != std::string_view::npos) {
    name = text.substr(slash + 1);
    if (name.find('/') != std::string_view::npos) {
      return {
          fmt::format("a qualified name {} with an optional DNS subdomain prefix and '/' "
                      "(e.g. 'example.com/MyName')",
                      kNameRule)};
    }
    const std::string_view prefix = text.substr(0, slash);
    if (prefix.empty()) {
      problems.emplace_back("prefix part must be non-empty");
    } else {
      for (const std::string& problem : dns1123_subdomain_errors(prefix)) problems.push_back("prefix part " + problem);
    }
  }
  if (name.empty()) problems.emplace_back("name part must be non-empty");
  if (name.size() > kLabelValueMax) problems.push_back("name part " + too_long(kLabelValueMax));
  if (!is_name(name)) problems.push_back(fmt::format("name part {}", kNameRule));
  return problems;
}

std::vector<std::string> label_value_errors(std::string_view text) {
  std::vector<std::string> problems;
  if (text.size() > kLabelValueMax) problems.push_back(too_long(kLabelValueMax));
  if (!text.empty() && !is_name(text)) problems.emplace_back(kValueRule);
  return problems;
}

std::vector<std::string> dns1123_subdomain_errors(std::string_view text) {
  std::vector<std::string> problems;
  if (text.size() > kSubdomainMax) problems.push_back(too_long(kSubdomainMax));
  if (!is_dns_subdomain(text)) problems.emplace_back(kSubdomainRule);
  return problems;
}

std::vector<std::string> dns1123_label_errors(std::string_view text) {
  std::vector<std::string> problems;
  if (text.size() > kLabelValueMax) problems.push_back(too_long(kLabelValueMax));
  if (!is_dns_label(text)) {
    const bool has_dots = dns1123_subdomain_errors(text).empty();
    problems.emplace_back(has_dots ? std::string_view("must not contain dots") : std::string_view(kLabelRule));
  }
  return problems;
}

std::vector<std::string> dns1035_label_errors(std::string_view text) {
  std::vector<std::string> problems;
  if (text.size() > kLabelValueMax) problems.push_back(too_long(kLabelValueMax));
  const bool begins_with_letter = !text.empty() && text.front() >= 'a' && text.front() <= 'z';
  if (!begins_with_letter || !is_dns_label(text)) problems.emplace_back(kOldLabelRule);
  return problems;
}

std::vector<std::string> path_segment_errors(std::string_view text) {
  if (text == "." || text == "..") return {fmt::format("may not be '{}'", text)};
  return path_segment_part_errors(text);
}

std::vector<std::string> path_segment_part_errors(std::string_view text) {
  std::vector<std::string> problems;
  for (const char forbidden : {'/', '%'}) {
    if (text.find(forbidden) != std::string_view::npos)
      problems.push_back(fmt::format("may not contain '{}'", forbidden));
  }
  return problems;
}

std::string join_problems(const std::vector<std::string>& problems) {
  return fmt::format("{}", fmt::join(problems, "; "));
}

std::string join_errors(const std::vector<std::string>& errors) {
  std::vector<std::string> different;
  for (const std::string& error : errors) {
    if (std::find(different.begin(), different.end(), error) == different.end()) different.push_back(error);
  }
  if (different.size() == 1) return different.front();
  return fmt::format("[{}]", fmt::join(different, ", "));
}

}  // namespace spillway::api
