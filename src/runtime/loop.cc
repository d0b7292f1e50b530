#include "runtime/loop.h"

#include "base/check.h"
#include "base/unique_fd.h"
#include "runtime/clock.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace spillway::runtime {

namespace {

constexpr int kTasksPerTurn = 64;
constexpr int kTimersPerTurn = 256;
constexpr std::size_t kReadyPerTurn = 64;
constexpr std::array kSignals = {SIGINT, SIGTERM};

/// The only state that the signal handler uses: the number of pending signals of each kind, and the descriptor that
/// wakes the loop.
std::array<std::atomic<int>, kSignals.size()> signals_pending;
std::atomic<int> signal_wake_fd = -1;
static_assert(std::atomic<int>::is_always_lock_free);

void ring(int fd) {
  const std::uint64_t one = 1;
  // The counter can only be full (EAGAIN) when the loop has been woken already.
  [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof one);
}

extern "C" void on_os_signal(int number) {
  const int saved = errno;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (kSignals[i] == number) signals_pending[i].fetch_add(1);
  }
  if (const int fd = signal_wake_fd.load(); fd >= 0) ring(fd);
  errno = saved;
}

/// Owns the handlers of SIGINT and SIGTERM while it lives. Handlers, unlike a blocked mask, are not inherited through
/// exec, so container processes start with the default behaviour.
class SignalHandlers {
 public:
  explicit SignalHandlers(int wake_fd) {
    int none = -1;
    SPILLWAY_CHECK(signal_wake_fd.compare_exchange_strong(none, wake_fd));
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      signals_pending[i].store(0);
      struct sigaction action{};
      action.sa_handler = on_os_signal;
      action.sa_flags = SA_RESTART;
      sigemptyset(&action.sa_mask);
      SPILLWAY_CHECK(sigaction(kSignals[i], &action, &before_[i]) == 0);
    }
  }

  ~SignalHandlers() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
    signal_wake_fd.store(-1);
  }

  SignalHandlers(const SignalHandlers&) = delete;
  SignalHandlers& operator=(const SignalHandlers&) = delete;

 private:
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace

struct Loop::Impl {
  // The values that epoll reports: one of these two, or the number of a watched descriptor.
  static constexpr std::uint64_t kWakeUp = 0;
  static constexpr std::uint64_t kTimer = 1;

  struct Watched {
    int fd = -1;
    std::shared_ptr<std::function<void()>> ready;
  };

