#include "apps/commands/simulation_report.h"

#include "base/file.h"
#include "cli/text/explanation.h"
#include "sim/report/report_page.h"
#include "sim/scenario/summary.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace spillway::apps {

Result<SimulationReport> SimulationReport::create(std::string path) {
  if (path.empty()) return SimulationReport(std::move(path));
  std::error_code ignored_error;
  if (std::filesystem::is_directory(path, ignored_error)) return invalid("--report", "{} is a folder", path);
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (!std::filesystem::is_directory(folder, ignored_error)) {
    return Error{ErrorCode::kNotFound, fmt::format("there is no folder {}", folder.string()), "--report"};
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    return Error{ErrorCode::kForbidden, fmt::format("no file can be made in {}", folder.string()), "--report"};
  }
  return SimulationReport(std::move(path));
}

sim::RunObserver* SimulationReport::record(std::string name, std::string story, std::uint64_t seed) {
  if (path_.empty()) return nullptr;
  return &runs_.emplace_back(sim::Recorder::Options{.name = std::move(name), .story = std::move(story), .seed = seed});
}

void SimulationReport::conclude(const sim::RunOutcome& outcome) {
  if (!path_.empty()) summaries_.push_back(sim::summary_of(outcome));
}

Outcome SimulationReport::write() const {
  if (path_.empty()) return {};
  std::vector<sim::RunHistory> histories;
  for (const sim::Recorder& run : runs_) {
    histories.push_back(run.history());
    if (histories.size() <= summaries_.size()) histories.back().summary = summaries_[histories.size() - 1];
  }
  const auto explain = [](const policy::Decision& decision) {
    return cli::explain(decision, std::nullopt, cli::Paint::kNone);
  };
  const std::string title = histories.empty() ? "Simulation" : histories.front().name;
  return replace_file(path_, sim::report_page(title + " - Spillway simulation", histories, explain));
}

}  // namespace spillway::apps
