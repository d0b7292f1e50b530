#include "host/spawn/container_entry.h"

#include <poll.h>
#include <signal.h>

#include <utility>

namespace spillway::host {

ContainerEntry::ContainerEntry(runtime::Loop& loop, Owner& owner, EntryPlan plan)
    : loop_(loop), owner_(owner), plan_(std::move(plan)) {}

ContainerEntry::~ContainerEntry() {
  // What was told since the last turn of the loop: a program that nobody knows of would go on.
  if (status_) read_entry_reports(plan_, status_.get(), reports_);
  for (UniqueFd* fd : {&helper_, &status_, &program_})
    if (*fd) loop_.unwatch_fd(fd->get());
  if (helper_) ignored(send_signal(helper_.get(), SIGKILL), "it ended by itself");
  kill_program();
}

Outcome ContainerEntry::start(const EntryStreams& streams) {
  SPILLWAY_TRY(child, start_entry(plan_, streams));
  plan_.namespaces.clear();
  helper_ = std::move(child.helper);
  status_ = std::move(child.status);
  loop_.watch_fd(helper_.get(), POLLIN, [this] { on_helper_end(); });
  loop_.watch_fd(status_.get(), POLLIN, [this] { on_status(); });
  return {};
}

void ContainerEntry::on_status() {
  read_entry_reports(plan_, status_.get(), reports_);
  watch_program();
  if (!reports_.at_end) return;
  loop_.unwatch_fd(status_.get());
  status_.reset();
  if (reports_.failure.empty() && reports_.program > 0 && !program_ended_ && !killed_) owner_.on_entry_running();
  finish();
}

void ContainerEntry::watch_program() {
  if (reports_.program <= 0 || program_ || program_ended_) return;
  // Our child, which nobody but us collects: the number is still its own.
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
  const Result<std::optional<ProcessEnd>> end = reap(helper_.get());
  if (end && !*end) return;
  loop_.unwatch_fd(helper_.get());
  helper_.reset();
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
  kill_program();
}

void ContainerEntry::kill_program() {
  if (!program_) return;
  // It leads its group as soon as it has a session; until then there is but itself.
  ::kill(-reports_.program, SIGKILL);
  ignored(send_signal(program_.get(), SIGKILL), "it ended by itself");
}

void ContainerEntry::finish() {
  if (helper_ || status_) return;
  if (reports_.program > 0 && !program_ended_) return;
  if (reports_.program <= 0 && reports_.failure.empty()) reports_.failure = "killed before it was started";
  if (!reports_.failure.empty())
    return owner_.on_entry_ended(make_error(ErrorCode::kInternalError, "{}", reports_.failure));
  owner_.on_entry_ended(end_);
}

}  // namespace spillway::host
