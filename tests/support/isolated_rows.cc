#include "support/isolated_rows.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>

namespace spillway::support {
namespace {

std::optional<Mismatch> guarded(const VectorCheck& check, const api::Json& row) {
  try {
    return check(row);
  } catch (const std::exception& error) {
    return Mismatch{"an outcome", fmt::format("an exception: {}", error.what())};
  }
}

void write_all(int out, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(out, bytes.data(), bytes.size());
    if (written <= 0) _exit(3);  // the parent has closed the pipe
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// Writes one line per row: null, or the wanted and the actual value.
[[noreturn]] void run_child(int out, const VectorCheck& check, std::span<const VectorRow> rows) {
  for (const VectorRow& row : rows) {
    const std::optional<Mismatch> mismatch = guarded(check, row.document);
    const api::Json line =
        mismatch ? api::Json::object({{"want", mismatch->want}, {"got", mismatch->got}}) : api::Json();
    write_all(out, api::to_text(line) + "\n");
  }
  std::fflush(nullptr);
  _exit(0);
}

std::string read_all(int in) {
  std::string text;
  std::array<char, 65536> chunk;
  ssize_t got = 0;
  while ((got = read(in, chunk.data(), chunk.size())) > 0) text.append(chunk.data(), static_cast<std::size_t>(got));
  return text;
}

/// Appends an outcome per whole line.
void append_outcomes(std::string_view text, std::vector<std::optional<Mismatch>>& outcomes) {
  for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    const auto line = api::parse_json(text.substr(0, end));
    if (!line) return;
    if (line->is_null()) {
      outcomes.emplace_back();
    } else {
      outcomes.emplace_back(Mismatch{std::string(line->string_at({"want"})), std::string(line->string_at({"got"}))});
    }
  }
}

std::string end_text(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("the check was ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  }
  return fmt::format("the check ended the process with code {}", WEXITSTATUS(status));
}

}  // namespace

std::vector<std::optional<Mismatch>> check_rows(const VectorCheck& check, std::span<const VectorRow> rows) {
  std::vector<std::optional<Mismatch>> outcomes;
  while (outcomes.size() < rows.size()) {
    std::array<int, 2> ends{};
    std::fflush(nullptr);  // else the child would print it again
    if (pipe(ends.data()) != 0) break;
    const pid_t child = fork();
    if (child < 0) break;
    if (child == 0) {
      close(ends[0]);
      run_child(ends[1], check, rows.subspan(outcomes.size()));
    }
    close(ends[1]);
    append_outcomes(read_all(ends[0]), outcomes);
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (outcomes.size() < rows.size()) outcomes.emplace_back(Mismatch{"an outcome", end_text(status)});
  }
  outcomes.resize(rows.size(), Mismatch{"an outcome", "no process could be started for the check"});
  return outcomes;
}

}  // namespace spillway::support
