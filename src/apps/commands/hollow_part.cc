#include "apps/commands/hollow_part.h"

#include "apps/process/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace spillway::apps {

namespace {

/// The longest turn of the fleet: answers of the API server are handled in between.
constexpr Duration kPieceMax = milliseconds(10);
constexpr Duration kProgressEvery = seconds(5);
/// A later difference between the fleet's wall clock and the machine's is made good.
constexpr Duration kWallDrift = milliseconds(50);

/// Written at once, also into a file or a pipe.
template <typename... Args>
void print_now(fmt::format_string<Args...> format, Args&&... args) {
  print_out(format, std::forward<Args>(args)...);
  std::fflush(stdout);
}

}  // namespace

/// The share of one node in connections that all nodes share.
class HollowPart::SharedTransport final : public client::Transport {
 public:
  explicit SharedTransport(client::Transport& shared) : shared_(shared) {}

  void execute(client::ApiCommand command, Receiver& receiver) override {
    shared_.execute(std::move(command), receiver);
  }

  void disconnect(Receiver& receiver) override { shared_.disconnect(receiver); }

 private:
  client::Transport& shared_;
};

HollowPart::HollowPart(Process& process, HollowPartOptions options, Remote server)
    : process_(process), options_(std::move(options)), server_(std::move(server)), began_(process.loop().now().mono) {
  options_.fleet.connect = [this](const std::string&) { return std::make_unique<SharedTransport>(*server_.transport); };
  options_.fleet.arrival = [this] {
    const Instant now = process_.loop().now().mono;
    arm(now);
    return Instant{now - began_};
  };
}

HollowPart::~HollowPart() {
  stopped_ = true;
  if (timer_) process_.loop().cancel(timer_->id);
  if (progress_timer_) process_.loop().cancel(*progress_timer_);
}

void HollowPart::start() {
  set_clock();
  const std::size_t nodes = options_.fleet.machines.size();
  print_now("Registering {} hollow node{} with {}, {:g} a second; Ctrl-C ends them\n", nodes, nodes == 1 ? "" : "s",
            server_.host, options_.fleet.nodes_per_second);
  fleet_ = std::make_unique<sim::HollowFleet>(time_, std::move(options_.fleet));
  fleet_->start([this] { on_registered(); });
  if (is_terminal(STDERR_FILENO)) show_progress();
  arm();
}

/// The fleet's monotonic time is that of the machine since the start; its wall time is kept near the machine's. A jump
/// by a timeline stays.
void HollowPart::set_clock() {
  const Now real = process_.loop().now();
  const Duration wanted = real.wall.time_since_epoch() - (real.mono - began_);
  if (wall_ahead_ != Duration() && wanted - wall_ahead_ < kWallDrift && wall_ahead_ - wanted < kWallDrift) return;
  const Now own = time_.now();
  const Duration known =
      wall_ahead_ != Duration() ? wall_ahead_ : own.wall.time_since_epoch() - own.mono.time_since_epoch();
  time_.jump_wall(wanted - known);
  wall_ahead_ = wanted;
}

void HollowPart::pace() {
  if (stopped_) return;
  set_clock();
  const Instant real = process_.loop().now().mono;
  const Instant now{real - began_};
  while (time_.run_next(now)) {
    if (process_.loop().now().mono - real >= kPieceMax) return arm();  // the rest follows in the next turn
  }
  time_.run_until(now);
  arm();
}

void HollowPart::arm() {
  if (const std::optional<Instant> next = time_.next_due()) arm(began_ + next->time_since_epoch());
}

void HollowPart::arm(Instant due) {
  if (stopped_ || (timer_ && timer_->due <= due)) return;
  if (timer_) process_.loop().cancel(timer_->id);
  const auto run = [this] {
    timer_.reset();
    pace();
  };
  timer_ = Timer{process_.loop().at(due, run), due};
}

double HollowPart::seconds_since_start() const {
  return std::chrono::duration<double>(process_.loop().now().mono - began_).count();
}

void HollowPart::on_registered() {
  const std::size_t nodes = fleet_->counts().nodes;
  print_now("{} node{} registered after {:.1f} s\n", nodes, nodes == 1 ? " is" : "s are", seconds_since_start());
  if (options_.timeline.empty()) return;
  print_now("The timeline begins in {:g} s\n", std::chrono::duration<double>(options_.timeline_delay).count());
  time_.after(options_.timeline_delay, [this] { begin_timeline(); });
}

void HollowPart::begin_timeline() {
  if (stopped_) return;
  fleet_->run_timeline(options_.timeline, options_.names, [this](const sim::TimelineEvent& event, bool begins) {
    print_now("{:.1f} s: {}{}\n", seconds_since_start(), begins ? "" : "end of ", event.text);
  });
}

void HollowPart::show_progress() {
  progress_timer_ = process_.loop().at(process_.loop().now().mono + kProgressEvery, [this] {
    if (stopped_) return;
    const sim::HollowCounts counts = fleet_->counts();
    const double rate = static_cast<double>(counts.requests - std::exchange(requests_shown_, counts.requests)) /
                        std::chrono::duration<double>(kProgressEvery).count();
    std::string line = fmt::format("{} of {} nodes registered, {} ready, {} of {} pods running", counts.registered,
                                   counts.nodes, counts.ready, counts.pods_running, counts.pods);
    if (counts.silent > 0) line += fmt::format(", {} silent", counts.silent);
    if (counts.down > 0) line += fmt::format(", {} down", counts.down);
    if (line != shown_) print_err("{:.0f} s: {}, {:.0f} requests a second\n", seconds_since_start(), line, rate);
    shown_ = std::move(line);
    show_progress();
  });
}

void HollowPart::stop(runtime::Loop::Task done) {
  if (!fleet_) return done();
  const std::size_t registered = fleet_->counts().registered;
  if (!options_.delete_nodes) {
    fleet_->stop();
    stopped_ = true;
    print_now("{} Node{} registered; `kubectl delete nodes -l {}` deletes them\n", registered,
              registered == 1 ? " stays" : "s stay", sim::kHollowLabel);
    return done();
  }
  const auto finish = std::make_shared<runtime::Loop::Task>(std::move(done));
  fleet_->delete_nodes([this, finish](const sim::HollowControl::Deleted& deleted) {
    stopped_ = true;
    print_now("{} Node{} deleted\n", deleted.nodes, deleted.nodes == 1 ? "" : "s");
    if (deleted.failed > 0) {
      options_.on_nodes_left(
          {deleted.first_error->code,
           fmt::format("{} of the Nodes were not deleted: {}", deleted.failed, deleted.first_error->text()),
           {}});
    }
    (*finish)();
  });
  arm();
}

}  // namespace spillway::apps
