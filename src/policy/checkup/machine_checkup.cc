#include "policy/checkup/machine_checkup.h"

#include "api/text/time_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::checkup {
namespace {

class Examination {
 public:
  Examination(const MachineFacts& facts, WallTime now) : facts_(facts), now_(now) {}

  std::vector<Finding> run() {
    rights();
    cgroups();
    pressure();
    swap();
    clock();
    disk();
    images();
    network();
    storage();
    for (const Port& port : facts_.ports) check(port);
    for (const Certificate& certificate : facts_.certificates) check(certificate);
    for (const ConfigProblem& problem : facts_.config)
      add(problem.dangerous ? Level::kProblem : Level::kWarning, "configuration",
          fmt::format("{}: {}", problem.place, problem.what), "spillway lint FILE says more");
    runtime();
    cluster();
    return std::move(findings_);
  }

 private:
  void add(Level level, std::string subject, std::string what, std::string fix = {}) {
    findings_.push_back({level, std::move(subject), std::move(what), std::move(fix)});
  }

  void rights() {
    if (facts_.is_root) return add(Level::kFine, "rights", "root");
    add(Level::kWarning, "rights", "not root: pods cannot be confined, and some checks below are incomplete",
        "sudo spillway doctor");
  }

  void cgroups() {
    if (!facts_.cgroup_version) {
      return add(Level::kProblem, "cgroups", "no cgroup hierarchy with a memory controller is mounted",
                 "mount -t cgroup2 none /sys/fs/cgroup");
    }
    if (!facts_.cgroup_problem.empty()) return add(Level::kProblem, "cgroups", facts_.cgroup_problem);
    if (*facts_.cgroup_version == 2) return add(Level::kFine, "cgroups", "version 2, a node can be made");
    add(Level::kWarning, "cgroups",
        "version 1: a node can be made, without memory.high (--memory-brake) and without events of OOM kills",
        "boot with systemd.unified_cgroup_hierarchy=1");
  }

  void runtime() {
    if (!facts_.runtime) return;
    const ContainerRuntime& found = *facts_.runtime;
    if (!found.problem.empty())
      return add(Level::kProblem, "runtime", found.problem, "see cgroupDriver and containerRuntimeEndpoint");
    if (!found.driver.empty())
      return add(Level::kFine, "runtime",
                 fmt::format("{} answers, with the cgroup driver {}", found.socket, found.driver));
    add(Level::kWarning, "runtime", fmt::format("{} does not say which cgroup driver it uses", found.socket),
        "compare cgroupDriver with the runtime's configuration");
  }

  /// Facts about the network. Pods run without these parts as well, so no finding here is a warning.
  void network() {
    if (!facts_.network) return;
    const auto part = [this](std::string subject, std::string_view works, std::string_view fails,
                             const std::string& problem) {
      add(Level::kFine, std::move(subject),
          problem.empty() ? std::string(works) : fmt::format("{}: {}", fails, problem));
    };
    part("network", "pods that are processes can have addresses of their own",
         "pods that are processes use the machine's network", facts_.network->pods);
    part("proxy", "addresses of Services can lead to pods", "addresses of Services lead nowhere",
         facts_.network->services);
    part("DNS", "names of Services can be answered", "names of Services are not answered", facts_.network->names);
  }

  /// `up` as root makes volumes by its StorageClass local-path.
  void storage() {
    if (!facts_.disk) return;
    if (!facts_.is_root) {
      return add(Level::kFine, "storage", "without root, claims get no volumes: `spillway up` provisions none");
    }
    add(Level::kFine, "storage",
        fmt::format("claims get volumes of the StorageClass local-path, on the disk of {}", facts_.disk->path));
  }

  /// The API server of the kubeconfig is ours, and has the port.
  bool is_served(std::uint16_t port) const {
    if (!facts_.cluster || !facts_.cluster->version.contains("spillway")) return false;
    const std::string& server = facts_.cluster->server;
    return server == fmt::format("127.0.0.1:{}", port) || server == fmt::format("localhost:{}", port);
  }

  void pressure() {
    if (!facts_.has_psi) return;
    if (*facts_.has_psi) return add(Level::kFine, "PSI", "the kernel reports pressure");
    add(Level::kWarning, "PSI", "the kernel reports no pressure: memory is only measured at intervals",
        "boot with psi=1");
  }

  void swap() {
    if (!facts_.swap) return;
    if (*facts_.swap == Bytes{}) return add(Level::kFine, "swap", "off");
    add(Level::kWarning, "swap",
        fmt::format("{}Mi are on: memory.available does not count them, and pods slow down before they are evicted",
                    facts_.swap->count() / mebibytes(1).count()),
        "swapoff -a, or --memory-estimator workingset+swap");
  }

