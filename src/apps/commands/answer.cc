#include "apps/commands/answer.h"

#include "apps/process/terminal.h"
#include "base/utf8.h"
#include "yaml/yaml_document.h"

#include <string>

namespace spillway::apps {

std::string answer_text(const api::Json& answer, cli::OutputFormat format) {
  if (format == cli::OutputFormat::kYaml) return "---\n" + yaml::to_text(answer);
  std::string text = api::to_pretty_text(answer) + "\n";
  escape_unprintable(text);
  return text;
}

std::string stream_text(const api::Json& answer, cli::OutputFormat format) {
  if (format == cli::OutputFormat::kYaml) return answer_text(answer, format);
  std::string text = api::to_text(answer) + "\n";
  escape_unprintable(text);
  return text;
}

void print_answer(const api::Json& answer, cli::OutputFormat format) {
  write_stdout(answer_text(answer, format));
}

cli::Width width_of(cli::OutputFormat format) {
  return format == cli::OutputFormat::kWide ? cli::Width::kWide : cli::Width::kUsual;
}

}  // namespace spillway::apps
