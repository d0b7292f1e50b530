#include "host/files/checkpoint_files.h"

#include "base/check.h"
#include "base/file.h"

#include <memory>
#include <utility>

namespace spillway::host {

CheckpointFiles::CheckpointFiles(runtime::Loop& loop, std::string directory, telemetry::Log log)
    : directory_(std::move(directory)), log_(std::move(log)), thread_(std::make_unique<BlockingThread>(loop, 1)) {}

CheckpointFiles::~CheckpointFiles() {
  thread_.reset();  // waits at most a second for the file being written
  for (const auto& [file, text] : waiting_) report(file, replace_file(directory_ + "/" + file, text));
}

void CheckpointFiles::save(const std::string& file, std::string text) {
  waiting_.insert_or_assign(file, std::move(text));
  if (!writing_) write_next();
}

void CheckpointFiles::when_saved(runtime::Loop::Task then) {
  if (!writing_) return then();
  then_.push_back(std::move(then));
}

void CheckpointFiles::write_next() {
  auto next = waiting_.extract(waiting_.begin());
  const bool taken = thread_->submit([this, path = directory_ + "/" + next.key(), file = next.key(),
                                      text = std::move(next.mapped())]() -> runtime::Loop::Task {
    return [this, file, written = replace_file(path, text)] { on_written(file, written); };
  });
  SPILLWAY_CHECK(taken);
  writing_ = true;
}

void CheckpointFiles::on_written(const std::string& file, const Outcome& written) {
  report(file, written);
  writing_ = false;
  if (!waiting_.empty()) return write_next();
  for (runtime::Loop::Task& each : std::exchange(then_, {})) each();
}

void CheckpointFiles::report(const std::string& file, const Outcome& written) const {
  if (!written) log_.error("checkpoint not saved", {{"file", file}, {"error", written.error().text()}});
}

}  // namespace spillway::host
