#include "apps/commands/answer.h"

#include "yaml/yaml_document.h"

#include <cstdio>

namespace spillway::apps {

std::string answer_text(const api::Json& answer, cli::OutputFormat format) {
  return format == cli::OutputFormat::kYaml ? "---\n" + yaml::to_text(answer) : api::to_text(answer) + "\n";
}

void print_answer(const api::Json& answer, cli::OutputFormat format) {
  std::fputs(answer_text(answer, format).c_str(), stdout);
}

cli::Width width_of(cli::OutputFormat format) {
  return format == cli::OutputFormat::kWide ? cli::Width::kWide : cli::Width::kUsual;
}

}  // namespace spillway::apps
