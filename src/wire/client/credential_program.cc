#include "wire/client/credential_program.h"

#include "api/json/json.h"
#include "api/text/base64.h"
#include "api/text/time_text.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

namespace spillway::wire {

namespace {

using api::Json;

constexpr std::string_view kKind = "ExecCredential";

std::string system_words(int error) {
  return std::generic_category().message(error);
}

/// This process's environment with some variables set, in the form of exec().
class Environment {
 public:
  explicit Environment(const std::vector<std::pair<std::string, std::string>>& added) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string_view text(*entry);
      const std::string_view name = text.substr(0, text.find('='));
      if (std::ranges::find(added, name, &std::pair<std::string, std::string>::first) == added.end()) {
        entries_.emplace_back(text);
      }
    }
    for (const auto& [name, value] : added) entries_.push_back(name + "=" + value);
    for (std::string& entry : entries_) pointers_.push_back(entry.data());
    pointers_.push_back(nullptr);
  }

  char** data() { return pointers_.data(); }

 private:
  std::vector<std::string> entries_;
  std::vector<char*> pointers_;
};

/// The start of the child: in a group of its own, with the signals' default behaviour, reading nothing, writing into
/// the pipe.
class SpawnRecipe {
 public:
  explicit SpawnRecipe(int output) {
    sigset_t all;
    sigset_t none;
    ::sigfillset(&all);
    ::sigemptyset(&none);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  }

  ~SpawnRecipe() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }

  SpawnRecipe(const SpawnRecipe&) = delete;
  SpawnRecipe& operator=(const SpawnRecipe&) = delete;

  posix_spawnattr_t attributes{};
  posix_spawn_file_actions_t actions{};
};

}  // namespace

std::string exec_info(const CredentialProgram& program, const Kubeconfig& cluster) {
  Json spec = Json::object({{"interactive", false}});
  if (program.wants_cluster) {
    Json& into = spec["cluster"] = Json::object({{"server", cluster.server}});
    if (!cluster.tls_server_name.empty()) into["tls-server-name"] = cluster.tls_server_name;
    if (!cluster.verify) into["insecure-skip-tls-verify"] = true;
    if (!cluster.authority_pem.empty()) {
      into["certificate-authority-data"] = api::encode_base64(cluster.authority_pem);
    }
  }
  Json info = Json::object({{"kind", kKind}, {"apiVersion", program.api_version}});
  info["spec"] = std::move(spec);
  return api::to_text(info);
}

std::string name_of(const CredentialProgram& program) {
  return "credential program " + program.command;
}

Result<ProgramCredential> parse_exec_credential(const CredentialProgram& program, const std::string& text) {
  const std::string at = name_of(program);
  const auto document = api::parse_json(text);
  if (!document) return invalid(at, "expected a JSON {}, got: {}", kKind, document.error().text());
  if (document->string_at({"kind"}) != kKind) {
    return invalid(at, "expected kind {}, got \"{}\"", kKind, document->string_at({"kind"}));
  }
  if (document->string_at({"apiVersion"}) != program.api_version) {
    return invalid(at, "expected apiVersion {}, got \"{}\"", program.api_version, document->string_at({"apiVersion"}));
  }
  const Json* status = document->find("status");
  if (status == nullptr || !status->is_object()) return invalid(at, "its answer has no status");
  ProgramCredential credential{.token = std::string(status->string_at({"token"})),
                               .certificate_pem = std::string(status->string_at({"clientCertificateData"})),
                               .key_pem = std::string(status->string_at({"clientKeyData"})),
                               .expires = std::nullopt};
  if (credential.certificate_pem.empty() != credential.key_pem.empty()) {
    return invalid(at, "expected clientCertificateData and clientKeyData together, got one of them");
  }
  if (credential.token.empty() && credential.certificate_pem.empty()) {
    return invalid(at, "expected a token or a certificate in status, got neither");
  }
  if (credential.token.find_first_of("\r\n") != std::string::npos) return invalid(at, "its token has a line break");
  if (const std::string_view expires = status->string_at({"expirationTimestamp"}); !expires.empty()) {
    const auto parsed = api::parse_time(expires);
    if (!parsed) return invalid(at, "expected a time in status.expirationTimestamp, got \"{}\"", expires);
    credential.expires = *parsed;
  }
  return credential;
}

