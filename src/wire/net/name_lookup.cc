#include "wire/net/name_lookup.h"

#include "wire/net/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

namespace spillway::wire {

namespace {

struct AddressListFree {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

Result<std::vector<std::string>> resolve_host(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  const int problem = ::getaddrinfo(host.c_str(), nullptr, &hints, &raw);
  const std::unique_ptr<addrinfo, AddressListFree> list(raw);
  if (problem != 0) {
    return make_error(ErrorCode::kServiceUnavailable, "cannot resolve \"{}\": {}", host, ::gai_strerror(problem));
  }
  std::vector<std::string> addresses;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    const void* address =
        entry->ai_family == AF_INET
            ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(entry->ai_addr)->sin_addr)
            : &reinterpret_cast<const sockaddr_in6*>(entry->ai_addr)->sin6_addr;
    if (::inet_ntop(entry->ai_family, address, text.data(), text.size()) != nullptr)
      addresses.emplace_back(text.data());
  }
  if (addresses.empty()) return make_error(ErrorCode::kServiceUnavailable, "\"{}\" has no address", host);
  return addresses;
}

}  // namespace

void NameLookup::resolve(std::string host, Done done) {
  if (is_numeric_address(host)) {
    loop_.post([host = std::move(host), done = std::move(done)]() mutable { done(std::vector<std::string>{host}); });
    return;
  }
  if (!thread_) thread_.emplace("spillway-names");
  thread_->loop().post([this, host = std::move(host), done = std::move(done)]() mutable {
    loop_.post([result = resolve_host(host), done = std::move(done)]() mutable { done(std::move(result)); });
  });
}

}  // namespace spillway::wire
