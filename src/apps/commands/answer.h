// An answer for programs as text: what `-o json` and `-o yaml` print. Thread: any.
#pragma once

#include "api/json/json.h"
#include "cli/flags/command_line.h"
#include "cli/text/explanation.h"

#include <string>

namespace spillway::apps {

/// Indented JSON, or a YAML document that begins with "---": several of them are a stream. Ends in a newline. `format`:
/// one for programs.
std::string answer_text(const api::Json& answer, cli::OutputFormat format);

/// Prints one of many answers: JSON on one line, or a YAML document.
std::string stream_text(const api::Json& answer, cli::OutputFormat format);

/// answer_text() to standard output.
void print_answer(const api::Json& answer, cli::OutputFormat format);

/// The text width of a format for people.
cli::Width width_of(cli::OutputFormat format);

}  // namespace spillway::apps
