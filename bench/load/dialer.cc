#include "load/dialer.h"

#include "base/file.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <utility>

namespace spillway::load {
namespace {

constexpr std::size_t kDialing = 32;  // connections that are being opened at a time
constexpr Duration kOpenMax = seconds(60);

void allow_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Result<std::shared_ptr<const wire::TlsContext>> context_of(const Options& options) {
  SPILLWAY_TRY(authority, read_file(options.authority_file));
  wire::TlsContext::ClientOptions client{.authority_pem = std::move(authority), .identity = std::nullopt};
  if (!options.certificate_file.empty()) {
    SPILLWAY_TRY(certificate, read_file(options.certificate_file));
    SPILLWAY_TRY(key, read_file(options.key_file));
    client.identity = wire::KeyPair{std::move(certificate), std::move(key)};
  }
  return wire::TlsContext::make_client(client);
}

}  // namespace

Instant now() {
  return Instant(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

Duration wall_behind() {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<Duration>(wall) - now().time_since_epoch();
}

WallTime wall_of(Instant at, Duration behind) {
  return WallTime(std::chrono::duration_cast<WallTime::duration>(at.time_since_epoch() + behind));
}

Result<std::unique_ptr<Dialer>> Dialer::make(const Options& options) {
  allow_descriptors();
  std::unique_ptr<Dialer> dialer(new Dialer);
  dialer->options_ = options;
  if (!options.authority_file.empty()) {
    SPILLWAY_TRY(context, context_of(options));
    dialer->tls_ = std::move(context);
  }
  if (!options.token_file.empty()) {
    SPILLWAY_TRY(token, read_file(options.token_file));
    while (token.ends_with('\n')) token.pop_back();
    dialer->token_ = std::move(token);
  }
  dialer->epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!dialer->epoll_) return errno_error("epoll_create1", errno);
  return dialer;
}

Result<Connection*> Dialer::dial(std::size_t index, ConnectionUser& user) {
  SPILLWAY_TRY(socket, wire::connect_to(options_.host, options_.port));
  const int fd = socket.fd();
  auto stream =
      tls_ ? tls_->connect_stream(std::move(socket), options_.host) : wire::make_plain_stream(std::move(socket));
  connections_.push_back(std::make_unique<Connection>(index, std::move(stream), user));
  Connection* connection = connections_.back().get();
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = connection;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return errno_error("epoll_ctl", errno);
  return connection;
}

Outcome Dialer::open(std::size_t count, ConnectionUser& user, const std::function<std::size_t()>& opened,
                     std::vector<Connection*>& into) {
  const Instant limit = now() + kOpenMax;
  while (opened() < count) {
    while (into.size() < count && into.size() - opened() < kDialing) {
      SPILLWAY_TRY(connection, dial(into.size(), user));
      into.push_back(connection);
    }
    turn(milliseconds(50));
    const auto lost = std::ranges::count_if(into, [](const Connection* one) { return one->lost(); });
    if (lost != 0 || now() > limit) {
      return make_error(ErrorCode::kServiceUnavailable, "{} of {} connections opened, {} lost", opened(), count, lost);
    }
  }
  return {};
}

void Dialer::turn(Duration wait) {
  std::array<epoll_event, 256> events{};
  wait = std::max(wait, Duration::zero());
  timespec patience{};
  patience.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(wait).count();
  patience.tv_nsec = (wait % std::chrono::seconds(1)).count();
  const int ready = ::epoll_pwait2(epoll_.get(), events.data(), static_cast<int>(events.size()), &patience, nullptr);
  for (int i = 0; i < ready; ++i) {
    static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr)->drive();
  }
}

bool Dialer::turn_until(const std::function<bool()>& done, Duration limit) {
  const Instant end = now() + limit;
  while (!done()) {
    if (now() > end) return false;
    turn(milliseconds(50));
  }
  return true;
}

std::string Dialer::head(std::string_view method, std::string_view target, std::size_t body_bytes) const {
  const bool protobuf = options_.protobuf && body_bytes != 0;
  std::string out = fmt::format(
      "{} {} HTTP/1.1\r\nHost: {}:{}\r\nUser-Agent: kubelet/v1.32.0 (linux/amd64)\r\nAccept: {}application/json\r\n",
      method, target, options_.host, options_.port, protobuf ? "application/vnd.kubernetes.protobuf," : "");
  if (!token_.empty()) out += fmt::format("Authorization: Bearer {}\r\n", token_);
  if (body_bytes != 0) {
    out += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n",
                       protobuf ? "application/vnd.kubernetes.protobuf" : "application/json", body_bytes);
  }
  return out + "\r\n";
}

}  // namespace spillway::load
