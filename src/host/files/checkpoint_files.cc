#include "host/files/checkpoint_files.h"

#include "base/check.h"
#include "base/file.h"

#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

namespace spillway::host {
namespace {

/// A rename that takes longer hangs, and another one of the same folder would hang as well.
constexpr std::chrono::seconds kRenameMax{1};

}  // namespace

/// One write, shared with the thread, which may be abandoned with it.
struct CheckpointFiles::Write {
  std::string directory;
  std::string file;
  std::string text;
  WriteDraft write_draft;
  std::timed_mutex placing;  // guards the two below; held for one rename
  bool placed = false;
  bool taken_back = false;  // another text has replaced the file, or will
};

CheckpointFiles::CheckpointFiles(runtime::Loop& loop, std::string directory, telemetry::Log log, WriteDraft write_draft)
    : directory_(std::move(directory)),
      log_(std::move(log)),
      write_draft_(std::move(write_draft)),
      thread_(std::make_unique<BlockingThread>(loop, 1)) {}

CheckpointFiles::~CheckpointFiles() {
  thread_.reset();  // waits at most a second for the file being written
  if (write_) take_back();
  for (const auto& [file, text] : waiting_) report(file, replace_file(directory_ + "/" + file, text));
}

void CheckpointFiles::save(const std::string& file, std::string text) {
  waiting_.insert_or_assign(file, std::move(text));
  if (!write_) write_next();
}

void CheckpointFiles::when_saved(runtime::Loop::Task then) {
  if (!write_) return then();
  then_.push_back(std::move(then));
}

void CheckpointFiles::write_next() {
  auto next = waiting_.extract(waiting_.begin());
  write_ = std::make_shared<Write>();
  write_->directory = directory_;
  write_->file = std::move(next.key());
  write_->text = std::move(next.mapped());
  write_->write_draft = write_draft_;
  const bool taken = thread_->submit([this, write = write_]() -> runtime::Loop::Task {
    return [this, written = carry_out(*write)] { on_written(written); };
  });
  SPILLWAY_CHECK(taken);
}

Outcome CheckpointFiles::carry_out(Write& write) {
  const std::string path = write.directory + "/" + write.file;
  SPILLWAY_TRY(draft, write.write_draft(path, write.text));
  {
    const std::scoped_lock lock(write.placing);
    if (write.taken_back) return {};
    SPILLWAY_TRY_VOID(draft.place());
    write.placed = true;
  }
  return sync_folder_of(path);
}

void CheckpointFiles::on_written(const Outcome& written) {
  report(std::exchange(write_, nullptr)->file, written);
  if (!waiting_.empty()) return write_next();
  for (runtime::Loop::Task& each : std::exchange(then_, {})) each();
}

/// From now on the write under way replaces nothing. If it has not yet, its text waits again, unless a newer one does.
void CheckpointFiles::take_back() {
  const std::unique_lock lock(write_->placing, kRenameMax);
  if (!lock) {
    waiting_.erase(write_->file);
    return report(write_->file, make_error(ErrorCode::kServiceUnavailable, "{} hangs", directory_));
  }
  write_->taken_back = true;
  if (!write_->placed) waiting_.try_emplace(write_->file, write_->text);
}

void CheckpointFiles::report(const std::string& file, const Outcome& written) const {
  if (!written) log_.error("checkpoint not saved", {{"file", file}, {"error", written.error().text()}});
}

}  // namespace spillway::host
