// Any text as a KubeletConfiguration: refused with lines that say what is wrong, or options of an agent; what is in
// effect, printed and read again, is the same.
#include "agent/config/config_lint.h"
#include "agent/config/kubelet_config.h"
#include "base/check.h"
#include "yaml/yaml_document.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

using namespace spillway;  // NOLINT(google-build-using-namespace): one small program

namespace {

std::optional<agent::ConfigDocument> read(const std::string& text) {
  auto yaml = yaml::parse("kubelet.yaml", text);
  if (!yaml) {
    SPILLWAY_CHECK(!yaml.error().text().empty());
    return std::nullopt;
  }
  const auto find = [origins = std::make_shared<const yaml::Origins>(std::move(yaml->origins))](std::string_view path) {
    const yaml::Origin* origin = origins->find(path);
    return origin == nullptr ? std::nullopt : std::optional(agent::ScalarOrigin{origin->line, origin->text});
  };
  return agent::ConfigDocument{.file = "kubelet.yaml", .value = std::move(yaml->value), .origins = find};
}

bool has_error(const agent::CheckedConfig& checked) {
  return std::ranges::any_of(checked.findings, [](const agent::ConfigFinding& each) {
    SPILLWAY_CHECK(!each.text().empty());
    return each.kind == agent::ConfigFinding::Kind::kError;
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto document = read(text);
  if (!document) return 0;
  const agent::LintReport report = agent::lint_config(*document, {.memory = gibibytes(2), .disk = gibibytes(20)});
  for (const agent::LintFinding& finding : report.findings) SPILLWAY_CHECK(!finding.what.empty());
  const agent::CheckedConfig checked = agent::check_config(*document);
  if (has_error(checked)) return 0;
  const api::Json effective = agent::effective_config(checked.value, mebibytes(700));
  const auto options = agent::options_of(effective);
  if (!options) {
    SPILLWAY_CHECK(!options.error().text().empty());
    return 0;
  }
  const auto again = read(yaml::to_text(effective));
  SPILLWAY_CHECK(again);
  const agent::CheckedConfig checked_again = agent::check_config(*again);
  SPILLWAY_CHECK(!has_error(checked_again));
  SPILLWAY_CHECK(agent::effective_config(checked_again.value, mebibytes(700)) == effective);
  return 0;
}
