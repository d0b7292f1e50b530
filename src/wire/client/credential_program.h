// Programs that print credentials (users[].user.exec of a kubeconfig): their input, their output, and one run of such a
// program. Source: Kubernetes docs, "Authenticating", client-go credential plugins; client.authentication.k8s.io.
#pragma once

#include "base/alive.h"
#include "base/error.h"
#include "base/time.h"
#include "base/unique_fd.h"
#include "runtime/loop.h"
#include "wire/client/kubeconfig.h"

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace spillway::wire {

/// The output of a program: a token, a certificate with its key, or both.
struct ProgramCredential {
  std::string token;
  std::string certificate_pem;
  std::string key_pem;
  std::optional<WallTime> expires;
};

/// The value of KUBERNETES_EXEC_INFO. Thread: any.
std::string exec_info(const CredentialProgram& program, const Kubeconfig& cluster);

/// Name of the program in errors: "credential program /usr/bin/login". Thread: any.
std::string name_of(const CredentialProgram& program);

/// Parses an ExecCredential. kInvalid: one line that names the program and the mistake. Thread: any.
Result<ProgramCredential> parse_exec_credential(const CredentialProgram& program, const std::string& text);

/// One run. Its standard output is read, its standard error is this process's, its standard input is empty. Thread: the
/// loop's. Bounds: kProgramTimeMax, kProgramOutputMax; a program beyond a bound is killed with all its children.
class ProgramRun {
 public:
  static constexpr Duration kProgramTimeMax = seconds(60);
  static constexpr std::size_t kProgramOutputMax = std::size_t{1024} * 1024;

  /// Gets the output; kServiceUnavailable: the reason why there is none, naming the program. Called once, never from
  /// inside.
  using Done = std::move_only_function<void(Result<std::string>)>;

  ProgramRun(runtime::Loop& loop, CredentialProgram program, std::string info, Done done);
  /// Kills the program if it still runs; `done` is not called any more.
  ~ProgramRun();
  ProgramRun(const ProgramRun&) = delete;
  ProgramRun& operator=(const ProgramRun&) = delete;

 private:
  Outcome spawn(const std::string& info);
  void read_output();
  void on_exit();
  void kill_and_reap();
  void finish(Result<std::string> result);
  Error failed(std::string_view why) const;

  runtime::Loop& loop_;
  CredentialProgram program_;
  Done done_;
  pid_t pid_ = -1;
  UniqueFd output_;
  UniqueFd exit_;  // a pidfd
  std::string text_;
  std::optional<runtime::Loop::TimerId> timer_;
  Alive alive_;
};

}  // namespace spillway::wire
