#include "host/containers/log_folders.h"

#include "agent/contract/log_paths.h"
#include "host/logs/log_links.h"
#include "host/logs/logged_attempts.h"

#include <fmt/format.h>

namespace spillway::host {

std::string log_in(std::string_view folder, std::string_view container, std::int32_t attempt) {
  return fmt::format("{}/{}", folder, agent::container_log_path(container, attempt));
}

std::string LogFolders::folder_of(const api::PodKey& pod, std::string_view uid, const std::string& directory) const {
  if (options_.pods.empty() || !attempts_after_logs(directory).empty()) return directory;
  return agent::pod_log_directory(options_.pods, pod, uid);
}

std::string LogFolders::folder_of_remains(std::string_view name) const {
  return options_.pods.empty() ? std::string() : fmt::format("{}/{}", options_.pods, name);
}

void LogFolders::link(const api::PodKey& pod, const std::string& container, const std::string& id,
                      const std::string& log) const {
  if (options_.links.empty()) return;
  const bool queued = files_.submit(
      [this, folder = options_.links, name = agent::log_link_name(pod, container, id), log]() -> runtime::Loop::Task {
        Outcome made = make_log_link(folder, name, log);
        return [this, log, made = std::move(made)] {
          if (!made) log_.warning("log of a container not linked", {{"log", log}, {"error", made.error().text()}});
        };
      });
  if (!queued) log_.warning("log of a container not linked: too much is being removed", {{"log", log}});
}

void LogFolders::unlink(const api::PodKey& pod, const std::string& container, const std::string& id) const {
  if (options_.links.empty()) return;
  const bool queued = files_.submit(
      [folder = options_.links, name = agent::log_link_name(pod, container, id)]() -> runtime::Loop::Task {
        remove_log_links(folder, {name});
        return {};
      });
  if (!queued) log_.warning("link to a log stays until the next search for it", {{"container_id", id}});
}

void LogFolders::remove_old_links(const std::set<std::string>& running) const {
  if (options_.links.empty()) return;
  const bool queued = files_.submit([folder = options_.links, logs = options_.pods, running]() -> runtime::Loop::Task {
    remove_dangling_log_links(folder, logs, [&](const std::string& name) {
      const auto id = agent::container_of_log_link(name);
      return id && running.contains(*id);
    });
    return {};
  });
  if (!queued) log_.warning("links to removed logs are kept: too many removals are under way");
}

}  // namespace spillway::host