  UniqueFd epoll_fd{epoll_create1(EPOLL_CLOEXEC)};
  UniqueFd wake_fd{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  UniqueFd timer_fd{timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};

  std::mutex mutex;
  std::deque<Task> posted;  // guarded by mutex
  bool rung = false;        // guarded by mutex: the loop will read `posted`
  std::atomic<bool> stopping = false;
  std::vector<Task> ending;  // for the end of the turn

  TimerId last_timer = 0;
  std::map<std::pair<Instant, TimerId>, Task> timers;
  std::map<TimerId, Instant> timer_due;

  std::function<void(const Turn&)> observe;
  Turn turn;
  std::string mark;  // the mark() of the present piece of work
  Instant turn_began{};
  Instant piece_began{};

  std::optional<Instant> armed;         // the time to which the kernel's timer is set
  std::atomic<std::thread::id> runner;  // none: the loop does not run

  std::uint64_t last_watch = kTimer;
  std::map<std::uint64_t, Watched> watched;
  std::map<int, std::uint64_t> watch_of_fd;

  Impl() {
    SPILLWAY_CHECK(epoll_fd.get() >= 0 && wake_fd.get() >= 0 && timer_fd.get() >= 0);
    SPILLWAY_CHECK(control(EPOLL_CTL_ADD, wake_fd.get(), EPOLLIN, kWakeUp) &&
                   control(EPOLL_CTL_ADD, timer_fd.get(), EPOLLIN, kTimer));
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// The caller is the thread that runs the loop, or the loop does not run.
  bool is_ours() const {
    const std::thread::id by = runner;
    return by == std::thread::id() || by == std::this_thread::get_id();
  }

  bool control(int operation, int fd, std::uint32_t events, std::uint64_t id) const {
    epoll_event event{};
    event.events = events;
    event.data.u64 = id;
    return epoll_ctl(epoll_fd.get(), operation, fd, &event) == 0;
  }

  /// Sets the kernel's timer to the first timer of ours. A timer descriptor waits to the nanosecond, epoll does not.
  void arm_kernel_timer() {
    const std::optional<Instant> due = timers.empty() ? std::nullopt : std::optional(timers.begin()->first.first);
    if (due == armed) return;
    armed = due;
    itimerspec spec{};  // all zero: off
    if (due) {
      const Duration since_start = std::max(due->time_since_epoch(), Duration{1});
      const auto whole = std::chrono::floor<seconds>(since_start);
      spec.it_value.tv_sec = static_cast<time_t>(whole.count());
      spec.it_value.tv_nsec = static_cast<long>((since_start - whole).count());
    }
    SPILLWAY_CHECK(timerfd_settime(timer_fd.get(), TFD_TIMER_ABSTIME, &spec, nullptr) == 0);
  }

  /// The piece of work that began at `piece_began` is done; the next one begins. Returns the time.
  Instant end_piece() {
    const Instant now = RealClock::read_mono();
    const Duration took = now - piece_began;
    if (took > turn.longest) {
      turn.longest = took;
      turn.what = std::move(mark);
    }
    mark.clear();
    piece_began = now;
    return now;
  }

  void end_turn() {
    if (turn.longest == Duration::zero()) return;
    turn.took = piece_began - turn_began;
    if (observe) observe(turn);
    turn = Turn();
  }

  bool has_posted() {
    const std::lock_guard lock(mutex);
    return !posted.empty();
  }

  void run_ready(const std::function<void(int)>& on_signal) {
    arm_kernel_timer();
    std::array<epoll_event, kReadyPerTurn> events;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    const bool waits = ending.empty() && !has_posted();
    const int count = epoll_wait(epoll_fd.get(), events.data(), static_cast<int>(events.size()), waits ? -1 : 0);
    turn_began = piece_began = RealClock::read_mono();
    if (count < 0) {
      SPILLWAY_CHECK(errno == EINTR);
      return;
    }
    for (int i = 0; i < count && !stopping; ++i) {
      const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
      if (id == kWakeUp) {
        take_wake_up(on_signal);
        continue;
      }
      if (id == kTimer) {
        armed.reset();  // expired; the timers that are due run after the descriptors
        std::uint64_t expirations = 0;
        [[maybe_unused]] const ssize_t got = ::read(timer_fd.get(), &expirations, sizeof expirations);
        continue;
      }
      const auto it = watched.find(id);
      if (it == watched.end()) continue;  // unwatched by an earlier callback of this turn
      const std::shared_ptr<std::function<void()>> ready = it->second.ready;
      (*ready)();
      end_piece();
    }
  }

  void take_wake_up(const std::function<void(int)>& on_signal) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(wake_fd.get(), &count, sizeof count);
    {
      const std::lock_guard lock(mutex);
      rung = false;
    }
    notify_signals(on_signal);
  }

  static void notify_signals(const std::function<void(int)>& on_signal) {
    if (!on_signal) return;
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      for (int times = signals_pending[i].exchange(0); times > 0; --times) on_signal(kSignals[i]);
    }
  }

  void run_timers() {
    const Instant began = RealClock::read_mono();
    Instant now = began;
    for (int i = 0; i < kTimersPerTurn && !timers.empty() && !stopping && now - began < kShareOfTurn; ++i) {
      const auto first = timers.begin();
      if (first->first.first > began) return;
      Task task = std::move(first->second);
      timer_due.erase(first->first.second);
      timers.erase(first);
      task();
      now = end_piece();
    }
  }

  void run_posted() {
    const Instant began = piece_began;
    Instant now = began;
    for (int i = 0; i < kTasksPerTurn && !stopping && now - began < kShareOfTurn; ++i) {
      Task task;
      {
        const std::lock_guard lock(mutex);
        if (posted.empty()) return;
        task = std::move(posted.front());
        posted.pop_front();
      }
      task();
      now = end_piece();
    }
  }

