// Goal: the listener of a port is found in the kernel's tables, for addresses that the machine itself can reach, and
// only a process of the given cgroup counts.
#include "host/streams/port_listeners.h"

#include "base/unique_fd.h"
#include "host/streams/relay_session.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace spillway::host {
namespace {

constexpr std::string_view kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 101 1 0 100 0 0 10 0\n"
    "   1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 102 1 0 100 0 0 10 0\n"
    "   2: 0500000A:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 103 1 0 100 0 0 10 0\n"
    "   3: 0100007F:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 104 1 0 100 0 0 10 0\n"
    "   4: 0100007F:1F90 0100007F:ABCD 01 00000000:00000000 00:00000000 00000000     0        0 105 1 0 20 4 30 10 "
    "-1\n";
constexpr std::string_view kSixTable =
    "   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 "
    "00:00000000 "
    "00000000     0        0 201 1 0 100 0 0 10 0\n"
    "   1: 0000000000000000FFFF00000100007F:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 "
    "00:00000000 "
    "00000000     0        0 202 1 0 100 0 0 10 0\n"
    "   2: 000080FE00000000000000000100007F:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 "
    "00:00000000 "
    "00000000     0        0 203 1 0 100 0 0 10 0\n";

TEST(PortListeners, AreThoseTheMachineReaches) {
  EXPECT_EQ(parse_loopback_listeners(kTable, 8080), (std::set<std::uint64_t>{101, 102}));
  EXPECT_EQ(parse_loopback_listeners(kTable, 80), (std::set<std::uint64_t>{104}));
  EXPECT_EQ(parse_loopback_listeners(kTable, 81), (std::set<std::uint64_t>{}));
  EXPECT_EQ(parse_loopback_listeners(kSixTable, 8080), (std::set<std::uint64_t>{201, 202}));
  EXPECT_EQ(parse_loopback_listeners("0: no table", 80), (std::set<std::uint64_t>{}));
}

TEST(PortListeners, CountOnlyInTheCgroupAskedFor) {
  const UniqueFd server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(server.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::uint16_t port = ntohs(address.sin_port);
  const Outcome silent = check_listeners(port, {::getpid()}, "podnone");
  ASSERT_FALSE(silent);
  EXPECT_TRUE(silent.error().text().contains("connection refused")) << silent.error().text();
  ASSERT_EQ(::listen(server.get(), 1), 0);
  const Outcome others = check_listeners(port, {::getpid()}, "podnone");
  ASSERT_FALSE(others) << "this process is in no such cgroup";
  EXPECT_TRUE(others.error().text().contains("no process of the pod listens on port")) << others.error().text();
}

TEST(StreamAddress, IsOfThisMachine) {
  EXPECT_EQ(*parse_stream_address("http://127.0.0.1:35041/exec/8xS1oJfk"),
            (StreamAddress{.six = false, .port = 35'041, .path = "/exec/8xS1oJfk"}));
  EXPECT_EQ(*parse_stream_address("http://[::1]:80/attach/x?y"),
            (StreamAddress{.six = true, .port = 80, .path = "/attach/x?y"}));
  EXPECT_TRUE(parse_stream_address("http://localhost:80/x"));
  for (const char* url :
       {"", "http://127.0.0.1:80", "https://127.0.0.1:80/x", "http://127.0.0.1/x", "http://10.0.0.1:80/x",
        "http://127.0.0.1.evil.example:80/x", "http://user@127.0.0.1:80/x", "http://127.0.0.1:0/x",
        "http://127.0.0.1:65536/x", "http://127.0.0.1:80x/x", "http://127.0.0.1:80/x\r\nHost: y", "http://[::2]:80/x"})
    EXPECT_FALSE(parse_stream_address(url)) << url;
}

}  // namespace
}  // namespace spillway::host