ProgramRun::ProgramRun(runtime::Loop& loop, CredentialProgram program, std::string info, Done done)
    : loop_(loop), program_(std::move(program)), done_(std::move(done)) {
  if (const Outcome started = spawn(info); !started) {
    finish(started.error());
    return;
  }
  loop_.watch_fd(output_.get(), POLLIN, [this] { read_output(); });
  loop_.watch_fd(exit_.get(), POLLIN, [this] { on_exit(); });
  timer_ = loop_.at(loop_.now().mono + kProgramTimeMax, [this] {
    timer_.reset();
    kill_and_reap();
    finish(failed(fmt::format("no answer within {} s", std::chrono::duration_cast<seconds>(kProgramTimeMax).count())));
  });
}

ProgramRun::~ProgramRun() {
  if (timer_) loop_.cancel(*timer_);
  kill_and_reap();
}

Outcome ProgramRun::spawn(const std::string& info) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failed(system_words(errno));
  output_.reset(ends[0]);
  const UniqueFd theirs(ends[1]);
  ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  auto variables = program_.environment;
  variables.emplace_back("KUBERNETES_EXEC_INFO", info);
  Environment environment(variables);
  std::vector<std::string> words = program_.arguments;
  words.insert(words.begin(), program_.command);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const SpawnRecipe recipe(theirs.get());
  const int problem = ::posix_spawnp(&pid_, program_.command.c_str(), &recipe.actions, &recipe.attributes,
                                     arguments.data(), environment.data());
  if (problem != 0) {
    pid_ = -1;
    const std::string hint = program_.install_hint.empty() ? "" : "; " + program_.install_hint;
    return failed(system_words(problem) + hint);
  }
  exit_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (!exit_) {
    const int error = errno;
    kill_and_reap();
    return failed(system_words(error));
  }
  return {};
}

void ProgramRun::read_output() {
  std::array<char, 16 * 1024> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by read
  for (;;) {
    const ssize_t got = ::read(output_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return;  // no more for now
    if (got == 0) break;
    text_.append(buffer.data(), static_cast<std::size_t>(got));
    if (text_.size() > kProgramOutputMax) {
      kill_and_reap();
      return finish(failed(fmt::format("printed more than {} bytes", kProgramOutputMax)));
    }
  }
  loop_.unwatch_fd(output_.get());  // on_exit() finishes
  output_.reset();
}

void ProgramRun::on_exit() {
  if (output_) read_output();  // its last output; a child of the program may still hold the pipe
  if (pid_ < 0) return;        // too much output
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  ::kill(-pid_, SIGKILL);  // kills children that the program left behind
  pid_ = -1;
  kill_and_reap();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return finish(std::move(text_));
  if (WIFSIGNALED(status)) return finish(failed(fmt::format("ended by signal {}", WTERMSIG(status))));
  finish(failed(fmt::format("exit code {}", WEXITSTATUS(status))));
}

/// Kills and reaps the program. Afterwards nothing is watched any more.
void ProgramRun::kill_and_reap() {
  for (UniqueFd* fd : {&output_, &exit_}) {
    if (*fd) loop_.unwatch_fd(fd->get());
    fd->reset();
  }
  if (pid_ < 0) return;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

void ProgramRun::finish(Result<std::string> result) {
  if (timer_) loop_.cancel(*timer_);
  timer_.reset();
  loop_.post(alive_.guard([this, result = std::move(result)]() mutable {
    Done done = std::move(done_);
    if (done) done(std::move(result));
  }));
}

Error ProgramRun::failed(std::string_view why) const {
  return Error{ErrorCode::kServiceUnavailable, std::string(why), name_of(program_)};
}

}  // namespace spillway::wire
