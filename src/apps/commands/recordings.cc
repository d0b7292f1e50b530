// `spillway record` downloads the recording of a node or a controller; `spillway replay` gives its engine the same
// input again.
#include "agent/config/kubelet_config.h"
#include "agent/recording/replay.h"
#include "api/text/time_text.h"
#include "apps/commands/answer.h"
#include "apps/commands/commands.h"
#include "apps/commands/recording_source.h"
#include "apps/commands/replay_text.h"
#include "apps/node/node_config.h"
#include "apps/process/draft_file.h"
#include "apps/process/process.h"
#include "apps/process/progress_line.h"
#include "apps/process/terminal.h"
#include "apps/view/cluster_view.h"
#include "base/file.h"
#include "host/files/recording_ring.h"
#include "runtime/loop.h"
#include "sim/replay/lifecycle_replay.h"
#include "sim/replay/recorded_cost.h"

#include "recording/frame.h"
#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::apps {

namespace {

/// Recordings may be longer than the maximum of read_file().
constexpr std::int64_t kRecordingBytesMax = std::int64_t{3} << 30U;

int refuse(const Error& error, int code) {
  print_error(error);
  return code;
}

/// The options of a recorded node with the configuration in `file` in place of its own.
Result<agent::EvictionOptions> other_options(const NodeConfig& config, const agent::RecordedNode& node) {
  SPILLWAY_TRY(options, agent::options_of(agent::effective_config(config.value, node.memory)));
  agent::EvictionOptions made = std::move(options.eviction);
  // Options outside of a KubeletConfiguration stay as recorded.
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
    print_err("spillway: {}{}\n", wrong ? "" : "warning: ", each.text());
  }
  if (!config.usable()) return invalid(file, "is no configuration of a node");
  return std::move(config);
}

}  // namespace

namespace {

int list_copies(RecordingSource& source) {
  const auto names = source.copies();
  if (!names) return refuse(names.error(), cli::kExitFailure);
  for (const std::string& name : *names) print_out("{}\n", name);
  return cli::kExitOk;
}

struct Fetched {
  std::size_t segments = 0;
  std::int64_t bytes = 0;
};

/// A recording while it is fetched.
class Fetching {
 public:
  static Result<Fetching> begin(const cli::RecordCommand& command) {
    SPILLWAY_TRY(file, DraftFile::make(command.file));
    return Fetching(command, std::move(file));
  }

  Outcome add(const RecordingSource::Segment& segment, std::string_view bytes) {
    std::string piece(fetched_.segments == 0 ? std::string_view() : kind_->header);
    const std::size_t head = piece.size();
    if (const Outcome joined = recording::append_segment(piece, bytes, *kind_); !joined) {
      const std::string at = command_->directory.empty() ? "segment " + segment.name : segment.name;
      return Error{ErrorCode::kInvalid, joined.error().message, at};
    }
    fetched_.bytes += static_cast<std::int64_t>(piece.size() - head);
    if (fetched_.bytes > kRecordingBytesMax) return invalid(command_->file, "would be longer than any recording");
    SPILLWAY_TRY_VOID(file_.append(std::string_view(piece).substr(head)));
    ++fetched_.segments;
    return {};
  }

  bool has_any() const { return fetched_.segments > 0; }

  Result<Fetched> commit() {
    if (!has_any()) return make_error(ErrorCode::kNotFound, "the recording was removed meanwhile");
    SPILLWAY_TRY_VOID(file_.commit());
    return fetched_;
  }

 private:
  Fetching(const cli::RecordCommand& command, DraftFile file)
      : command_(&command),
        kind_(command.of == cli::RecordCommand::Of::kController ? &recording::kControllerKind : &recording::kAgentKind),
        file_(std::move(file)) {}

