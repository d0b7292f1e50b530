// Goal: what the rules say reaches a container runtime, whole, and its errors come back as it said them. The runtime is
// a fake that speaks the real protocol. What no message has a field for is an error of ours, and never sent.
#include "host/cri/cri_calls.h"

#include "host/cri/cri.grpc.pb.h"
#include "host/cri/cri_document.h"
#include "host/cri/image_endpoint.h"
#include "support/patience.h"
#include "support/vectors.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

namespace cri = ::runtime::v1;
namespace fs = std::filesystem;

class Fake final : public cri::RuntimeService::Service {
 public:
  grpc::Status Version(grpc::ServerContext*, const cri::VersionRequest*, cri::VersionResponse* response) override {
    response->set_runtime_name("fake");
    response->set_runtime_version("7");
    return grpc::Status::OK;
  }

  grpc::Status RuntimeConfig(grpc::ServerContext*, const cri::Nothing*, cri::RuntimeConfigResponse* response) override {
    if (!knows_config) return {grpc::StatusCode::UNIMPLEMENTED, "unknown method RuntimeConfig"};
    response->mutable_linux()->set_cgroup_driver(cri::CGROUPFS);
    return grpc::Status::OK;
  }

  grpc::Status Status(grpc::ServerContext*, const cri::StatusRequest* request, cri::StatusResponse* response) override {
    if (request->verbose() && !info.empty()) (*response->mutable_info())["config"] = info;
    return grpc::Status::OK;
  }

  bool knows_config = true;
  std::string info;

  grpc::Status RunPodSandbox(grpc::ServerContext*, const cri::RunPodSandboxRequest* request,
                             cri::RunPodSandboxResponse* response) override {
    response->set_pod_sandbox_id(request->config().metadata().uid());
    return grpc::Status::OK;
  }

  grpc::Status CreateContainer(grpc::ServerContext*, const cri::CreateContainerRequest* request,
                               cri::CreateContainerResponse* response) override {
    response->set_container_id(request->config().log_path());
    return grpc::Status::OK;
  }

  grpc::Status ContainerStatus(grpc::ServerContext*, const cri::ContainerRequest*,
                               cri::ContainerStatusResponse* response) override {
    response->mutable_status()->set_state(cri::CONTAINER_EXITED);
    response->mutable_status()->set_finished_at(1'234'567'890'123'456'789);
    return grpc::Status::OK;
  }

  grpc::Status StartContainer(grpc::ServerContext*, const cri::ContainerRequest*, cri::Nothing*) override {
    return {grpc::StatusCode::NOT_FOUND, "no such container"};
  }
};

class CriCallsTest : public ::testing::Test {
 protected:
  CriCallsTest() {
    std::string pattern = (fs::temp_directory_path() / "spillway-cri-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket(), grpc::InsecureServerCredentials());
    builder.RegisterService(&fake_);
    server_ = builder.BuildAndStart();
    calls_ = std::make_unique<CriCalls>(loop_, socket());
  }

  ~CriCallsTest() override {
    calls_.reset();
    server_->Shutdown();
    fs::remove_all(folder_);
  }

  std::string socket() const { return folder_ + "/fake.sock"; }

  Result<api::Json> ask(std::string_view method, api::Json request) {
    Result<api::Json> answer = api::Json();
    calls_->call(method, std::move(request), support::kPatience, [&](Result<api::Json> given) {
      answer = std::move(given);
      loop_.stop();
    });
    loop_.run({});
    return answer;
  }

  std::string folder_;
  runtime::Loop loop_;
  Fake fake_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<CriCalls> calls_;
};

TEST_F(CriCallsTest, EveryDocumentOfTheRulesIsAMessage) {
  int sent = 0;
  for (const auto& [file, method] :
       {std::pair("sandbox_config", "RunPodSandbox"), {"container_config", "CreateContainer"}}) {
    const auto rows = support::load_rows(fmt::format("{}/pod-lifecycle/{}.jsonl.gz", SPILLWAY_VECTORS, file));
    ASSERT_TRUE(rows) << rows.error().text();
    for (const support::VectorRow& row : *rows) {
      const api::Json* config = row.document.at({"want", "config"});
      if (config == nullptr) continue;
      ++sent;
      const auto answer = ask(method, api::Json::object({{"config", *config}}));
      ASSERT_TRUE(answer) << row.name() << ": " << answer.error().text();
      if (std::string_view(method) == "RunPodSandbox")
        EXPECT_EQ(answer->string_at({"pod_sandbox_id"}), config->string_at({"metadata", "uid"}));
      else
        EXPECT_EQ(answer->string_at({"container_id"}), config->string_at({"log_path"}));
    }
  }
  EXPECT_GT(sent, 300);
}

/// Removes members that a message cannot distinguish from absent fields. The members of a map are no fields.
api::Json without_zeros(const api::Json& document, bool is_map = false) {
  if (const auto* list = document.if_array()) {
    api::Json made = api::Json::Array();
    for (const api::Json& each : *list) made.if_array()->push_back(without_zeros(each));
    return made;
  }
  const auto* object = document.if_object();
  if (object == nullptr) return document;
  api::Json made = api::Json::object();
  for (const auto& [name, value] : *object) {
    const auto* list = value.if_array();
    const auto* text = value.if_string();
    const bool zero = value == api::Json(0) || value == api::Json(false) || value.is_null() ||
                      (text != nullptr && text->empty()) || (list != nullptr && list->empty());
    const bool of_map = name == "annotations" || name == "labels" || name == "unified" || name == "sysctls";
    if (!zero || is_map) made[name] = without_zeros(value, of_map);
  }
  return made;
}

TEST_F(CriCallsTest, AMessageSaysWhatItsDocumentSaid) {
  int read = 0;
  for (const std::string_view file : {"sandbox_config", "container_config"}) {
    const auto rows = support::load_rows(fmt::format("{}/pod-lifecycle/{}.jsonl.gz", SPILLWAY_VECTORS, file));
    ASSERT_TRUE(rows) << rows.error().text();
    for (const support::VectorRow& row : *rows) {
      const api::Json* config = row.document.at({"want", "config"});
      if (config == nullptr) continue;
      ++read;
      std::unique_ptr<google::protobuf::Message> message = std::make_unique<cri::ContainerConfig>();
      if (file == "sandbox_config") message = std::make_unique<cri::PodSandboxConfig>();
      ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(api::to_text(*config), message.get()).ok()) << row.name();
      EXPECT_EQ(api::to_text(document_of(*message)), api::to_text(without_zeros(*config))) << row.name();
    }
  }
  EXPECT_GT(read, 300);
}

