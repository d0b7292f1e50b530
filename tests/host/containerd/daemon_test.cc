// The configuration of a containerd, the record of its process, and the program of its sandboxes.
#include "host/containerd/daemon.h"

#include "base/file.h"
#include "base/unique_fd.h"
#include "host/containerd/daemon_config.h"
#include "host/containerd/own_containerd.h"
#include "host/containerd/pause_program.h"
#include "host/containerd/shims.h"
#include "host/cri/image_service.h"
#include "support/patience.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace spillway::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

DaemonSettings settings() {
  return {.containerd = "/usr/bin/containerd",
          .shim = "/usr/bin/containerd-shim-runc-v2",
          .low_level = "/usr/sbin/runc",
          .cni_configuration = "/d/nodes/n/cni",
          .cni_programs = "/usr/lib/cni",
          .sandbox_image = "spillway.dev/pause:1"};
}

TEST(DaemonConfig, HasEverythingBelowOneDirectory) {
  const std::string text = daemon_config({"/d/containerd"}, settings());
  for (const char* line :
       {"\nroot = \"/d/containerd/root\"\n", "\nstate = \"/d/containerd/state\"\n",
        "address = \"/d/containerd/containerd.sock\"\n", "Root = \"/d/containerd/state/runc\"\n",
        "netns_mounts_under_state_dir = true\n", "sandbox_image = \"spillway.dev/pause:1\"\n",
        "conf_dir = \"/d/nodes/n/cni\"\n", "bin_dir = \"/usr/lib/cni\"\n", "restrict_oom_score_adj = false\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST(DaemonConfig, QuotesWhatADirectoryMayBeNamed) {
  const std::string text = daemon_config({"/d\"\\\n/containerd"}, settings());
  EXPECT_THAT(text, HasSubstr("root = \"/d\\\"\\\\\\u000A/containerd/root\"\n"));
}

TEST(DaemonConfig, RefusesAPathThatIsTooLongForASocket) {
  EXPECT_TRUE(check_places({"/var/lib/spillway/containerd"}));
  const Outcome checked = check_places({"/" + std::string(100, 'd')});
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().text(), StartsWith("--data-dir: "));
}

TEST(DaemonProcess, IsReadAsItWasWritten) {
  const DaemonProcess process{4711, 123'456, "5c2f-boot"};
  EXPECT_EQ(parse_daemon_process(to_text(process)), process);
  for (const char* text : {"", "\n", "4711", "4711 1", "-4711 1 b", "0 1 b", "99999999999 1 b", "x 1 b", "1 x b"})
    EXPECT_EQ(parse_daemon_process(text), std::nullopt) << text;
}

/// A number that another process has by now is not taken for the daemon's.
TEST(DaemonProcess, OfAnotherProcessOrBootIsNotFound) {
  const std::string folder = ::testing::TempDir() + "spillway-daemon-" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  const DaemonPlaces places{folder};
  EXPECT_FALSE(find_daemon(places));
  auto boot = *read_file("/proc/sys/kernel/random/boot_id");
  boot.pop_back();
  ASSERT_TRUE(replace_file(places.process_file(), to_text({::getpid(), 1, boot})));
  EXPECT_FALSE(find_daemon(places)) << "started at another time";
  ASSERT_TRUE(replace_file(places.process_file(), to_text({::getpid(), 1, "another-boot"})));
  EXPECT_FALSE(find_daemon(places));
  std::filesystem::remove_all(folder);
}

TEST(FallbackNetwork, IsWrittenOnlyWhereThereIsNoOther) {
  const std::string folder = ::testing::TempDir() + "spillway-cni-" + std::to_string(::getpid());
  const DaemonPlaces places{folder};
  EXPECT_TRUE(*write_fallback_network(places, folder + "/cni"));
  EXPECT_FALSE(*write_fallback_network(places, folder + "/cni"));
  const auto text = read_file(folder + "/cni/90-spillway.conflist");
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("\"type\":\"ptp\""));
  std::filesystem::remove(folder + "/cni/90-spillway.conflist");
  ASSERT_TRUE(replace_file(folder + "/cni/10-other.conflist", "{}"));
  EXPECT_FALSE(*write_fallback_network(places, folder + "/cni"));
  std::filesystem::remove_all(folder);
}

TEST(PauseProgram, IsASmallStaticExecutable) {
  const std::string_view program = pause_program();
  EXPECT_THAT(std::string(program.substr(0, 4)),
              "\x7f"
              "ELF");
  EXPECT_LT(program.size(), 16'384U);
  EXPECT_THAT(std::string(program), Not(HasSubstr("ld-linux")));
}

TEST(UnusedImages, AreThoseThatNoContainerAndNoSandboxHas) {
  const std::vector<RuntimeImage> images = {
      {.id = "sha256:1", .tags = {"a:1"}, .digests = {}, .size_bytes = 1},
      {.id = "sha256:2", .tags = {"b:1"}, .digests = {"b@sha256:22"}, .size_bytes = 1},
      {.id = "sha256:3", .tags = {"pause:1"}, .digests = {}, .size_bytes = 1},
      {.id = "sha256:4", .tags = {"c:1"}, .digests = {}, .size_bytes = 1, .pinned = true},
      {.id = "sha256:5", .tags = {}, .digests = {}, .size_bytes = 1}};
  const auto ids = [](const std::vector<RuntimeImage>& list) {
    std::vector<std::string> made;
    for (const RuntimeImage& each : list) made.push_back(each.id);
    return made;
  };
  EXPECT_THAT(ids(unused_images(images, {"b@sha256:22"}, {"pause:1"})), ElementsAre("sha256:1", "sha256:5"));
  EXPECT_THAT(ids(unused_images(images, {"sha256:5", "a:1"}, {})), ElementsAre("sha256:2", "sha256:3"));
}

/// A process with the command line of a shim; it lives as long as this object.
class FakeShim {
 public:
  FakeShim(const std::string& socket, const std::string& ns, const std::string& id) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    held_.reset(ends[1]);
    const UniqueFd read(ends[0]);
    const char* const name = "containerd-shim-runc-v2";
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::dup2(read.get(), STDIN_FILENO);
    ::execl("/bin/sh", name, "-c", "read line; exit", "-namespace", ns.c_str(), "-id", id.c_str(), "-address",
            socket.c_str(), nullptr);
    ::_exit(1);
  }

  ~FakeShim() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  FakeShim(const FakeShim&) = delete;
  FakeShim& operator=(const FakeShim&) = delete;

  pid_t pid() const { return pid_; }

  bool has_ended() const { return ::waitpid(pid_, nullptr, WNOHANG) == pid_; }

  bool ends() const {
    const auto give_up = std::chrono::steady_clock::now() + support::kPatience;
    while (!has_ended()) {
      if (std::chrono::steady_clock::now() > give_up) return false;
      ::sched_yield();
    }
    return true;
  }

 private:
  pid_t pid_ = 0;
  UniqueFd held_;  // end of the pipe that the shell reads: it waits until this object ends
};

/// The shims of these places, once there are so many: a child is seen with its own command line a moment later.
std::vector<Shim> shims_found(const DaemonPlaces& places, std::size_t count) {
  std::vector<Shim> found;
  while ((found = find_shims(places)).size() < count) ::sched_yield();
  return found;
}

TEST(Shims, AreFoundByTheSocketOfTheirContainerdAndTheNamespace) {
  const DaemonPlaces places{fmt::format("/tmp/shims-{}/containerd", ::getpid())};
  const FakeShim foreign(places.socket() + "2", "k8s.io", "foreign");
  const FakeShim other(places.socket(), "moby", "other");
  const FakeShim own(places.socket(), "k8s.io", "sandbox");
  const std::vector<Shim> found = shims_found(places, 1);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].pid, own.pid());
  EXPECT_EQ(found[0].container, "sandbox");
}

TEST(Shims, WithoutAContainerAreDoubted) {
  const std::vector<Shim> shims{{1, 10, "a"}, {2, 20, "b"}};
  EXPECT_THAT(without_container(shims, {"a", "c"}), ElementsAre(Shim{2, 20, "b"}));
  EXPECT_THAT(without_container(shims, {"a", "b"}), ElementsAre());
}

TEST(Shims, AreNotEndedWhereContainerdGivesNoAnswer) {
  const DaemonPlaces places{fmt::format("/tmp/shims-{}/nowhere", ::getpid())};
  const FakeShim own(places.socket(), "k8s.io", "sandbox");
  const auto swept = sweep_shims(places, shims_found(places, 1));
  EXPECT_FALSE(swept);
  EXPECT_FALSE(own.has_ended());
}

TEST(Shims, AreAllEndedWithTheirContainerd) {
  const DaemonPlaces places{fmt::format("/tmp/shims-{}/ended", ::getpid())};
  const FakeShim own(places.socket(), "k8s.io", "sandbox");
  shims_found(places, 1);
  end_shims(places);
  EXPECT_TRUE(own.ends());
}

}  // namespace
}  // namespace spillway::host
