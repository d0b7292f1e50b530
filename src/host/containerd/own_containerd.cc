#include "host/containerd/own_containerd.h"

#include "api/text/time_text.h"
#include "base/file.h"
#include "host/containerd/content_store.h"
#include "host/containerd/oci_image.h"
#include "host/containerd/pause_program.h"
#include "host/cri/image_service.h"
#include "host/kernel/pidfd.h"
#include "runtime/clock.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

namespace spillway::host {
namespace {

constexpr std::string_view kFallbackFile = "90-spillway.conflist";  // sorts behind any other configuration
constexpr Duration kImageSeenMax = seconds(20);                     // time in which the CRI plug-in must know the image

bool is_network_file(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".conflist" || extension == ".conf" || extension == ".json";
}

Outcome store_pause_image(const DaemonPlaces& places, const OciImage& image, WallTime now,
                          const std::atomic<bool>& cancelled) {
  ImageService images(places.socket());
  SPILLWAY_TRY(there, images.has(image.name));
  if (there) return {};
  {
    ContentStore store(places.socket());
    SPILLWAY_TRY_VOID(store.take_lease(fmt::format("spillway-{}", ::getpid()), api::format_time(now + hours(1))));
    SPILLWAY_TRY_VOID(store_image(store, image));
  }
  const Instant deadline = runtime::RealClock::read().mono + kImageSeenMax;
  while (!cancelled && runtime::RealClock::read().mono < deadline) {
    SPILLWAY_TRY(seen, images.has(image.name));
    if (seen) return {};
    ::poll(nullptr, 0, static_cast<int>(kDaemonPoll / milliseconds(1)));
  }
  return Error{ErrorCode::kTimeout, "the image of the sandboxes was stored, and is not listed", image.name};
}

}  // namespace

Result<bool> write_fallback_network(const DaemonPlaces& places, const std::string& directory) {
  SPILLWAY_TRY_VOID(make_directories(directory));
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error))
    if (is_network_file(entry.path())) return false;
  SPILLWAY_TRY_VOID(
      replace_file(fmt::format("{}/{}", directory, kFallbackFile), fallback_network(places.state() + "/leases")));
  return true;
}

Result<Daemon> start_own_containerd(const DaemonPlaces& places, DaemonSettings settings, WallTime now,
                                    const std::atomic<bool>& cancelled) {
  const OciImage image = make_pause_image(pause_program());
  settings.sandbox_image = image.name;
  SPILLWAY_TRY(written, write_fallback_network(places, settings.cni_configuration));
  static_cast<void>(written);
  SPILLWAY_TRY(daemon, start_daemon(places, settings, cancelled));
  if (const Outcome stored = store_pause_image(places, image, now, cancelled); !stored) {
    if (!daemon.taken_over) ignored(end_daemon(places, std::move(daemon)), "the first error is the one to report");
    return stored.error();
  }
  return daemon;
}

}  // namespace spillway::host
