// `spillway lint FILE...`: the effect of a KubeletConfiguration, its mistakes, and its changes between two versions.
#include "agent/config/config_lint.h"
#include "agent/config/version_changes.h"
#include "apps/commands/answer.h"
#include "apps/commands/commands.h"
#include "apps/node/node_config.h"
#include "apps/process/process.h"
#include "apps/process/terminal.h"
#include "base/bytes_text.h"
#include "base/file.h"
#include "base/utf8.h"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdio>

namespace spillway::apps {

namespace {

agent::LintMachine machine_of(const cli::LintCommand& command) {
  agent::LintMachine machine{.memory = command.memory.value_or(Bytes{0}), .disk = command.disk};
  struct sysinfo info{};
  if (!command.memory && ::sysinfo(&info) == 0) {
    machine.memory = Bytes{static_cast<std::int64_t>(info.totalram) * info.mem_unit};
  }
  struct statvfs fs{};
  if (!command.disk && ::statvfs("/var/lib", &fs) == 0) {
    machine.disk = Bytes{static_cast<std::int64_t>(fs.f_blocks) * static_cast<std::int64_t>(fs.f_frsize)};
  }
  return machine;
}

std::string place_of(const std::string& file, int line) {
  return line > 0 ? fmt::format("{}:{}", file, line) : file;
}

std::string amount_text(std::int64_t amount) {
  return bytes_text(static_cast<double>(amount));
}

void print_text(const std::string& file, const agent::LintReport& report, const agent::LintMachine& machine) {
  print_out("{}: on a node with {} of memory{}\n", file, amount_text(machine.memory.count()),
            machine.disk ? fmt::format(" and {} of disk", amount_text(machine.disk->count())) : "");
  for (const agent::EffectiveThreshold& each : report.thresholds) {
    print_out("  {:<5} {:<22} {:<8}{}{}{}\n", each.hard ? "hard" : "soft", each.signal, each.written,
              each.amount ? " = " + amount_text(*each.amount) : "", each.grace.empty() ? "" : " for " + each.grace,
              each.by_default ? " (default)" : "");
  }
  for (const agent::LintFinding& finding : report.findings) {
    print_out("{}: {}: {}{}{}{}\n", place_of(file, finding.line), to_string(finding.severity),
              finding.key.empty() ? "" : finding.key + ": ", finding.what, finding.why.empty() ? "" : ": ",
              finding.why);
  }
}

api::Json to_json(const std::string& file, const agent::LintReport& report) {
  api::Json thresholds = api::Json::array();
  for (const agent::EffectiveThreshold& each : report.thresholds) {
    api::Json entry = api::Json::object({{"signal", each.signal},
                                         {"kind", each.hard ? "hard" : "soft"},
                                         {"value", each.written},
                                         {"default", each.by_default}});
    if (each.amount) entry["bytes"] = *each.amount;
    if (!each.grace.empty()) entry["gracePeriod"] = each.grace;
    thresholds.if_array()->push_back(std::move(entry));
  }
  api::Json findings = api::Json::array();
  for (const agent::LintFinding& each : report.findings) {
    api::Json entry = api::Json::object(
        {{"severity", to_string(each.severity)}, {"key", each.key}, {"what", each.what}, {"why", each.why}});
    if (each.line > 0) entry["line"] = std::int64_t{each.line};
    findings.if_array()->push_back(std::move(entry));
  }
  return api::Json::object({{"file", file}, {"thresholds", std::move(thresholds)}, {"findings", std::move(findings)}});
}

/// The worst of two exit codes.
int worse(int a, int b) {
  constexpr int kOrder[] = {cli::kExitUsage, cli::kExitNegative, cli::kExitWarnings, cli::kExitOk};
  return std::find(std::begin(kOrder), std::end(kOrder), a) < std::find(std::begin(kOrder), std::end(kOrder), b) ? a
                                                                                                                 : b;
}

int exit_code_of(agent::LintSeverity worst) {
  switch (worst) {
    case agent::LintSeverity::kInvalid:
      return cli::kExitUsage;
    case agent::LintSeverity::kDangerous:
      return cli::kExitNegative;
    case agent::LintSeverity::kWarning:
      return cli::kExitWarnings;
  }
  return cli::kExitUsage;
}

/// The worst of the findings comes first.
template <typename Finding>
int exit_code_of(const std::vector<Finding>& findings) {
  return findings.empty() ? cli::kExitOk : exit_code_of(findings.front().severity);
}

void print_document(const api::Json& reports, cli::OutputFormat format) {
  if (format == cli::OutputFormat::kYaml) return print_answer(reports, format);
  std::string text = api::to_pretty_text(reports) + "\n";
  escape_unprintable(text);
  write_stdout(text);
}

/// A newer kubelet refuses a file that is valid now.
std::string_view word_of(agent::LintSeverity severity) {
  return severity == agent::LintSeverity::kInvalid ? "refused" : to_string(severity);
}

/// The changes of one file between two versions.
class ChangeReport {
 public:
  explicit ChangeReport(const cli::LintCommand& command)
      : output_(command.output), step_(*command.versions), range_{.from = step_.older, .to = step_.newer} {}