  const cli::RecordCommand* command_;
  const recording::Kind* kind_;
  DraftFile file_;
  Fetched fetched_;
};

Error interrupted_error() {
  return make_error(ErrorCode::kServiceUnavailable, "interrupted");
}

/// Joins the segments into one file. A ring drops its oldest segments: where one is gone, those before it are or will
/// be, and the recording begins after it.
Result<Fetched> fetch(RecordingSource& source, const cli::RecordCommand& command, ProgressLine& line) {
  SPILLWAY_TRY(segments, source.segments(command.kept));
  std::optional<Fetching> fetching;
  std::size_t done = 0;
  for (const RecordingSource::Segment& each : segments) {
    if (interrupted()) return interrupted_error();
    line.show(static_cast<double>(done++) / static_cast<double>(segments.size()));
    if (!fetching) {
      SPILLWAY_TRY(begun, Fetching::begin(command));
      fetching.emplace(std::move(begun));
    }
    const auto bytes = source.read(command.kept, each);
    if (!bytes && bytes.error().code != ErrorCode::kNotFound) return bytes.error();
    if (bytes) {
      SPILLWAY_TRY_VOID(fetching->add(each, *bytes));
    } else if (fetching->has_any()) {
      fetching.reset();
    }
  }
  if (interrupted()) return interrupted_error();
  if (!fetching) return make_error(ErrorCode::kNotFound, "the recording was removed meanwhile");
  return fetching->commit();
}

}  // namespace

int run_record(const cli::RecordCommand& command) {
  catch_interrupts();
  runtime::Loop loop;
  auto source = command.directory.empty() ? recording_from(loop, command) : recording_in(command.directory);
  if (!source) {
    const bool wrong = source.error().code == ErrorCode::kInvalid;
    return refuse(source.error(), wrong ? cli::kExitUsage : cli::kExitFailure);
  }
  if (command.list) return list_copies(**source);
  Result<Fetched> fetched;
  {
    ProgressLine line("fetching", ProgressLine::Shown::kOnTerminal);
    fetched = fetch(**source, command, line);
  }
  if (!fetched) return refuse(fetched.error(), cli::kExitFailure);
  print_out("{}: {} segments, {:.1f}Mi\n", command.file, fetched->segments,
            static_cast<double>(fetched->bytes) / static_cast<double>(mebibytes(1).count()));
  return cli::kExitOk;
}

namespace {

template <typename Report>
int show(const Report& report, const cli::ReplayCommand& command, bool drifts) {
  const std::string text = cli::is_document(command.output)
                               ? answer_text(replay_json(report, command.config), command.output)
                               : replay_text(report, command.config);
  write_stdout(text);
  if (report.different() == 0 && !drifts) return cli::kExitOk;
  return command.config.empty() ? cli::kExitInvariant : cli::kExitNegative;
}

int refuse_replay(const Error& error, const std::string& file) {
  return refuse({ErrorCode::kInvalid, error.text(), file}, cli::kExitUsage);
}

std::function<bool(std::size_t, std::size_t)> shown_on(ProgressLine& line) {
  return [&line](std::size_t done, std::size_t all) {
    line.show(static_cast<double>(done) / static_cast<double>(all));
    return true;
  };
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

int replay_controller(const std::string& file, const cli::ReplayCommand& command) {
  sim::ReconfigureController reconfigure;
  if (!command.config.empty()) {
    auto text = read_file(command.config);
    if (!text) return refuse(text.error(), cli::kExitUsage);
    const auto no_files = [](const std::string& name) -> Result<std::string> {
      return invalid(name, "a controller's configuration names no files");
    };
    sim::ConfigChoice config{command.config, *std::move(text), no_files};
    // Wrong whatever was recorded?
    if (const auto checked = sim::controller_under(config, {}); !checked)
      return refuse(checked.error(), cli::kExitUsage);
    reconfigure = [config = std::move(config)](const controllers::RecordedController& was) {
      return sim::controller_under(config, was);
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
  const auto file = host::read_recording_file(command.file, kRecordingBytesMax);
  if (!file) return refuse(file.error(), cli::kExitUsage);
  return file->starts_with(recording::kControllerKind.header) ? replay_controller(*file, command)
                                                              : replay_agent(*file, command);
}

}  // namespace spillway::apps
