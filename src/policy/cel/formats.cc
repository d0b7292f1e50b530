// Named formats: format.named, format.dns1123Label and the like, and validate().
#include "api/text/names.h"
#include "policy/cel/functions.h"
#include "policy/cel/text_forms.h"
#include "policy/cel/url_parts.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace spillway::cel {

namespace {

using Problems = std::vector<std::string>;

/// A prefix that names are generated from, with its last dash and the character before it replaced by one letter.
std::string without_last_dash(std::string_view text) {
  std::string out(text);
  if (out.size() > 1 && out.ends_with('-')) out.replace(out.size() - 2, 2, "a");
  return out;
}

Problems label_prefix(std::string_view text) {
  return api::dns1123_label_errors(without_last_dash(text));
}

Problems subdomain_prefix(std::string_view text) {
  return api::dns1123_subdomain_errors(without_last_dash(text));
}

Problems dns1035_prefix(std::string_view text) {
  return api::dns1035_label_errors(without_last_dash(text));
}

Problems uri(std::string_view text) {
  const auto parts = parse_url(text);
  return parts ? Problems{} : Problems{parts.error().message};
}

template <bool (*kIs)(std::string_view)>
Problems unless(std::string_view text, std::string_view problem) {
  return kIs(text) ? Problems{} : Problems{std::string(problem)};
}

Problems uuid(std::string_view text) {
  return unless<is_uuid>(text, "does not match the UUID format");
}

Problems byte(std::string_view text) {
  return unless<is_base64>(text, "invalid base64");
}

Problems date(std::string_view text) {
  return unless<is_date>(text, "invalid date");
}

Problems datetime(std::string_view text) {
  return unless<is_date_time>(text, "invalid datetime");
}

struct FormatRow {
  std::string_view function;  // "format.NAME"
  Problems (*problems)(std::string_view);

  std::string_view name() const { return function.substr(function.find('.') + 1); }
};

constexpr std::array kNamed = std::to_array<FormatRow>({
    {"format.dns1123Label", api::dns1123_label_errors},
    {"format.dns1123Subdomain", api::dns1123_subdomain_errors},
    {"format.dns1035Label", api::dns1035_label_errors},
    {"format.qualifiedName", api::qualified_name_errors},
    {"format.dns1123LabelPrefix", label_prefix},
    {"format.dns1123SubdomainPrefix", subdomain_prefix},
    {"format.dns1035LabelPrefix", dns1035_prefix},
    {"format.labelValue", api::label_value_errors},
    {"format.uri", uri},
    {"format.uuid", uuid},
    {"format.byte", byte},
    {"format.date", date},
    {"format.datetime", datetime},
});

template <std::size_t kIndex>
Result<Value> format_at(const Call& /*call*/) {
  return Value(NamedFormat{.name = kNamed[kIndex].name()});
}

Result<Value> format_named(const Call& call) {
  const auto* found = std::ranges::find(kNamed, call.string(0), &FormatRow::name);
  return found == kNamed.end() ? Value::none() : Value::some(Value(NamedFormat{.name = found->name()}));
}

/// Absent: nothing is wrong with the text.
Result<Value> validate(const Call& call) {
  constexpr std::uint64_t kPasses = 4;  // over the text
  if (!call.budget.charge_bytes(kPasses * call.string(1).size())) return over_budget();
  const auto* found = std::ranges::find(kNamed, call[0].as<NamedFormat>().name, &FormatRow::name);
  if (found == kNamed.end()) return no_such_overload();
  std::vector<Value> problems;
  for (std::string& problem : found->problems(call.string(1))) problems.push_back(Value::text(std::move(problem)));
  return problems.empty() ? Value::none() : Value::some(Value(List(std::move(problems))));
}

template <std::size_t... kIndices>
void add_each(std::vector<Definition>& into, std::index_sequence<kIndices...> /*all*/) {
  (into.push_back({kNamed[kIndices].function, " -> kubernetes.NamedFormat", format_at<kIndices>}), ...);
}

}  // namespace

std::span<const Definition> formats() {
  static const std::vector<Definition> kAll = [] {
    std::vector<Definition> made{
        {"format.named", "string -> optional_type(kubernetes.NamedFormat)", format_named},
        {"validate", "kubernetes.NamedFormat, string -> optional_type(list(string))", validate, kMember}};
    add_each(made, std::make_index_sequence<kNamed.size()>());
    return made;
  }();
  return kAll;
}

}  // namespace spillway::cel
