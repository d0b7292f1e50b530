// Goal: questions about health end once and in time, whatever the other side is.
#include "host/probes/health_prober.h"

#include "base/unique_fd.h"
#include "support/patience.h"

#include <grpcpp/ext/health_check_service_server_builder_option.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace spillway::host {
namespace {

using containers::GrpcAnswer;
using End = GrpcAnswer::End;

/// A server of grpc.health.v1, or of nothing.
class GrpcServer {
 public:
  enum class Health { kServed, kUnknown };

  explicit GrpcServer(Health health) {
    grpc::EnableDefaultHealthCheckService(health == Health::kServed);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    thread_ = std::thread([this] {
      void* tag = nullptr;
      bool ok = false;
      while (queue_->Next(&tag, &ok)) {
      }
    });
  }

  ~GrpcServer() {
    server_->Shutdown();
    queue_->Shutdown();
    thread_.join();
  }

  std::uint16_t port() const { return static_cast<std::uint16_t>(port_); }

  void say(const std::string& service, bool serves) {
    server_->GetHealthCheckService()->SetServingStatus(service, serves);
  }

 private:
  int port_ = 0;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::thread thread_;
};

class HealthProbes : public ::testing::Test {
 protected:
  GrpcAnswer ask(std::uint16_t port, const std::string& service = {}, Duration timeout = support::kPatience) {
    std::optional<agent::GrpcAnswered> answered;
    HealthProber prober(loop_, [&](const agent::HostEvent& event) {
      answered = std::get<agent::GrpcAnswered>(event);
      loop_.stop();
    });
    prober.ask({.id = 7, .host = "127.0.0.1", .port = port, .service = service, .timeout = timeout});
    EXPECT_FALSE(answered) << "not from inside";
    loop_.run({});
    EXPECT_EQ(answered->id, 7U);
    return answered->answer;
  }

  runtime::Loop loop_;
};

TEST_F(HealthProbes, ReportWhatTheServerSays) {
  GrpcServer server(GrpcServer::Health::kServed);
  server.say("shop", true);
  server.say("till", false);
  EXPECT_EQ(ask(server.port()), (GrpcAnswer{.end = End::kAnswered, .status = 1, .text = {}}));
  EXPECT_EQ(ask(server.port(), "shop").status, 1);
  EXPECT_EQ(ask(server.port(), "till"), (GrpcAnswer{.end = End::kAnswered, .status = 2, .text = {}}));
  const GrpcAnswer none = ask(server.port(), std::string(150, 'x'));
  EXPECT_EQ(none.end, End::kFailed);
  EXPECT_TRUE(none.text.starts_with("rpc error: code = NotFound desc = ")) << none.text;
}

TEST_F(HealthProbes, KnowAServerWithoutHealth) {
  const GrpcServer server(GrpcServer::Health::kUnknown);
  EXPECT_EQ(ask(server.port()).end, End::kUnimplemented);
}

TEST_F(HealthProbes, EndInTimeWithoutAnAnswer) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::uint16_t port = ntohs(address.sin_port);
  EXPECT_EQ(ask(port, {}, milliseconds(300)).end, End::kNotConnected) << "refused";
  ASSERT_EQ(::listen(socket.get(), 4), 0);
  const End silent = ask(port, {}, milliseconds(300)).end;
  EXPECT_TRUE(silent == End::kNotConnected || silent == End::kLate);
}

TEST_F(HealthProbes, AreDroppedWithTheProber) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::listen(socket.get(), 4), 0);
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  ASSERT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  HealthProber prober(loop_, [](const agent::HostEvent&) { FAIL(); });
  for (std::uint64_t id = 0; id < 20; ++id)
    prober.ask({.id = id, .host = "127.0.0.1", .port = ntohs(address.sin_port), .service = {}, .timeout = hours(1)});
}

}  // namespace
}  // namespace spillway::host
