#include "store/etcd_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

namespace spillway::store {
namespace {

constexpr unsigned kFirstPort =
    12'000;  // below those that the kernel gives away, of which one might be taken meanwhile
constexpr unsigned kPorts = 16'000;

/// A port that is free at this moment, and that no other test program tries next.
unsigned free_port() {
  static unsigned tried = static_cast<unsigned>(::getpid()) * 7;
  for (;;) {
    const unsigned port = kFirstPort + ++tried % kPorts;
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    const bool is_free = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    ::close(fd);
    if (is_free) return port;
  }
}

std::string find_program() {
  for (const std::string& path : {std::string(SPILLWAY_PEERS "/root/usr/bin/etcd"), std::string("/usr/bin/etcd"),
                                  std::string("/usr/local/bin/etcd")})
    if (::access(path.c_str(), X_OK) == 0) return path;
  return {};
}

}  // namespace

EtcdProcess* EtcdProcess::shared() {
  static const std::unique_ptr<EtcdProcess> one = [] {
    const std::string program = find_program();
    return std::unique_ptr<EtcdProcess>(program.empty() ? nullptr : new EtcdProcess(program));
  }();
  return one.get();
}

EtcdProcess::EtcdProcess(const std::string& program) : url_(fmt::format("http://127.0.0.1:{}", free_port())) {
  const std::string peer = fmt::format("http://127.0.0.1:{}", free_port());
  std::vector<std::string> words = {program,
                                    "--name=one",
                                    "--data-dir=" + directory_.file("data"),
                                    "--listen-client-urls=" + url_,
                                    "--advertise-client-urls=" + url_,
                                    "--listen-peer-urls=" + peer,
                                    "--initial-advertise-peer-urls=" + peer,
                                    "--initial-cluster=one=" + peer};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string log = directory_.file("log");
  pid_ = ::fork();
  SPILLWAY_CHECK(pid_ >= 0);
  if (pid_ > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ::dup2(out, 1);
  ::dup2(out, 2);
  ::execv(program.c_str(), argv.data());
  ::_exit(127);
}

EtcdProcess::~EtcdProcess() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace spillway::store