  void run_ending() {
    if (ending.empty() || stopping) return;
    std::vector<Task> tasks = std::exchange(ending, {});
    for (Task& task : tasks) {
      std::exchange(task, nullptr)();
      end_piece();
    }
    tasks.clear();
    if (ending.empty()) ending = std::move(tasks);  // keeps the memory of the vector
  }
};

Loop::Loop() : impl_(std::make_unique<Impl>()) {}

Loop::~Loop() = default;

void Loop::post(Task task) {
  SPILLWAY_DCHECK(task);
  bool must_ring = false;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->posted.push_back(std::move(task));
    must_ring = !std::exchange(impl_->rung, true);
  }
  if (must_ring) ring(impl_->wake_fd.get());
}

bool Loop::is_ours() const {
  return impl_->is_ours();
}

void Loop::at_end_of_turn(Task task) {
  SPILLWAY_DCHECK(task);
  SPILLWAY_DCHECK(impl_->is_ours());
  impl_->ending.push_back(std::move(task));
}

Loop::TimerId Loop::at(Instant due, Task task) {
  SPILLWAY_DCHECK(impl_->is_ours());
  const TimerId id = ++impl_->last_timer;
  impl_->timers.emplace(std::pair(due, id), std::move(task));
  impl_->timer_due.emplace(id, due);
  return id;
}

void Loop::cancel(TimerId timer) {
  SPILLWAY_DCHECK(impl_->is_ours());
  const auto it = impl_->timer_due.find(timer);
  if (it == impl_->timer_due.end()) return;
  impl_->timers.erase({it->second, timer});
  impl_->timer_due.erase(it);
}

void Loop::watch_fd(int fd, short poll_events, std::function<void()> ready) {
  SPILLWAY_DCHECK(impl_->is_ours());
  const std::uint64_t id = ++impl_->last_watch;
  SPILLWAY_CHECK(impl_->watch_of_fd.emplace(fd, id).second);
  // POLLIN, POLLOUT, POLLPRI and EPOLLIN, EPOLLOUT, EPOLLPRI are the same numbers.
  SPILLWAY_CHECK(impl_->control(EPOLL_CTL_ADD, fd, static_cast<std::uint32_t>(poll_events), id));
  impl_->watched.emplace(id, Impl::Watched{fd, std::make_shared<std::function<void()>>(std::move(ready))});
}

void Loop::rewatch_fd(int fd, short poll_events) {
  SPILLWAY_DCHECK(impl_->is_ours());
  const auto it = impl_->watch_of_fd.find(fd);
  SPILLWAY_CHECK(it != impl_->watch_of_fd.end());
  SPILLWAY_CHECK(impl_->control(EPOLL_CTL_MOD, fd, static_cast<std::uint32_t>(poll_events), it->second));
}

void Loop::unwatch_fd(int fd) {
  SPILLWAY_DCHECK(impl_->is_ours());
  const auto it = impl_->watch_of_fd.find(fd);
  if (it == impl_->watch_of_fd.end()) return;
  // Fails only if the descriptor was closed already, which removed it as well.
  epoll_ctl(impl_->epoll_fd.get(), EPOLL_CTL_DEL, fd, nullptr);
  impl_->watched.erase(it->second);
  impl_->watch_of_fd.erase(it);
}

void Loop::mark(std::string what) {
  SPILLWAY_DCHECK(impl_->is_ours());
  impl_->mark = std::move(what);
}

void Loop::on_turn(std::function<void(const Turn&)> observe) {
  impl_->observe = std::move(observe);
}

void Loop::run(std::function<void(int signal)> on_signal) {
  const std::function<void(int)> handler = std::move(on_signal);
  std::optional<SignalHandlers> handlers;
  if (handler) handlers.emplace(impl_->wake_fd.get());
  impl_->runner = std::this_thread::get_id();
  while (!impl_->stopping) {
    impl_->run_ready(handler);
    impl_->run_timers();
    impl_->run_posted();
    impl_->run_ending();
    impl_->end_turn();
  }
  // From here on signals have their former handlers; those of the last turn are reported.
  handlers.reset();
  Impl::notify_signals(handler);
  impl_->runner = std::thread::id();
  impl_->stopping = false;
}

void Loop::stop() {
  impl_->stopping = true;
  ring(impl_->wake_fd.get());
}

}  // namespace spillway::runtime
