#include "host/spawn/container_entry.h"

#include "base/check.h"

#include <poll.h>
#include <signal.h>

#include <utility>

namespace spillway::host {

ContainerEntry::ContainerEntry(runtime::Loop& loop, Owner& owner, EntryPlan plan)
    : loop_(loop), owner_(owner), plan_(std::move(plan)) {}

ContainerEntry::~ContainerEntry() {
  for (UniqueFd* fd : {&child_.helper, &child_.status, &program_})
    if (*fd) loop_.unwatch_fd(fd->get());
  if (child_.helper) ignored(send_signal(child_.helper.get(), SIGKILL), "it ended by itself");
  // The program may have been made since the last report.
  reports_.program = child_.program.read();
  if (!program_ && !program_ended_ && reports_.program > 0) program_ = try_open_pidfd(reports_.program);
  kill_program();
}

Outcome ContainerEntry::start(const EntryStreams& streams) {
  SPILLWAY_TRY(child, start_entry(plan_, streams));
  plan_.namespaces.clear();
  child_ = std::move(child);
  loop_.watch_fd(child_.helper.get(), POLLIN, [this] { on_helper_end(); });
  loop_.watch_fd(child_.status.get(), POLLIN, [this] { on_status(); });
  return {};
}

void ContainerEntry::on_status() {
  hold_program();
  if (!reports_.at_end) return;
  loop_.unwatch_fd(child_.status.get());
  child_.status.reset();
  if (reports_.failure.empty() && reports_.program > 0 && !program_ended_ && !killed_) owner_.on_entry_running();
  finish();
}

void ContainerEntry::hold_program() {
  read_entry_reports(plan_, child_, reports_);
  if (reports_.program <= 0 || program_ || program_ended_) return;
  // The process number cannot have been reused, because only this object reaps the process.
  program_ = try_open_pidfd(reports_.program);
  if (!program_) {
    reports_.failure = "a process of the container is lost";
    program_ended_ = true;
    ::kill(reports_.program, SIGKILL);
    return;
  }
  loop_.watch_fd(program_.get(), POLLIN, [this] { on_program_end(); });
  if (killed_) kill_program();
}

void ContainerEntry::on_helper_end() {
  const Result<std::optional<ProcessEnd>> end = reap(child_.helper.get());
  if (end && !*end) return;
  loop_.unwatch_fd(child_.helper.get());
  child_.helper.reset();
  finish();
}

void ContainerEntry::on_program_end() {
  const Result<std::optional<ProcessEnd>> end = reap(program_.get());
  if (end && !*end) return;
  loop_.unwatch_fd(program_.get());
  program_.reset();
  program_ended_ = true;
  end_ = end ? end->value_or(ProcessEnd{255, 0}) : ProcessEnd{255, 0};
  finish();
}

void ContainerEntry::kill() {
  killed_ = true;
  hold_program();
  kill_program();
}

void ContainerEntry::kill_program() {
  if (!program_) return;
  SPILLWAY_CHECK(reports_.program > 0);  // group 0 would be that of this process
  // The program leads its group as soon as it has a session; until then the group is the program alone.
  ::kill(-reports_.program, SIGKILL);
  ignored(send_signal(program_.get(), SIGKILL), "it ended by itself");
}

void ContainerEntry::finish() {
  if (child_.helper || child_.status) return;
  if (reports_.program > 0 && !program_ended_) return;
  if (reports_.program <= 0 && reports_.failure.empty()) reports_.failure = "killed before it was started";
  if (!reports_.failure.empty())
    return owner_.on_entry_ended(make_error(ErrorCode::kInternalError, "{}", reports_.failure));
  owner_.on_entry_ended(end_);
}

}  // namespace spillway::host