  void clock() {
    if (!facts_.clock_is_in_step) return;
    if (*facts_.clock_is_in_step) return add(Level::kFine, "clock", "synchronized with a time server");
    add(Level::kWarning, "clock",
        "not synchronized with a time server: certificates may be rejected, and times of objects may be wrong",
        "timedatectl set-ntp true");
  }

  /// Pods without images are no fault: the finding names the requirements of images.
  void images() {
    if (!facts_.images) return;
    const auto choice = choose_runtime(*facts_.images);
    if (!choice) return add(Level::kWarning, "images", choice.error().text());
    add(Level::kFine, "images", sentence_of(*choice), advice_of(*choice));
  }

  void disk() {
    if (!facts_.disk || facts_.disk->capacity <= Bytes{}) return;
    const Disk& disk = *facts_.disk;
    const std::string free = fmt::format("{:.1f} % of {} is free", share_of(disk), disk.path);
    const auto nearest = std::ranges::max_element(disk.thresholds, {}, &DiskThreshold::amount);
    if (nearest == disk.thresholds.end()) return add(Level::kFine, "disk", free);
    const std::string fix = fmt::format("free some of it: du -xh {} | sort -h | tail", disk.path);
    if (disk.available < nearest->amount)
      return add(
          Level::kProblem, "disk",
          fmt::format("{}: with {} a node reports DiskPressure, takes no new pods and evicts", free, nearest->text),
          fix);
    if (disk.available - nearest->amount < Bytes{disk.capacity.count() / kDiskLeftShare})
      return add(Level::kWarning, "disk", fmt::format("{}: it is near {}", free, nearest->text), fix);
    add(Level::kFine, "disk", free);
  }

  static double share_of(const Disk& disk) {
    return 100 * static_cast<double>(disk.available.count()) / static_cast<double>(disk.capacity.count());
  }

  void check(const Port& port) {
    const std::string subject = fmt::format("port {}", port.number);
    if (port.problem.empty()) return add(Level::kFine, subject, fmt::format("free, for {}", port.what));
    if (is_served(port.number)) {
      return add(Level::kFine, subject,
                 fmt::format("in use by the Spillway that answers at {}", facts_.cluster->server));
    }
    add(Level::kProblem, subject, fmt::format("not available for {}: {}", port.what, port.problem),
        fmt::format("ss -ltnp 'sport = :{}', or --port", port.number));
  }

  void check(const Certificate& certificate) {
    constexpr std::string_view kFix = "start the API server again: it renews what it has made itself";
    if (!certificate.end)
      return add(Level::kProblem, "certificate", certificate.file + ": cannot be read", std::string(kFix));
    const std::string what = fmt::format("{}: until {}", certificate.file, api::format_time(*certificate.end));
    if (*certificate.end <= now_)
      return add(Level::kProblem, "certificate",
                 fmt::format("{}: ended at {}", certificate.file, api::format_time(*certificate.end)),
                 std::string(kFix));
    if (*certificate.end - now_ < kCertificateLeftMin)
      return add(Level::kWarning, "certificate", what, std::string(kFix));
    add(Level::kFine, "certificate", what);
  }

  void cluster() {
    if (!facts_.cluster) return add(Level::kFine, "cluster", "no kubeconfig: the cluster was not checked");
    const Cluster& cluster = *facts_.cluster;
    if (!cluster.problem.empty())
      return add(Level::kProblem, "cluster", fmt::format("{}: {}", cluster.server, cluster.problem),
                 "kubectl cluster-info, or --kubeconfig FILE");
    if (!cluster.lists_nodes)
      return add(Level::kProblem, "cluster",
                 fmt::format("{}: its nodes may not be listed by this user", cluster.server),
                 "kubectl auth can-i list nodes, as an administrator: kubectl create clusterrolebinding");
    add(Level::kFine, "cluster", fmt::format("{}: {}, nodes may be listed", cluster.server, cluster.version));
  }

  const MachineFacts& facts_;
  WallTime now_;
  std::vector<Finding> findings_;
};

}  // namespace

std::string_view to_string(Level level) {
  switch (level) {
    case Level::kFine:
      return "ok";
    case Level::kWarning:
      return "warning";
    case Level::kProblem:
      return "problem";
  }
  return "problem";
}

std::vector<Finding> examine(const MachineFacts& facts, WallTime now) {
  return Examination(facts, now).run();
}

Level worst_of(const std::vector<Finding>& findings) {
  Level worst = Level::kFine;
  for (const Finding& finding : findings) worst = std::max(worst, finding.level);
  return worst;
}

}  // namespace spillway::checkup
