#include "apps/demo/demo.h"

#include "agent/contract/journal.h"
#include "api/object/taint.h"
#include "apps/commands/commands.h"
#include "apps/demo/objects.h"
#include "apps/node/node_options.h"
#include "apps/process/terminal.h"
#include "apps/view/remote.h"
#include "cli/text/explanation.h"
#include "host/cgroup/memory_stat.h"
#include "host/cgroup/node_slice.h"
#include "host/files/journal_file.h"
#include "host/reaction/memory_gauge.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>

namespace spillway::apps {

namespace {

constexpr Bytes kNodeMemory = mebibytes(256);
constexpr Bytes kThreshold = mebibytes(64);
// Each wait is for an event that usually comes within seconds; a busy machine may need longer.
constexpr Duration kPatience = minutes(2);
constexpr int kReplicas = 4;
constexpr int kExitInterrupted = 130;
constexpr std::string_view kPods = "/api/v1/namespaces/default/pods";

std::vector<std::string> node_flags(const std::string& name, const std::string& state_dir) {
  return {"--node-name",
          name,
          "--node-memory",
          "256Mi",
          "--state-dir",
          state_dir,
          "--eviction-hard",
          "memory.available<64Mi",
          "--eviction-pressure-transition-period",
          "3s",
          "--node-lease-duration-seconds",
          "4"};
}

std::optional<agent::JournalEntry> last_entry(const std::string& journal) {
  const auto entries = host::read_journal_files(journal);
  if (!entries || entries->empty()) return std::nullopt;
  return entries->back();
}

}  // namespace

int Demo::run() {
  catch_interrupts();
  std::array<char, 32> pattern{"/tmp/spillway-demo-XXXXXX"};
  if (mkdtemp(pattern.data()) == nullptr) {
    print_err("spillway: demo: cannot make a directory below /tmp\n");
    return cli::kExitFailure;
  }
  folder_ = pattern.data();
  const Outcome outcome = run_chapters();
  if (!outcome && !interrupted()) {
    screen_.failed(outcome.error().text());
    for (const auto& child : {&up_, &second_agent_}) {
      if (*child) screen_.line(fmt::format("see {}", (*child)->log()));
    }
  }
  const bool keep = keep_ == Keep::kYes || (!outcome && !interrupted());
  stop_cluster();
  check_nothing_left();
  if (keep) {
    screen_.line(fmt::format("database, journal and logs are kept in {}", folder_));
  } else {
    std::filesystem::remove_all(folder_);
  }
  if (interrupted()) return kExitInterrupted;
  const bool good = outcome && screen_.failures() == 0;
  screen_.line(good ? "\n   Every check passed, and nothing is left behind. Next: `spillway up`, docs/tutorial.md"
                    : fmt::format("\n   {} of the checks above failed.", std::max(screen_.failures(), 1)));
  return good ? cli::kExitOk : cli::kExitNegative;
}

Outcome Demo::run_chapters() {
  SPILLWAY_TRY_VOID(start_cluster());
  SPILLWAY_TRY_VOID(start_pods());
  SPILLWAY_TRY_VOID(show_pressure());
  SPILLWAY_TRY_VOID(show_silence());
  return show_recovery();
}

Outcome Demo::start_cluster() {
  screen_.chapter("Two nodes, each a cgroup of this machine with 256Mi");
  SPILLWAY_TRY(mounts, host::read_cgroup_mounts());
  SPILLWAY_TRY(root, host::find_writable_root(mounts));
  const std::string kubeconfig = folder_ + "/kubeconfig";
  std::vector<std::string> arguments{"up",
                                     "--data-dir",
                                     folder_ + "/data",
                                     "--port",
                                     "0",
                                     "--write-kubeconfig",
                                     kubeconfig,
                                     "--runtime",
                                     "process",
                                     "--node-monitor-period",
                                     "500ms",
                                     "--node-monitor-grace-period",
                                     "4s"};
  const std::vector<std::string> first = node_flags("node-1", folder_ + "/nodes");
  arguments.insert(arguments.end(), first.begin(), first.end());
  const Instant begin = loop_.now().mono;
  SPILLWAY_TRY(up, ChildProcess::start(arguments, folder_ + "/up.log"));
  up_ = std::move(up);
  SPILLWAY_TRY_VOID(
      wait_for("the API server", kPatience, [&] { return std::filesystem::exists(kubeconfig) || !up_->running(); }));
  if (!up_->running()) return make_error(ErrorCode::kInternalError, "`spillway up` ended; see {}", up_->log());
  SPILLWAY_TRY(remote, connect_remote(loop_, cli::ClusterArgs{
                                                 .kubeconfig = kubeconfig, .context = {}, .cluster = {}, .user = {}}));
  cluster_ = std::make_unique<ClusterView>(loop_, std::move(remote.transport));

  std::vector<std::string> second{"agent", "--kubeconfig", kubeconfig, "--port", "0", "--pods-at-stop", "end"};
  const std::vector<std::string> flags = node_flags("node-2", folder_ + "/nodes");
  second.insert(second.end(), flags.begin(), flags.end());
  SPILLWAY_TRY(agent, ChildProcess::start(second, folder_ + "/node-2.log"));
  second_agent_ = std::move(agent);
  for (const char* name : {"node-1", "node-2"}) {
    SPILLWAY_TRY_VOID(wait_for(name, kPatience, [&] { return condition_of(node(name), "Ready") == "True"; }));
    screen_.passed(fmt::format("{} is Ready, {} after the start", name, seconds_text(loop_.now().mono - begin)));
  }
  screen_.line(fmt::format("follow along: kubectl --kubeconfig {} get pods -o wide -w", kubeconfig));
  return {};
}

Outcome Demo::start_pods() {
  screen_.chapter("Pods that behave");
  SPILLWAY_TRY_VOID(create("/apis/apps/v1/namespaces/default/replicasets", replica_set_document("web", kReplicas)));
  SPILLWAY_TRY_VOID(create("/apis/apps/v1/namespaces/default/daemonsets", daemon_set_document("watcher")));
  const std::vector<std::string> idle{"tail", "-f", "/dev/null"};
  SPILLWAY_TRY_VOID(create(std::string(kPods), pod_document({"scratch", idle, "node-1", "", false})));
  SPILLWAY_TRY_VOID(create(std::string(kPods), pod_document({"ledger", idle, "node-1", "16Mi", true})));
  constexpr std::size_t kPodCount = kReplicas + 2 + 2;
  SPILLWAY_TRY_VOID(wait_for("the pods", kPatience, [&] {
    const api::Json::Array all = pods();
    return std::count_if(all.begin(), all.end(), [](const api::Json& pod) { return phase_of(pod) == "Running"; }) ==
           static_cast<std::ptrdiff_t>(kPodCount);
  }));
  for (const api::Json& pod : pods()) {
    screen_.passed(
        fmt::format("{:<16} {:<11} on {}", name_of(pod), pod.string_at({"status", "qosClass"}), node_of(pod)));
  }
  return {};
}

Outcome Demo::show_pressure() {
  screen_.chapter("A hog allocates 30Mi a second on node-1, up to 400Mi");
  const api::Json hog =
      pod_document({"hog", {"spillway", "stress", "--memory", "400Mi", "--rate", "30Mi/s"}, "node-1", "", false});
  SPILLWAY_TRY_VOID(watch_hog(hog));
  explain_eviction();
  check_survivors();
  SPILLWAY_TRY_VOID(wait_for("the pressure to pass", kPatience,
                             [&] { return condition_of(node("node-1"), "MemoryPressure") == "False"; }));
  screen_.passed("MemoryPressure is over");
  return {};
}

Outcome Demo::watch_hog(const api::Json& hog) {
  SPILLWAY_TRY(slice, slice_of("node-1", folder_ + "/data"));
  cgroup_paths_.push_back(slice.file_path(host::Controller::kMemory));
  SPILLWAY_TRY(gauge, host::MemoryGauge::open(slice, kNodeMemory));
  SPILLWAY_TRY_VOID(create(std::string(kPods), hog));
  Instant shown{};
  bool pressure = false;
  const auto evicted = [&] {
    const auto reading = gauge.read();
    const Instant now = loop_.now().mono;
    if (reading && now - shown >= milliseconds(250)) {
      screen_.gauge(reading->available, kNodeMemory, kThreshold);
      shown = now;
    }
    pressure = pressure || condition_of(node("node-1"), "MemoryPressure") == "True";
    const auto pod = cluster_->get(std::string(kPods) + "/hog");
    return pod && phase_of(*pod) == "Failed" && pod->string_at({"status", "reason"}) == "Evicted";
  };
  SPILLWAY_TRY_VOID(wait_for("the eviction of the hog", kPatience, evicted));
  screen_.passed("the hog is Failed, reason Evicted");
  // The condition lasts a few seconds only; its event stays.
  pressure = pressure || wait_for("MemoryPressure", kPatience, [&] {
                           return has_event("node-1", "NodeHasInsufficientMemory");
                         }).has_value();
  pressure ? screen_.passed("node-1 reports MemoryPressure") : screen_.failed("node-1 did not report MemoryPressure");
  return {};
}

/// Prints the victim and the reason from the journal, which the agent writes before it acts.
void Demo::explain_eviction() {
  const std::optional<agent::JournalEntry> entry = last_entry(folder_ + "/nodes/node-1/journal.jsonl");
  if (!entry || entry->decision.subject.name != "hog")
    return screen_.failed("the journal does not contain the eviction of the hog");
  screen_.line("`spillway explain pod/hog` reads the journal that was written before the kill:\n");
  std::istringstream lines(cli::explain(entry->decision, std::nullopt, cli::Paint::kNone));
  for (std::string line; std::getline(lines, line);) screen_.line(line);
  screen_.passed(fmt::format("evicted: {}{}", entry->decision.subject.text(),
                             entry->emergency ? " (at once: memory would have run out during its grace period)" : ""));
}

void Demo::check_survivors() {
  std::size_t survivors = 0;
  for (const api::Json& pod : pods()) {
    if (name_of(pod) == "hog") continue;
    const bool well = phase_of(pod) == "Running" && restarts_of(pod) == 0 && !is_leaving(pod);
    if (!well) screen_.failed(fmt::format("{} was harmed: {}", name_of(pod), phase_of(pod)));
    if (well) ++survivors;
  }
  screen_.passed(fmt::format("{} other pods run on, none restarted", survivors));
  const auto slice = slice_of("node-1", folder_ + "/data");
  if (!slice) return screen_.failed(slice.error().text());
  const std::string file = slice->version() == host::CgroupVersion::kV2 ? "memory.events" : "memory.oom_control";
  const auto text = slice->read(host::Controller::kMemory, file);
  const auto kills = text ? host::parse_oom_kills(*text) : std::nullopt;
  if (!kills) {
    screen_.line("this kernel does not count its own OOM kills");
  } else if (*kills == 0) {
    screen_.passed("the kernel's OOM killer was not needed");
  } else {
    screen_.failed(fmt::format("the kernel's OOM killer acted first, {} times", *kills));
  }
}

Outcome Demo::show_silence() {
  screen_.chapter("The agent of node-2 falls silent (SIGSTOP)");
  const std::size_t there = web_pods_on("node-2");
  if (there == 0) screen_.failed("no replica of web runs on node-2: nothing to replace");
  const Instant begin = loop_.now().mono;
  const auto since = [&] { return seconds_text(loop_.now().mono - begin); };
  second_agent_->suspend();
  SPILLWAY_TRY_VOID(
      wait_for("Ready=Unknown", kPatience, [&] { return condition_of(node("node-2"), "Ready") == "Unknown"; }));
  screen_.passed(fmt::format("after {}: Ready is Unknown", since()));
  SPILLWAY_TRY_VOID(wait_for("the taint", kPatience,
                             [&] { return has_taint(node("node-2"), api::kTaintNodeUnreachable, api::kNoExecute); }));
  screen_.passed(fmt::format("after {}: taint {}:NoExecute", since(), api::kTaintNodeUnreachable));
  SPILLWAY_TRY_VOID(wait_for("the deletion of its replicas", kPatience, [&] { return web_pods_on("node-2") == 0; }));
  screen_.passed(fmt::format("after {}: its {} replicas of web are being deleted (they tolerate 2 s)", since(), there));
  SPILLWAY_TRY_VOID(wait_for("replacements", kPatience, [&] { return web_pods_on("node-1") == kReplicas; }));
  screen_.passed(fmt::format("after {}: all {} replicas of web run on node-1", since(), kReplicas));
  for (const api::Json& pod : pods()) {
    if (!has_label(pod, "app", "watcher") || node_of(pod) != "node-2") continue;
    is_leaving(pod) ? screen_.failed("the daemon pod of node-2 was evicted")
                    : screen_.passed("the daemon pod of node-2 is left alone");
  }
  return {};
}

Outcome Demo::show_recovery() {
  screen_.chapter("The agent of node-2 is back (SIGCONT)");
  const Instant begin = loop_.now().mono;
  const auto since = [&] { return seconds_text(loop_.now().mono - begin); };
  second_agent_->resume();
  SPILLWAY_TRY_VOID(wait_for("Ready", kPatience, [&] { return condition_of(node("node-2"), "Ready") == "True"; }));
  screen_.passed(fmt::format("after {}: node-2 is Ready", since()));
  SPILLWAY_TRY_VOID(wait_for("the taint to go", kPatience, [&] {
    const api::Json object = node("node-2");
    return !has_taint(object, api::kTaintNodeUnreachable, api::kNoExecute) &&
           !has_taint(object, api::kTaintNodeUnreachable, api::kNoSchedule);
  }));
  screen_.passed(fmt::format("after {}: its taints are gone", since()));
  SPILLWAY_TRY_VOID(wait_for("the end of the deleted pods", kPatience, [&] {
    const api::Json::Array all = pods();
    return std::none_of(all.begin(), all.end(), is_leaving);
  }));
  screen_.passed(fmt::format("after {}: the processes of the deleted pods have ended", since()));
  return {};
}

void Demo::stop_cluster() {
  if (up_ || second_agent_) screen_.chapter("Stop");
  cluster_.reset();
  if (second_agent_) second_agent_->stop(seconds(15));
  if (up_) up_->stop(seconds(15));
}

void Demo::check_nothing_left() {
  for (const std::string& path : cgroup_paths_) {
    if (std::filesystem::exists(path)) screen_.failed(fmt::format("{} is left", path));
  }
  if (!cgroup_paths_.empty() && screen_.failures() == 0) screen_.passed("processes and cgroups are gone");
}

Outcome Demo::wait_for(std::string_view what, Duration patience, const std::function<bool()>& condition) {
  const Instant deadline = loop_.now().mono + patience;
  while (!condition()) {
    if (interrupted()) return make_error(ErrorCode::kServiceUnavailable, "interrupted");
    if (loop_.now().mono > deadline) {
      return make_error(ErrorCode::kTimeout, "{}: not within {}", what, seconds_text(patience));
    }
    pause_for(loop_, milliseconds(50));
  }
  return {};
}

Outcome Demo::create(const std::string& path, const api::Json& object) {
  SPILLWAY_TRY(created, cluster_->create(path, object));
  static_cast<void>(created);
  return {};
}

bool Demo::has_event(const std::string& object, const std::string& reason) {
  const auto found =
      cluster_->get(fmt::format("/api/v1/events?fieldSelector=involvedObject.name%3D{}%2Creason%3D{}", object, reason));
  const api::Json* items = found ? found->find("items") : nullptr;
  return items != nullptr && items->if_array() != nullptr && !items->if_array()->empty();
}

api::Json Demo::node(const std::string& name) {
  const auto found = cluster_->get("/api/v1/nodes/" + name);
  return found ? *found : api::Json();
}

api::Json::Array Demo::pods() {
  return cluster_->list(std::string(kPods));
}

std::size_t Demo::web_pods_on(std::string_view node_name) {
  const api::Json::Array all = pods();
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [node_name](const api::Json& pod) {
    return has_label(pod, "app", "web") && node_of(pod) == node_name && !is_leaving(pod) && phase_of(pod) == "Running";
  }));
}

Result<host::CgroupDir> Demo::slice_of(const std::string& name, const std::string& data_dir) const {
  SPILLWAY_TRY(mounts, host::read_cgroup_mounts());
  SPILLWAY_TRY(root, host::find_writable_root(mounts));
  SPILLWAY_TRY(top, root.open_child("spillway"));
  SPILLWAY_TRY(instance, top.open_child(instance_of(data_dir)));
  return instance.open_child(name);
}

int run_demo(const cli::DemoCommand& command) {
  return Demo(command.keep ? Demo::Keep::kYes : Demo::Keep::kNo).run();
}

}  // namespace spillway::apps
