// Calls to a container runtime over its socket (gRPC, CRI v1), as documents: requests and answers have the field names
// of cri.proto, zero values left out.
// Thread: loop; connections and encoding have a thread of their own, and answers are delivered on the loop, never from
// inside call(). Bounds: kUnderWayMax calls at a time, each with a deadline, 16 MiB per answer. Source: Kubernetes
// docs, "Container Runtime Interface (CRI)"; spec "Node agent", 20.
#pragma once

#include "api/json/json.h"
#include "base/error.h"
#include "base/time.h"
#include "policy/cgroups/cgroup_name.h"
#include "runtime/loop.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::host {

/// Port: calls to a container runtime.
class RuntimeCalls {
 public:
  using Answer = std::move_only_function<void(Result<api::Json>)>;

  virtual ~RuntimeCalls() = default;

  /// `method`: "RunPodSandbox", "PullImage". Errors: kNotFound, kTimeout, kServiceUnavailable, else kInternalError; the
  /// message is the runtime's own, `at` names the code as Go's gRPC does ("NotFound").
  virtual void call(std::string_view method, api::Json request, Duration deadline, Answer answer) = 0;
};

class CriCalls final : public RuntimeCalls {
 public:
  static constexpr std::size_t kUnderWayMax = 2'000;

  /// `socket`: path of the runtime's socket. Connects at the first call.
  CriCalls(runtime::Loop& loop, const std::string& socket);
  /// Calls under way are dropped, unanswered.
  ~CriCalls() override;
  CriCalls(const CriCalls&) = delete;
  CriCalls& operator=(const CriCalls&) = delete;

  void call(std::string_view method, api::Json request, Duration deadline, Answer answer) override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// The time-out of calls that nothing else bounds; upstream's default.
inline constexpr Duration kRuntimeCallMax = minutes(2);

struct RuntimeName {
  std::string name;
  std::string version;
};

/// Name and version of the runtime at this socket: "containerd", "1.6.20". Waits at most 10 s; for the start of a
/// process. kServiceUnavailable: no program answers, or it does not speak CRI v1.
Result<RuntimeName> ask_runtime_name(const std::string& socket);

/// The cgroup driver of that runtime; nullopt: the runtime does not report it. Waits, at most 10 s; called at the start
/// of a process. kServiceUnavailable: it does not answer.
Result<std::optional<cgroups::CgroupDriver>> ask_cgroup_driver(const std::string& socket);

/// The text in which upstream's agent prints such an error: "rpc error: code = NotFound desc = …".
std::string rpc_text(const Error& error);

/// 0: absent.
std::int64_t number_in(const api::Json& document, std::initializer_list<std::string_view> path);

/// The elements of a member; none if it is absent, as an empty list is.
const api::Json::Array& list_in(const api::Json& document, std::string_view member);

}  // namespace spillway::host