TEST_F(CriCallsTest, NumbersAreExact) {
  const auto answer = ask("ContainerStatus", api::Json::object({{"container_id", "c"}}));
  ASSERT_TRUE(answer);
  EXPECT_EQ(number_in(*answer, {"status", "finished_at"}), 1'234'567'890'123'456'789);
  EXPECT_EQ(number_in(*answer, {"status", "state"}), 2);
  EXPECT_EQ(number_in(*answer, {"status", "exit_code"}), 0);
}

TEST_F(CriCallsTest, AnErrorIsTheRuntimesOwn) {
  const auto answer = ask("StartContainer", api::Json::object({{"container_id", "c"}}));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(rpc_text(answer.error()), "rpc error: code = NotFound desc = no such container");
}

TEST_F(CriCallsTest, WhatNoMessageHasIsNotSent) {
  EXPECT_EQ(ask("CreateContainer", api::Json::object({{"colour", "blue"}})).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(ask("PaintContainer", api::Json::object()).error().code, ErrorCode::kInvalid);
}

TEST_F(CriCallsTest, AMissingRuntimeIsReported) {
  server_->Shutdown();
  fs::remove(socket());
  EXPECT_EQ(ask("Version", api::Json::object()).error().code, ErrorCode::kServiceUnavailable);
  EXPECT_FALSE(ask_runtime_name(folder_ + "/none.sock"));
}

TEST_F(CriCallsTest, SaysWhichCgroupDriverItUses) {
  EXPECT_EQ(ask_cgroup_driver(socket()).value(), cgroups::CgroupDriver::kCgroupfs);
  EXPECT_FALSE(ask_cgroup_driver(folder_ + "/none.sock"));
}

TEST_F(CriCallsTest, AnOlderOneSaysItInItsStatus) {
  fake_.knows_config = false;
  EXPECT_EQ(ask_cgroup_driver(socket()).value(), std::nullopt);
  fake_.info = R"({"containerd":{"defaultRuntimeName":"runc","runtimes":{"runc":{"options":{"SystemdCgroup":true}}}}})";
  EXPECT_EQ(ask_cgroup_driver(socket()).value(), cgroups::CgroupDriver::kSystemd);
}

TEST_F(CriCallsTest, SaysWhoItIs) {
  const auto name = ask_runtime_name(socket());
  ASSERT_TRUE(name);
  EXPECT_EQ(name->name + " " + name->version, "fake 7");
}

/// Counts the received calls.
class CountedCalls final : public RuntimeCalls {
 public:
  explicit CountedCalls(std::vector<std::string>& methods) : methods_(methods) {}

  void call(std::string_view method, api::Json, Duration, Answer) override { methods_.emplace_back(method); }

 private:
  std::vector<std::string>& methods_;
};

TEST(ImageEndpoint, GetsTheCallsOfTheImageServiceAndNoOthers) {
  std::vector<std::string> runtime;
  std::vector<std::string> images;
  ImageEndpoint calls(std::make_unique<CountedCalls>(runtime), std::make_unique<CountedCalls>(images));
  const auto service = [](const char* name) {
    return google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(name);
  };
  std::vector<std::string> of_images;
  for (const auto* each : {service("runtime.v1.RuntimeService"), service("runtime.v1.ImageService")}) {
    for (int i = 0; i < each->method_count(); ++i) {
      calls.call(each->method(i)->name(), api::Json::object(), seconds(1), {});
      if (each->name() == "ImageService") of_images.push_back(each->method(i)->name());
    }
  }
  EXPECT_EQ(images, of_images);
  EXPECT_GT(runtime.size(), images.size());
}

}  // namespace
}  // namespace spillway::host
