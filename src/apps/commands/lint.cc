// `spillway lint FILE...`: what a KubeletConfiguration does, and what in it is wrong.
#include "agent/config/config_lint.h"
#include "apps/commands/answer.h"
#include "apps/commands/commands.h"
#include "apps/node/node_config.h"
#include "apps/process/process.h"
#include "apps/process/terminal.h"
#include "base/bytes_text.h"
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

int exit_code_of(const agent::LintReport& report) {
  if (report.findings.empty()) return 0;
  switch (report.findings.front().severity) {
    case agent::LintSeverity::kInvalid:
      return cli::kExitUsage;
    case agent::LintSeverity::kDangerous:
      return cli::kExitNegative;
    case agent::LintSeverity::kWarning:
      return cli::kExitWarnings;
  }
  return cli::kExitUsage;
}

}  // namespace

int run_lint(const cli::LintCommand& command) {
  const agent::LintMachine machine = machine_of(command);
  const auto target =
      command.program == cli::LintedProgram::kKubelet ? agent::LintTarget::kKubelet : agent::LintTarget::kAgent;
  int exit_code = 0;
  api::Json reports = api::Json::array();
  for (const std::string& given : command.files) {
    const auto documents = read_config_documents(given);
    const std::string file = given == "-" ? "standard input" : given;
    if (!documents) {
      print_error(documents.error());
      exit_code = worse(exit_code, cli::kExitUsage);
      continue;
    }
    for (const agent::ConfigDocument& document : *documents) {
      const agent::LintReport report = agent::lint_config(document, machine, target);
      exit_code = worse(exit_code, exit_code_of(report));
      if (cli::is_document(command.output)) {
        reports.if_array()->push_back(to_json(file, report));
      } else {
        print_text(file, report, machine);
      }
    }
  }
  if (command.output == cli::OutputFormat::kJson) {
    std::string text = api::to_pretty_text(reports) + "\n";
    escape_unprintable(text);
    write_stdout(text);
  }
  if (command.output == cli::OutputFormat::kYaml) print_answer(reports, command.output);
  return exit_code;
}

}  // namespace spillway::apps