  void add_config(const std::string& given, const std::string& file) {
    const auto documents = read_config_documents(given);
    if (!documents) return fail(documents.error());
    for (const agent::ConfigDocument& document : *documents) {
      const std::string_view kind = document.value.string_at({"kind"});
      const bool is_config = document.value.is_object() && (kind.empty() || kind == "KubeletConfiguration");
      if (!is_config) {
        fail(Error{ErrorCode::kInvalid, "expected a KubeletConfiguration", file});
        continue;
      }
      add(file, agent::changes_of_config(document, range_));
    }
  }

  void add_flags(const std::string& file) {
    const auto text = read_file(file);
    if (!text) return fail(text.error());
    add(file, agent::changes_of_flags(agent::parse_kubelet_flags(file, *text), range_));
  }

  /// Prints the reports of a document format, and returns the exit code.
  int finish() const {
    if (cli::is_document(output_)) print_document(reports_, output_);
    return exit_code_;
  }

 private:
  void fail(const Error& error) {
    print_error(error);
    exit_code_ = worse(exit_code_, cli::kExitUsage);
  }

  void add(const std::string& file, const std::vector<agent::ChangeFinding>& findings) {
    exit_code_ = worse(exit_code_, exit_code_of(findings));
    if (cli::is_document(output_)) {
      reports_.if_array()->push_back(to_json(file, findings));
      return;
    }
    print_out("{}: {} from 1.{} to 1.{}\n", file,
              findings.empty()       ? "nothing changes"
              : findings.size() == 1 ? "1 change"
                                     : fmt::format("{} changes", findings.size()),
              step_.older, step_.newer);
    for (const agent::ChangeFinding& each : findings) {
      print_out("{}: {}: {}: from {}: {}; {}\n", place_of(file, each.line), word_of(each.severity), each.path,
                each.since, each.what, each.remedy);
    }
  }

  api::Json to_json(const std::string& file, const std::vector<agent::ChangeFinding>& findings) const {
    api::Json changes = api::Json::array();
    for (const agent::ChangeFinding& each : findings) {
      api::Json entry = api::Json::object({{"severity", word_of(each.severity)},
                                           {"subject", to_string(each.subject)},
                                           {"path", each.path},
                                           {"since", each.since},
                                           {"what", each.what},
                                           {"remedy", each.remedy},
                                           {"source", each.source}});
      if (each.line > 0) entry["line"] = std::int64_t{each.line};
      changes.if_array()->push_back(std::move(entry));
    }
    return api::Json::object({{"file", file},
                              {"from", fmt::format("1.{}", step_.older)},
                              {"to", fmt::format("1.{}", step_.newer)},
                              {"changes", std::move(changes)}});
  }

  cli::OutputFormat output_;
  cli::VersionStep step_;
  agent::MinorRange range_;
  api::Json reports_ = api::Json::array();
  int exit_code_ = cli::kExitOk;
};

std::string name_of(const std::string& given) {
  return given == "-" ? "standard input" : given;
}

int run_version_lint(const cli::LintCommand& command) {
  ChangeReport report(command);
  for (const std::string& given : command.files) report.add_config(given, name_of(given));
  for (const std::string& file : command.flag_files) report.add_flags(file);
  return report.finish();
}

}  // namespace

int run_lint(const cli::LintCommand& command) {
  if (command.versions) return run_version_lint(command);
  const agent::LintMachine machine = machine_of(command);
  const auto target =
      command.program == cli::LintedProgram::kKubelet ? agent::LintTarget::kKubelet : agent::LintTarget::kAgent;
  int exit_code = 0;
  api::Json reports = api::Json::array();
  for (const std::string& given : command.files) {
    const auto documents = read_config_documents(given);
    const std::string file = name_of(given);
    if (!documents) {
      print_error(documents.error());
      exit_code = worse(exit_code, cli::kExitUsage);
      continue;
    }
    for (const agent::ConfigDocument& document : *documents) {
      const agent::LintReport report = agent::lint_config(document, machine, target);
      exit_code = worse(exit_code, exit_code_of(report.findings));
      if (cli::is_document(command.output)) {
        reports.if_array()->push_back(to_json(file, report));
      } else {
        print_text(file, report, machine);
      }
    }
  }
  if (cli::is_document(command.output)) print_document(reports, command.output);
  return exit_code;
}

}  // namespace spillway::apps
