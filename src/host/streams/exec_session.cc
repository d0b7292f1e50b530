#include "host/streams/exec_session.h"

#include "host/kernel/kernel_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace spillway::host {
namespace {

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> open_pipe() {
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error("pipe", errno);
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void stop_blocking(const UniqueFd& fd) {
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

}  // namespace

ExecSession::ExecSession(runtime::Loop& loop, std::shared_ptr<api::UpgradingSink> sink,
                         std::unique_ptr<api::CommandChannels> channels, api::StreamOptions options,
                         std::function<Result<ContainerAccess>()> enter)
    : ChannelSession(loop, std::move(sink), std::move(channels), options), enter_(std::move(enter)) {}

ExecSession::~ExecSession() = default;

void ExecSession::on_ready() {
  Result<ContainerAccess> access = std::exchange(enter_, nullptr)();
  const Outcome begun = access ? begin(*std::move(access)) : Outcome(access.error());
  if (begun) return;
  ended_ = true;
  finish(begun.error());
}

Outcome ExecSession::begin(ContainerAccess access) {
  if (access.plan.confinement != nullptr) {
    const Confinement& own = *access.plan.confinement;
    owner_ = std::pair(own.first_id + own.uid, own.first_id + own.gid);
  }
  const auto names_terminal = [](const std::string& entry) { return entry.starts_with("TERM="); };
  if (options().tty && std::ranges::none_of(access.plan.environment, names_terminal))
    access.plan.environment.emplace_back("TERM=xterm");
  if (!options().tty) {
    entry_ =
        std::make_unique<ContainerEntry>(loop(), static_cast<ContainerEntry::Owner&>(*this), std::move(access.plan));
    return begin_with_pipes();
  }
  const pid_t process = access.process;
  entry_ = std::make_unique<ContainerEntry>(loop(), static_cast<ContainerEntry::Owner&>(*this), std::move(access.plan));
  SPILLWAY_TRY(terminal, open_terminal(process));
  if (owner_ && ::fchown(terminal.theirs.get(), owner_->first, owner_->second) != 0)
    return errno_error("terminal", errno);
  terminal_ = std::move(terminal.ours);
  if (size_) on_resize(*size_);
  const int theirs = terminal.theirs.get();
  SPILLWAY_TRY_VOID(entry_->start({.in = theirs, .out = theirs, .err = theirs, .terminal = true}));
  take_output(api::Channel::kOut, UniqueFd(::fcntl(terminal_.get(), F_DUPFD_CLOEXEC, 3)));
  take_input(options().in ? UniqueFd(::fcntl(terminal_.get(), F_DUPFD_CLOEXEC, 3)) : UniqueFd());
  return {};
}

Outcome ExecSession::begin_with_pipes() {
  Pipe in;
  Pipe out;
  Pipe err;
  for (auto [wanted, pipe] :
       {std::pair(options().in, &in), std::pair(options().out, &out), std::pair(options().err, &err)}) {
    if (!wanted) continue;
    SPILLWAY_TRY(made, open_pipe());
    *pipe = std::move(made);
    // A program may open its streams again by name, as /dev/stdout.
    if (owner_ && ::fchown(pipe->read.get(), owner_->first, owner_->second) != 0) return errno_error("pipe", errno);
  }
  for (const UniqueFd* ours : {&in.write, &out.read, &err.read})
    if (*ours) stop_blocking(*ours);
  SPILLWAY_TRY_VOID(entry_->start({.in = in.read.get(), .out = out.write.get(), .err = err.write.get()}));
  take_input(std::move(in.write));
  if (out.read) take_output(api::Channel::kOut, std::move(out.read));
  if (err.read) take_output(api::Channel::kErr, std::move(err.read));
  return {};
}

void ExecSession::on_resize(api::TerminalSize size) {
  size_ = size;
  resize_terminal(terminal_, size.width, size.height);
}

void ExecSession::on_client_gone() {
  terminal_.reset();  // which sends SIGHUP
  if (entry_) entry_->kill();
}

void ExecSession::on_entry_ended(Result<ProcessEnd> end) {
  ended_ = true;
  if (end)
    finish(end->exit_code);
  else
    finish(end.error());
  terminal_.reset();
}

}  // namespace spillway::host
