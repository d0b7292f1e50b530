#include "host/node_logs.h"

#include "base/unique_fd.h"
#include "host/network/plugin_call.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

constexpr std::size_t kQueriesMax = 16;
constexpr std::size_t kLogBytesMax = std::size_t{16} << 20;
constexpr Duration kJournalMax = seconds(30);

api::Response log_answer(int status, std::string text) {
  return {.status = status,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"}, {"X-Content-Type-Options", "nosniff"}},
          .body = std::move(text)};
}

/// The errors as "[first, second]", a single one as it is; ends in a line feed.
std::string joined(const std::vector<std::string>& errors) {
  return errors.size() == 1 ? errors.front() + "\n" : fmt::format("[{}]\n", fmt::join(errors, ", "));
}

std::string place_of(const std::string& file) {
  return fmt::format("{}{}", agent::kNodeLogFolder, std::filesystem::path("/" + file).lexically_normal().string());
}

/// A regular file below the folder of logs; links are followed as if that folder were the root.
Result<UniqueFd> open_log(const std::string& file) {
  const std::string place = place_of(file);
  const UniqueFd root(::open(std::string(agent::kNodeLogFolder).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  open_how how = {};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const std::string below = place.substr(agent::kNodeLogFolder.size());
  UniqueFd opened(root ? static_cast<int>(::syscall(SYS_openat2, root.get(), below.c_str(), &how, sizeof how)) : -1);
  if (!opened) {
    const std::string why = errno == ENOENT ? "no such file or directory" : std::generic_category().message(errno);
    return make_error(ErrorCode::kNotFound, "stat {}: {}", place, why);
  }
  struct stat facts{};
  if (::fstat(opened.get(), &facts) != 0 || !S_ISREG(facts.st_mode))
    return make_error(ErrorCode::kNotFound, "stat {}: not a regular file", place);
  return opened;
}

Result<std::string> read_log(const std::string& file) {
  SPILLWAY_TRY(opened, open_log(file));
  const off_t size = std::max<off_t>(::lseek(opened.get(), 0, SEEK_END), 0);
  off_t at = std::max<off_t>(size - static_cast<off_t>(kLogBytesMax), 0);
  std::string text(static_cast<std::size_t>(size - at), '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t count = ::pread(opened.get(), text.data() + got, text.size() - got, at + static_cast<off_t>(got));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    got += static_cast<std::size_t>(count);
  }
  text.resize(got);
  return text;
}

Result<std::string> run_journal(std::vector<std::string> words) {
  PluginCall call{.program = "/usr/bin/journalctl", .time_max = kJournalMax, .output_max = kLogBytesMax};
  call.arguments.assign(std::make_move_iterator(words.begin() + 1), std::make_move_iterator(words.end()));
  SPILLWAY_TRY(answer, call_plugin(call));
  if (answer.code == 0 || answer.errors.empty()) return std::move(answer.output);
  return make_error(ErrorCode::kInternalError, "journalctl: exit code {}: {}", answer.code, answer.errors);
}

/// Reads from the journal, or from a file that is named like the service.
Result<std::string> read_service(const agent::NodeLogQuery& query, const std::string& service) {
  const auto units = run_journal({"journalctl", "--field", "_SYSTEMD_UNIT"});
  if (units && ("\n" + *units).contains("\n" + service + (service.contains('.') ? "\n" : ".service\n")))
    return run_journal(agent::journal_command(query, service));
  for (const std::string& file : {service, service + ".log", fmt::format("{}/{}.log", service, service)}) {
    if (!missing_node_log(file)) return read_log(file);
  }
  return make_error(ErrorCode::kNotFound, "log not found for {}: neither a unit of the journal nor a file below {}",
                    service, agent::kNodeLogFolder);
}

api::Response read_all(const agent::NodeLogQuery& query) {
  std::string text;
  const auto add = [&](const Result<std::string>& read) { text += read ? *read : read.error().message + "\n"; };
  for (const std::string& each : query.files) add(read_log(each));
  for (const std::string& each : query.services) add(read_service(query, each));
  return log_answer(200, std::move(text));
}

}  // namespace

std::optional<std::string> missing_node_log(const std::string& file) {
  const auto opened = open_log(file);
  return opened ? std::nullopt : std::optional(opened.error().message);
}

NodeLogs::NodeLogs(runtime::Loop& loop) : thread_(loop, kQueriesMax) {}

void NodeLogs::get(const api::Target& target, Answer answer) {
  agent::ParsedNodeLogQuery parsed = agent::parse_node_log_query(target);
  if (!parsed.errors.empty()) return answer(log_answer(400, joined(parsed.errors)));
  if (!parsed.query) return answer(log_answer(404, "404 page not found\n"));
  auto waiting = std::make_shared<Answer>(std::move(answer));
  const bool queued = thread_.submit([query = *std::move(parsed.query), waiting]() -> runtime::Loop::Task {
    const std::vector<std::string> errors = agent::node_log_query_errors(query, missing_node_log);
    api::Response made = errors.empty() ? read_all(query) : log_answer(406, joined(errors));
    return [waiting, made = std::move(made)]() mutable { (*waiting)(std::move(made)); };
  });
  if (!queued) (*waiting)(log_answer(503, "too many queries for logs wait, try again later\n"));
}

}  // namespace spillway::host
