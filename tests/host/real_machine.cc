#include "host/real_machine.h"

#include "host/cgroup/cgroup_kill.h"
#include "host/kernel/kernel_file.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <sstream>

namespace spillway::host {
namespace {

Result<CgroupDir> open_root(const ExtraControllers& extra = {}) {
  SPILLWAY_TRY(mounts, read_cgroup_mounts(extra));
  return find_writable_root(mounts);
}

}  // namespace

std::string no_cgroups_reason() {
  const Result<CgroupDir> root = open_root();
  return root ? std::string() : root.error().text();
}

std::string unique_instance() {
  static std::atomic<int> counter = 0;
  return fmt::format("test-{}-{}", ::getpid(), ++counter);
}

void RealMachine::SetUp() {
  const std::string reason = no_cgroups_reason();
  if (!reason.empty()) GTEST_SKIP() << "real cgroups are needed: " << reason;
  const std::string instance = unique_instance();
  state_ = std::filesystem::temp_directory_path() / ("spillway-" + instance);
  std::filesystem::create_directories(state_);
  Result<NodeSlice> slice = NodeSlice::create(
      *open_root(extra_controllers_), {.instance = instance, .node = "n1", .memory = mebibytes(128), .pids_max = 200});
  ASSERT_TRUE(slice) << slice.error().text();
  slice_ = *std::move(slice);
  make_runtime();
  if (keeps_pods_) EXPECT_TRUE(run_until([&] { return count<agent::PodsFound>() > 0; }));
  events_.clear();
}

void RealMachine::make_runtime() {
  Result<std::unique_ptr<ProcessRuntime>> runtime = ProcessRuntime::create(loop_, *slice_, *this, telemetry::Log(),
                                                                           {.state_dir = state_.string(),
                                                                            .isolation = isolation_,
                                                                            .housekeeping = housekeeping_,
                                                                            .keeps_pods = keeps_pods_});
  ASSERT_TRUE(runtime) << runtime.error().text();
  runtime_ = *std::move(runtime);
}

void RealMachine::restart() {
  if (runtime_) runtime_->keep_pods();
  runtime_.reset();
  events_.clear();
  make_runtime();
}

void RealMachine::TearDown() {
  if (runtime_) {
    bool done = false;
    runtime_->shutdown(Duration::zero(), [&] { done = true; });
    EXPECT_TRUE(run_until([&] { return done; }));
    runtime_.reset();
  }
  if (slice_) {
    const Outcome removed = slice_->remove();
    EXPECT_TRUE(removed) << removed.error().text();
  }
  if (!state_.empty()) std::filesystem::remove_all(state_);
}

bool RealMachine::run_until(const std::function<bool()>& done, Duration limit) {
  bool timed_out = false;
  const runtime::Loop::TimerId timer = loop_.at(loop_.now().mono + limit, [&] { timed_out = true; });
  bool reached = false;  // the result of the last check: a condition may hold for a moment only
  while (!(reached = done()) && !timed_out) {
    // Runs one timer at a time, so that the condition is checked after every event.
    const runtime::Loop::TimerId tick = loop_.at(loop_.now().mono + milliseconds(1), [&] { loop_.stop(); });
    loop_.run({});
    loop_.cancel(tick);
  }
  loop_.cancel(timer);
  return reached;
}

api::Summary RealMachine::observe() {
  static std::uint64_t last_id = 0;
  const std::uint64_t id = ++last_id;
  runtime_->execute(agent::Observe{id});
  api::Summary summary;
  const bool answered = run_until([&] {
    for (const agent::HostEvent& event : events_) {
      const auto* observed = std::get_if<agent::Observed>(&event);
      if (observed == nullptr || observed->id != id) continue;
      EXPECT_TRUE(observed->summary) << observed->summary.error().text();
      if (observed->summary) summary = *observed->summary;
      return true;
    }
    return false;
  });
  EXPECT_TRUE(answered);
  return summary;
}

void RealMachine::create_pod(const std::string& uid, api::QosClass qos, std::optional<Bytes> memory) {
  runtime_->execute(agent::CreatePod{.uid = uid, .pod = {"default", "pod-" + uid}, .qos = qos, .memory_limit = memory});
}

void RealMachine::start(const std::string& uid, const std::string& name, std::vector<std::string> argv,
                        std::int32_t attempt) {
  runtime_->execute(agent::StartContainer{.uid = uid, .name = name, .attempt = attempt, .argv = std::move(argv)});
}

std::string RealMachine::log_text(const std::string& uid, const std::string& name, std::int32_t attempt) const {
  std::ifstream file(state_ / "pods" / fmt::format("default_pod-{}_{}", uid, uid) / name /
                     fmt::format("{}.log", attempt));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool RealMachine::logs(const std::string& uid, const std::string& name, const std::vector<std::string>& texts,
                       std::int32_t attempt) {
  return run_until([&] {
    const std::string log = log_text(uid, name, attempt);
    return std::ranges::all_of(texts, [&](const std::string& text) { return log.contains(text); });
  });
}

/// A process that is being ended leaves its cgroup before its state says so.
bool RealMachine::has_ended(pid_t pid) {
  const Result<std::string> status = read_file(fmt::format("/proc/{}/status", pid));
  return !status || status->contains("State:\tZ") || status->contains("State:\tX");
}

std::vector<pid_t> RealMachine::pod_pids(const std::string& uid, api::QosClass qos) const {
  const Result<CgroupDir> pod = slice_->parent_of(qos).open_child("pod" + uid);
  if (!pod) return {};
  return tree_pids(*pod).value_or(std::vector<pid_t>());
}

}  // namespace spillway::host
