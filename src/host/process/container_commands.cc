#include "host/process/container_commands.h"

#include "base/unique_fd.h"
#include "host/kernel/kernel_file.h"
#include "host/spawn/container_entry.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

namespace spillway::host {

class ContainerCommands::Running final : private ContainerEntry::Owner {
 public:
  Running(ContainerCommands& all, std::uint64_t key, std::uint64_t id, EntryPlan plan)
      : all_(all), key_(key), first_id_(owner_of(plan)), entry_(all.loop_, *this, std::move(plan)) {
    answer_.id = id;
  }

  ~Running() override { release(); }

  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  Outcome start(Duration timeout) {
    std::array<int, 2> ends = {-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error("pipe", errno);
    output_ = UniqueFd(ends[0]);
    const UniqueFd theirs(ends[1]);
    ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
    // A program may open its output again by its name, /dev/stdout.
    if (first_id_ && ::fchown(theirs.get(), first_id_->first, first_id_->second) != 0)
      return errno_error("pipe", errno);
    SPILLWAY_TRY_VOID(entry_.start({.out = theirs.get(), .err = theirs.get()}));
    all_.loop_.watch_fd(output_.get(), POLLIN, [this] {
      if (!pump(kPumpBytesMax)) close_output();
    });
    if (timeout <= Duration::zero()) return {};
    timer_ = all_.loop_.at(all_.loop_.now().mono + timeout, [this] {
      timer_.reset();
      answer_.timed_out = true;
      entry_.kill();
      answer();
    });
    return {};
  }

 private:
  static constexpr std::size_t kPumpBytesMax = 65'536;      // copied in one turn of the loop
  static constexpr std::size_t kDrainBytesMax = 1'048'576;  // a full pipe still holds this much after the end

  static std::optional<std::pair<uid_t, gid_t>> owner_of(const EntryPlan& plan) {
    if (plan.confinement == nullptr) return std::nullopt;
    const Confinement& own = *plan.confinement;
    return std::pair(own.first_id + own.uid, own.first_id + own.gid);
  }

  void on_entry_ended(Result<ProcessEnd> end) override {
    static_cast<void>(output_ && pump(kDrainBytesMax));
    if (end)
      answer_.exit_code = end->exit_code;
    else
      answer_.exit_code = end.error();
    answer();
    all_.forget(key_);
  }

  /// A command that exceeds its time is reported at once, even if the kernel cannot kill it.
  void answer() {
    if (std::exchange(answered_, true)) return;
    static_cast<void>(output_ && pump(kDrainBytesMax));
    release();
    all_.answer_(std::move(answer_));
  }

  /// False at the end of the stream. Output beyond the limit is read too, so that the program is not blocked.
  bool pump(std::size_t bytes_max) {
    std::array<char, 4096> chunk;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    for (std::size_t total = 0; total < bytes_max;) {
      const ssize_t got = ::read(output_.get(), chunk.data(), chunk.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return true;
      if (got <= 0) return false;
      total += static_cast<std::size_t>(got);
      answer_.output.append(chunk.data(),
                            std::min(static_cast<std::size_t>(got), agent::kCommandOutputMax - answer_.output.size()));
    }
    return true;
  }

  void close_output() {
    if (!output_) return;
    all_.loop_.unwatch_fd(output_.get());
    output_.reset();
  }

  void release() {
    if (timer_) all_.loop_.cancel(*timer_);
    timer_.reset();
    close_output();
  }

  ContainerCommands& all_;
  std::uint64_t key_;
  std::optional<std::pair<uid_t, gid_t>> first_id_;
  ContainerEntry entry_;
  UniqueFd output_;
  std::optional<runtime::Loop::TimerId> timer_;
  agent::RanInContainer answer_;
  bool answered_ = false;
};

ContainerCommands::ContainerCommands(runtime::Loop& loop, Answer answer) : loop_(loop), answer_(std::move(answer)) {}

ContainerCommands::~ContainerCommands() = default;

void ContainerCommands::run(const agent::RunInContainer& command, Result<EntryPlan> entry) {
  const auto refuse = [&](Error why) {
    answer_({.id = command.id, .exit_code = std::move(why), .output = {}, .timed_out = false});
  };
  if (!entry) return refuse(entry.error());
  if (running_.size() >= kCommandsMax)
    return refuse(make_error(ErrorCode::kTooManyRequests, "{} commands run in containers already", running_.size()));
  const std::uint64_t key = ++last_key_;
  auto made = std::make_unique<Running>(*this, key, command.id, *std::move(entry));
  if (const Outcome started = made->start(command.timeout); !started) return refuse(started.error());
  running_.emplace(key, std::move(made));
}

void ContainerCommands::forget(std::uint64_t key) {
  running_.erase(key);
}

}  // namespace spillway::host
