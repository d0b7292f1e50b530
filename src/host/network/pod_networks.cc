#include "host/network/pod_networks.h"

#include "api/text/quantity.h"
#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

namespace spillway::host {

namespace {

using api::Json;

namespace fs = std::filesystem;

constexpr std::size_t kThreads = 4;
constexpr std::size_t kWaitingMax = 10'000;
constexpr Duration kConfigurationCheckInterval = milliseconds(200);
constexpr Duration kConfigurationWait = seconds(10);  // then the agent tries again, with an event
constexpr Duration kRetryMax = seconds(60);
constexpr std::string_view kNamespaceEnding = ".netns";
constexpr std::string_view kRecordEnding = ".json";
constexpr std::int64_t kBurstMax = 2'147'483'647;
constexpr std::int64_t kRateMin = 1'000;
constexpr std::int64_t kRateMax = 1'000'000'000'000'000;

std::string namespace_file(const PodNetworkOptions& options, const std::string& uid) {
  return fmt::format("{}/{}{}", options.state, uid, kNamespaceEnding);
}

std::string record_file(const PodNetworkOptions& options, const std::string& uid) {
  return fmt::format("{}/{}{}", options.state, uid, kRecordEnding);
}

/// Gives the namespace a name in the file system, by which plug-ins enter it and which keeps it.
Outcome name_namespace(const std::string& path, int network) {
  ::umount2(path.c_str(), MNT_DETACH);  // removes the mount of an earlier attempt
  const UniqueFd made(::open(path.c_str(), O_CREAT | O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!made) return errno_error(path, errno);
  const std::string source = fmt::format("/proc/self/fd/{}", network);
  if (::mount(source.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) != 0) return errno_error(path, errno);
  return {};
}

Outcome forget(const PodNetworkOptions& options, const std::string& uid) {
  const std::string name = namespace_file(options, uid);
  if (::umount2(name.c_str(), MNT_DETACH) != 0 && errno != EINVAL && errno != ENOENT) return errno_error(name, errno);
  for (const std::string& each : {name, record_file(options, uid)}) {
    if (::unlink(each.c_str()) != 0 && errno != ENOENT) return errno_error(each, errno);
  }
  return {};
}

/// Runs on a thread.
Outcome detach_now(const PodNetworkOptions& options, const std::string& uid) {
  const Result<std::string> text = read_file(record_file(options, uid));
  if (!text && text.error().code != ErrorCode::kNotFound) return text.error();
  if (text) {
    const Result<CniAttachment> attachment = CniAttachment::parse(*text);
    if (attachment) SPILLWAY_TRY_VOID(cni_remove(*attachment, options.tools));
  }
  return forget(options, uid);
}

/// Runs on a thread. kNotFound: there is no configuration.
Result<std::vector<std::string>> attach_now(const PodNetworkOptions& options, const PodNetworks::Wish& wish) {
  SPILLWAY_TRY(list, read_cni_list(options.configuration));
  CniAttachment attachment{.id = wish.uid,
                           .netns = namespace_file(options, wish.uid),
                           .arguments = cni_arguments(wish.pod, wish.uid, wish.uid),
                           .capabilities = wish.capabilities,
                           .configuration = cni_text(list),
                           .result = {}};
  const auto add = [&]() -> Result<std::vector<std::string>> {
    // The record is written first, so that an attachment can be removed after a crash.
    SPILLWAY_TRY_VOID(replace_file(record_file(options, wish.uid), attachment.text()));
    SPILLWAY_TRY_VOID(name_namespace(attachment.netns, wish.network.get()));
    SPILLWAY_TRY_VOID(cni_add(attachment, options.tools));
    SPILLWAY_TRY_VOID(replace_file(record_file(options, wish.uid), attachment.text()));
    std::vector<std::string> ips = addresses_in(attachment.result);
    if (ips.empty()) return make_error(ErrorCode::kInternalError, "the plug-ins gave the pod no address");
    return ips;
  };
  Result<std::vector<std::string>> ips = add();
  if (!ips) {
    ignored(detach_now(options, wish.uid), "the first error is the one to report; the next start removes the rest");
    if (ips.error().code == ErrorCode::kNotFound)
      return make_error(ErrorCode::kInternalError, "{}", ips.error().text());
  }
  return ips;
}

Error being_stopped() {
  return Error{ErrorCode::kConflict, "the pod is being stopped", {}};
}

void add_rate(Json& into, const api::Pod& pod, const char* annotation, const char* rate, const char* burst) {
  const auto found = pod.metadata.annotations.find(annotation);
  if (found == pod.metadata.annotations.end()) return;
  const auto quantity = api::parse_quantity(found->second);
  if (!quantity || quantity->value() < kRateMin || quantity->value() > kRateMax) return;
  into[rate] = quantity->value();
  into[burst] = kBurstMax;
}

}  // namespace

Json capabilities_of(const api::Pod& pod) {
  Json ports = Json::array();
  for (const auto* containers : {&pod.spec.init_containers, &pod.spec.containers}) {
    for (const api::Container& container : *containers) {
      for (const api::ContainerPort& port : container.ports) {
        if (port.host_port <= 0) continue;
        std::string protocol = port.protocol.empty() ? "tcp" : port.protocol;
        std::ranges::transform(protocol, protocol.begin(),
                               [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; });
        Json mapping = Json::object({{"hostPort", static_cast<std::int64_t>(port.host_port)},
                                     {"containerPort", static_cast<std::int64_t>(port.container_port)},
                                     {"protocol", std::move(protocol)}});
        if (!port.host_ip.empty()) mapping["hostIP"] = port.host_ip;
        ports.if_array()->push_back(std::move(mapping));
      }
    }
  }
  Json bandwidth = Json::object({});
  add_rate(bandwidth, pod, "kubernetes.io/ingress-bandwidth", "ingressRate", "ingressBurst");
  add_rate(bandwidth, pod, "kubernetes.io/egress-bandwidth", "egressRate", "egressBurst");
  Json out = Json::object({});
  if (!ports.if_array()->empty()) out["portMappings"] = std::move(ports);
  if (!bandwidth.if_object()->empty()) out["bandwidth"] = std::move(bandwidth);
  return out;
}

PodNetworks::PodNetworks(runtime::Loop& loop, telemetry::Log log, PodNetworkOptions options)
    : loop_(loop),
      log_(std::move(log)),
      options_(std::make_shared<const PodNetworkOptions>(std::move(options))),
      threads_(loop, kThreads, kWaitingMax) {}

PodNetworks::~PodNetworks() = default;

Result<std::unique_ptr<PodNetworks>> PodNetworks::create(runtime::Loop& loop, telemetry::Log log,
                                                         PodNetworkOptions options) {
  SPILLWAY_TRY_VOID(make_directories(options.state));
  if (::chmod(options.state.c_str(), 0700) != 0) return errno_error(options.state, errno);
  std::unique_ptr<PodNetworks> made(
      new PodNetworks(loop, std::move(log), std::move(options)));  // NOLINT: private constructor
  SPILLWAY_TRY_VOID(made->read_state());
  return made;
}

Outcome PodNetworks::read_state() {
  std::error_code error;
  std::set<std::string> uids;
  for (fs::directory_iterator each(options_->state, error), end; !error && each != end; each.increment(error)) {
    const std::string name = each->path().filename().string();
    for (const std::string_view ending : {kNamespaceEnding, kRecordEnding}) {
      if (name.ends_with(ending)) uids.insert(name.substr(0, name.size() - ending.size()));
    }
  }
  if (error) return errno_error(options_->state, error.value());
  for (const std::string& uid : uids) {
    const Result<std::string> text = read_file(record_file(*options_, uid));
    const Result<CniAttachment> attachment = text ? CniAttachment::parse(*text) : Result<CniAttachment>(text.error());
    std::vector<std::string> ips = attachment ? addresses_in(attachment->result) : std::vector<std::string>();
    left_.emplace(uid, ips.empty() ? std::nullopt : std::optional(std::move(ips)));
  }
  return {};
}

std::optional<std::vector<std::string>> PodNetworks::keep(const std::string& uid) {
  const auto found = left_.find(uid);
  if (found == left_.end() || !found->second) return std::nullopt;
  entries_.try_emplace(uid);
  std::optional<std::vector<std::string>> ips = std::move(found->second);
  left_.erase(found);
  return ips;
}

void PodNetworks::remove_leftovers() {
  for (const auto& [uid, ips] : std::exchange(left_, {})) {
    log_.info("network of a deleted pod is removed", {{"pod_uid", uid}});
    entries_.try_emplace(uid);
    start_detach(uid);
  }
}

void PodNetworks::attach(Wish wish, Attached attached) {
  Entry& entry = entries_[wish.uid];
  if (entry.next) {
    return loop_.post([attached = std::move(attached)] {
      attached(make_error(ErrorCode::kConflict, "an attachment of the pod is waiting already"));
    });
  }
  if (entry.busy) {  // the attachment by an earlier process is being ended
    entry.next = Waiting{.wish = std::move(wish), .attached = std::move(attached)};
    return;
  }
  entry = Entry{.busy = true};
  try_attach(std::make_shared<Wish>(std::move(wish)), std::move(attached), loop_.now().mono + kConfigurationWait);
}

void PodNetworks::try_attach(std::shared_ptr<Wish> wish, Attached attached, Instant until) {
  const bool queued =
      threads_.submit([this, alive = alive_.ref(), options = options_, wish, attached, until]() -> runtime::Loop::Task {
        return [this, alive, wish, attached, until, ips = attach_now(*options, *wish)]() mutable {
          if (alive.expired()) return;
          const bool waits = !ips && ips.error().code == ErrorCode::kNotFound && !entries_.at(wish->uid).detaching;
          if (waits && loop_.now().mono < until) {
            loop_.at(loop_.now().mono + kConfigurationCheckInterval,
                     alive.guard([this, wish, attached, until] { try_attach(wish, attached, until); }));
            return;
          }
          finish_attach(wish->uid, std::move(ips), attached);
        };
      });
  if (queued) return;
  loop_.post(alive_.guard([this, wish, attached] {
    finish_attach(wish->uid, make_error(ErrorCode::kTooManyRequests, "too many networks are being made"), attached);
  }));
}

void PodNetworks::finish_attach(const std::string& uid, Result<std::vector<std::string>> ips,
                                const Attached& attached) {
  Entry& entry = entries_.at(uid);
  entry.busy = false;
  const bool detaching = entry.detaching;
  if (detaching) {
    start_detach(uid);
    ips = being_stopped();
  } else if (!ips) {
    entries_.erase(uid);
  }
  if (!ips && ips.error().code == ErrorCode::kNotFound) {
    ips = make_error(ErrorCode::kServiceUnavailable,
                     "network is not ready: container runtime network not ready: NetworkReady=false "
                     "reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized");
  }
  attached(std::move(ips));
}

void PodNetworks::detach(const std::string& uid, Detached detached) {
  const auto found = entries_.find(uid);
  if (found == entries_.end()) return loop_.post(std::move(detached));
  if (auto next = std::exchange(found->second.next, std::nullopt)) {
    loop_.post([attached = std::move(next->attached)] { attached(being_stopped()); });
  }
  found->second.detached.push_back(std::move(detached));
  if (!std::exchange(found->second.detaching, true) && !found->second.busy) start_detach(uid);
}

void PodNetworks::start_detach(const std::string& uid) {
  Entry& entry = entries_.at(uid);
  entry.busy = true;
  entry.detaching = true;
  const bool queued = threads_.submit([this, alive = alive_.ref(), options = options_, uid]() -> runtime::Loop::Task {
    return alive.guard([this, uid, outcome = detach_now(*options, uid)] { finish_detach(uid, outcome); });
  });
  if (queued) return;
  loop_.post(alive_.guard([this, uid] {
    finish_detach(uid, make_error(ErrorCode::kTooManyRequests, "too many networks are being ended"));
  }));
}

void PodNetworks::finish_detach(const std::string& uid, const Outcome& outcome) {
  Entry& entry = entries_.at(uid);
  if (!outcome) {
    log_.warning("network of a pod not removed", {{"pod_uid", uid}, {"error", outcome.error().text()}});
    if (!ending_) {
      const Duration wait = std::min<Duration>(seconds(1) * (1 << std::min(entry.failures++, 10)), kRetryMax);
      loop_.at(loop_.now().mono + wait, alive_.guard([this, uid] { start_detach(uid); }));
      return;
    }
  }
  const std::vector<Detached> detached = std::move(entry.detached);
  std::optional<Waiting> next = std::move(entry.next);
  entries_.erase(uid);
  for (const Detached& each : detached) each();
  if (next) attach(std::move(next->wish), std::move(next->attached));
}

}  // namespace spillway::host
