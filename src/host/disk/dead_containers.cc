#include "host/disk/dead_containers.h"

#include "host/disk/disk_usage.h"

#include <filesystem>
#include <system_error>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFilesAtOnce = 10'000;

/// "…/3.log" of "…/3.log" and "…/3.log.1"; empty for any other file.
std::string log_of(const fs::path& file) {
  const std::string name = file.filename().string();
  const std::size_t at = name.find(".log");
  if (at == std::string::npos || at == 0) return {};
  const std::string_view rest = std::string_view(name).substr(at + 4);
  if (!rest.empty() && rest.front() != '.') return {};
  return (file.parent_path() / name.substr(0, at + 4)).string();
}

void delete_of_container(const fs::path& folder, const PodLogs& pod, agent::ReclaimOutcome& outcome) {
  std::error_code error;
  std::set<std::string> dead;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error)) {
    std::error_code failed;
    if (!file.is_regular_file(failed)) continue;
    const std::string log = log_of(file.path());
    if (log.empty() || pod.live.contains(log)) continue;
    const std::uintmax_t size = file.file_size(failed);
    if (!fs::remove(file.path(), failed) || failed) {
      if (outcome.problem.empty()) outcome.problem = file.path().string() + ": " + failed.message();
      continue;
    }
    outcome.freed += Bytes{static_cast<std::int64_t>(size)};
    dead.insert(log);
  }
  outcome.deleted += static_cast<std::int64_t>(dead.size());
}

void delete_spent(const std::string& folder, agent::ReclaimOutcome& outcome) {
  DirectoryWalk walk(folder);
  while (!walk.step(kFilesAtOnce)) {
  }
  std::error_code failed;
  if (fs::remove_all(folder, failed) == 0 || failed) {
    if (failed && outcome.problem.empty()) outcome.problem = folder + ": " + failed.message();
    return;
  }
  ++outcome.deleted;
  if (const auto usage = walk.result()) outcome.freed += Bytes{static_cast<std::int64_t>(usage->used_bytes)};
}

}  // namespace

Outcome delete_log(const std::string& folder, const std::string& log) {
  Outcome outcome;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error)) {
    std::error_code failed;
    if (log_of(file.path()) != log) continue;
    fs::remove(file.path(), failed);
    if (failed && outcome) outcome = errno_error(file.path().string(), failed.value());
  }
  return outcome;
}

agent::ReclaimOutcome delete_dead_logs(const std::vector<PodLogs>& pods) {
  agent::ReclaimOutcome outcome{
      .action = eviction::ReclaimAction::kContainers, .deleted = 0, .freed = {}, .problem = {}};
  for (const PodLogs& pod : pods) {
    if (!pod.spent.empty()) delete_spent(pod.spent, outcome);
    std::error_code error;
    for (const fs::directory_entry& container : fs::directory_iterator(pod.directory, error)) {
      std::error_code failed;
      const bool is_container =
          container.is_directory(failed) && !container.path().filename().string().starts_with('_');
      if (is_container) delete_of_container(container.path(), pod, outcome);
    }
  }
  return outcome;
}

}  // namespace spillway::host
