// `spillway record` fetches what a node or a controller recorded; `spillway replay` tells its engine the same again.
#include "agent/config/kubelet_config.h"
#include "agent/recording/replay.h"
#include "api/text/time_text.h"
#include "apps/commands/answer.h"
#include "apps/commands/commands.h"
#include "apps/commands/replay_text.h"
#include "apps/node/node_config.h"
#include "apps/process/process.h"
#include "apps/process/progress_line.h"
#include "apps/process/recording.h"
#include "base/file.h"
#include "base/unique_fd.h"
#include "host/files/recording_ring.h"
#include "sim/replay/lifecycle_replay.h"
#include "sim/scenario/parser.h"

#include "recording/frame.h"
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

namespace spillway::apps {

namespace {

constexpr int kExitDiffers = 3;
constexpr int kExitNotOurs = 4;

/// A recording may be longer than what read_file() takes.
constexpr std::int64_t kRecordingBytesMax = std::int64_t{3} << 30U;

Result<std::string> read_recording(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat found = {};
  if (!file || ::fstat(file.get(), &found) != 0) return errno_error(path, errno);
  if (!S_ISREG(found.st_mode)) return invalid(path, "is no ordinary file");
  if (found.st_size > kRecordingBytesMax) return invalid(path, "is longer than any recording");
  std::string text(static_cast<std::size_t>(found.st_size), '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(path, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

/// A node's state directory, its recording in it, or one of the copies there.
std::string ring_below(const std::string& directory) {
  const std::string below = recording_directory(directory);
  return std::filesystem::is_directory(below) ? below : directory;
}

/// A segment that goes while the others are read is one of the oldest.
Result<std::string> join(const std::vector<std::string>& paths, const recording::Kind& kind) {
  std::string file;
  for (const std::string& path : paths) {
    auto segment = read_recording(path);
    if (!segment && segment.error().code == ErrorCode::kNotFound && file.empty()) continue;
    if (!segment) return segment.error();
    if (const Outcome joined = recording::append_segment(file, *segment, kind); !joined) {
      return Error{ErrorCode::kInvalid, joined.error().message, path};
    }
  }
  return file;
}

int list_copies(const std::string& directory) {
  for (const std::string& name : host::recording_copies(directory)) fmt::print("{}\n", name);
  return cli::kExitOk;
}

Outcome write_new(const std::string& path, const std::string& text) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) return errno_error(path, errno);
  return write_all(file.get(), text, path);
}

int refuse(const Error& error, int code) {
  print_error(error);
  return code;
}

/// What `file` makes of a node that was recorded under another one.
Result<agent::EvictionOptions> other_options(const NodeConfig& config, const agent::RecordedNode& node) {
  SPILLWAY_TRY(options, agent::options_of(agent::effective_config(config.value, node.memory)));
  agent::EvictionOptions made = std::move(options.eviction);
  // What no KubeletConfiguration says stays as it was.
  made.cleanup_wait = node.options.cleanup_wait;
  made.memory_watch = node.options.memory_watch;
  made.blind_zone = node.options.blind_zone;
  made.blind_zone_ahead = node.options.blind_zone_ahead;
  made.observe = node.options.observe;
  return made;
}

Result<NodeConfig> read_other(const std::string& file) {
  SPILLWAY_TRY(config, read_node_config({.file = file}));
  for (const agent::ConfigFinding& each : config.findings) {
    const bool wrong = each.kind == agent::ConfigFinding::Kind::kError;
    fmt::print(stderr, "spillway: {}{}\n", wrong ? "" : "warning: ", each.text());
  }
  if (!config.usable()) return invalid(file, "is no configuration of a node");
  return std::move(config);
}

}  // namespace

int run_record(const cli::RecordCommand& command) {
  const std::string ring = ring_below(command.directory);
  if (command.list) return list_copies(ring);
  const auto paths = host::recording_segments(command.kept.empty() ? ring : ring + "/kept/" + command.kept);
  if (!paths) return refuse(paths.error(), cli::kExitFailure);
  auto file = join(*paths, command.of == "controller" ? recording::kControllerKind : recording::kAgentKind);
  if (!file) return refuse(file.error(), cli::kExitFailure);
  if (file->empty()) return refuse({ErrorCode::kNotFound, "there is no recording here", ring}, cli::kExitFailure);
  if (const Outcome written = write_new(command.file, *file); !written) {
    return refuse(written.error(), cli::kExitFailure);
  }
  fmt::print("{}: {} segments, {:.1f} MiB\n", command.file, paths->size(),
             static_cast<double>(file->size()) / static_cast<double>(mebibytes(1).count()));
  return cli::kExitOk;
}

namespace {

template <typename Report>
int show(const Report& report, const cli::ReplayCommand& command, bool drifts) {
  const std::string text = cli::is_document(command.output)
                               ? answer_text(replay_json(report, command.config), command.output)
                               : replay_text(report, command.config);
  std::fputs(text.c_str(), stdout);
  if (report.different() == 0 && !drifts) return cli::kExitOk;
  return command.config.empty() ? kExitNotOurs : kExitDiffers;
}

int refuse_replay(const Error& error, const std::string& file) {
  return refuse({ErrorCode::kInvalid, error.text(), file}, cli::kExitUsage);
}

std::function<void(std::size_t, std::size_t)> shown_on(ProgressLine& line) {
  return
      [&line](std::size_t done, std::size_t all) { line.show(static_cast<double>(done) / static_cast<double>(all)); };
}

int replay_agent(const std::string& file, const cli::ReplayCommand& command) {
  agent::Replay::Reconfigure reconfigure;
  if (!command.config.empty()) {
    auto config = read_other(command.config);
    if (!config) return refuse(config.error(), cli::kExitUsage);
    reconfigure = [config = *std::move(config)](const agent::RecordedNode& node) {
      return other_options(config, node);
    };
  }
  Result<agent::ReplayReport> report;
  {
    ProgressLine line("replaying", ProgressLine::Shown::kOnTerminal);
    report = agent::replay_recording(file, std::move(reconfigure), shown_on(line));
  }
  if (!report) return refuse_replay(report.error(), command.file);
  return show(*report, command, report->drifts > 0);
}

/// What `config` makes of a controller that was recorded under another one.
Result<controllers::RecordedController> other_controller(const std::string& file, const std::string& text,
                                                         const controllers::RecordedController& was) {
  sim::ScenarioConfig base;
  base.controllers.node_lifecycle.node_monitor_period = was.node_monitor_period;
  base.controllers.node_lifecycle.monitor = was.monitor;
  base.controllers.brakes = was.brakes;
  const auto no_files = [](const std::string& name) -> Result<std::string> {
    return invalid(name, "a controller's configuration names no files");
  };
  SPILLWAY_TRY(config, sim::parse_scenario_config(file, text, no_files, std::move(base)));
  controllers::RecordedController made = was;
  made.node_monitor_period = config.controllers.node_lifecycle.node_monitor_period;
  made.monitor = config.controllers.node_lifecycle.monitor;
  made.brakes = config.controllers.brakes;
  return made;
}

int replay_controller(const std::string& file, const cli::ReplayCommand& command) {
  sim::ReconfigureController reconfigure;
  if (!command.config.empty()) {
    auto text = read_file(command.config);
    if (!text) return refuse(text.error(), cli::kExitUsage);
    // Wrong whatever was recorded?
    if (const auto checked = other_controller(command.config, *text, {}); !checked)
      return refuse(checked.error(), cli::kExitUsage);
    reconfigure = [&command, text = *std::move(text)](const controllers::RecordedController& was) {
      return other_controller(command.config, text, was);
    };
  }
  Result<sim::LifecycleReplayReport> report;
  {
    ProgressLine line("replaying", ProgressLine::Shown::kOnTerminal);
    report = sim::replay_lifecycle(file, reconfigure, shown_on(line));
  }
  if (!report) return refuse_replay(report.error(), command.file);
  return show(*report, command, false);
}

}  // namespace

int run_replay(const cli::ReplayCommand& command) {
  const auto file = read_recording(command.file);
  if (!file) return refuse(file.error(), cli::kExitUsage);
  return file->starts_with(recording::kControllerKind.header) ? replay_controller(*file, command)
                                                              : replay_agent(*file, command);
}

}  // namespace spillway::apps
