#include "host/audit/audit_writer.h"

#include "base/check.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace spillway::host {
namespace {

/// The reader of standard output may close it; that is an error of a write, not the end of the process.
void ignore_broken_pipes() {
  sigset_t broken;
  ::sigemptyset(&broken);
  ::sigaddset(&broken, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &broken, nullptr);
}

}  // namespace

AuditWriter::AuditWriter(runtime::Loop& loop, AuditFile file, Options options)
    : loop_(loop), options_(std::move(options)), file_(std::move(file)), queue_(options_.bounds), thread_("audit-log") {
  SPILLWAY_CHECK(options_.loss_line);
  if (!file_.is_stdout()) {
    backups_.emplace(file_.path(), options_.backups, options_.log);
    backups_->tidy();
  }
  thread_.loop().post(ignore_broken_pipes);
}

AuditWriter::~AuditWriter() {
  thread_.stop();
  ignore_broken_pipes();
  while (!queue_.empty()) drain();
}

void AuditWriter::write(std::string line) {
  enter({.line = std::move(line)});
}

void AuditWriter::write(std::string line, std::move_only_function<void(Outcome)> done) {
  enter({.line = std::move(line), .done = std::move(done)});
}

void AuditWriter::enter(AuditEntry entry) {
  std::unique_lock lock(mutex_);
  if (options_.blocks) room_.wait(lock, [&] { return queue_.has_room(entry.line.size()); });
  if (!queue_.push(entry)) {
    ++lost_;
    lock.unlock();
    options_.lost.add();
    if (!entry.done) return;
    loop_.post([done = std::move(entry.done)]() mutable {
      done(make_error(ErrorCode::kServiceUnavailable, "too many audit events wait"));
    });
    return;
  }
  if (std::exchange(scheduled_, true)) return;
  lock.unlock();
  thread_.loop().post([this] { drain(); });
}

void AuditWriter::drain() {
  std::vector<AuditEntry> batch;
  {
    const std::lock_guard lock(mutex_);
    batch = queue_.take(options_.write_bytes_max);
    scheduled_ = !queue_.empty();
    if (scheduled_) thread_.loop().post([this] { drain(); });
  }
  room_.notify_all();
  if (batch.empty()) return;
  const Outcome written = write_out(batch);
  if (!written) lose(batch.size());
  say_lost();
  for (AuditEntry& entry : batch) {
    if (entry.done) loop_.post([done = std::move(entry.done), written]() mutable { done(written); });
  }
}

Outcome AuditWriter::write_out(const std::vector<AuditEntry>& batch) {
  std::string lines;
  bool awaited = false;
  for (const AuditEntry& entry : batch) {
    lines += entry.line;
    lines += '\n';
    awaited = awaited || entry.done;
  }
  SPILLWAY_TRY_VOID(append(lines));
  if (!awaited || !options_.syncs) return {};
  return file_.sync();
}

void AuditWriter::lose(std::uint64_t events) {
  options_.lost.add(static_cast<double>(events));
  const std::lock_guard lock(mutex_);
  lost_ += events;
}

/// Writes to the log how many events are missing, as soon as it can be written.
void AuditWriter::say_lost() {
  std::uint64_t lost = 0;
  {
    const std::lock_guard lock(mutex_);
    lost = std::exchange(lost_, 0);
  }
  if (lost == 0) return;
  const WallTime now = thread_.loop().now().wall;
  if (append(options_.loss_line(lost, now) + "\n")) {
    options_.log.warning("audit events were lost", {{"events", lost}});
    return;
  }
  const std::lock_guard lock(mutex_);
  lost_ += lost;
  retry_later();
}

void AuditWriter::retry_later() {
  if (std::exchange(retrying_, true)) return;
  runtime::Loop& loop = thread_.loop();
  loop.at(loop.now().mono + kRetry, [this] {
    retrying_ = false;
    say_lost();
  });
}

Outcome AuditWriter::append(const std::string& lines) {
  const auto appended = file_.append(lines, thread_.loop().now().wall);
  const bool good = appended && !appended->not_renamed;
  if (good == failing_) {
    failing_ = !good;
    const Error* why = !appended ? &appended.error() : appended->not_renamed ? &*appended->not_renamed : nullptr;
    if (why != nullptr) options_.log.error("the audit log cannot be written", {{"err", why->text()}});
    if (why == nullptr) options_.log.info("the audit log is written again");
  }
  if (!appended) return appended.error();
  if (appended->renamed && backups_) backups_->tidy();
  return {};
}

}  // namespace spillway::host
