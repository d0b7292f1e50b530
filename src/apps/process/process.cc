#include "apps/process/process.h"

#include "apps/process/terminal.h"
#include "apps/process/trace_part.h"
#include "base/check.h"
#include "base/version.h"
#include "cli/flags/command_line.h"
#include "runtime/entropy.h"
#include "telemetry/log_line.h"
#include "telemetry/stderr_log.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <span>

namespace spillway::apps {

namespace {

/// Blocks from this size on are mapped separately and returned to the system when they are freed. By default glibc
/// raises its threshold to the largest block it has seen, up to 32 MiB; a burst of answers of some megabytes then
/// leaves holes in the heap that no other size fits.
constexpr int kMappedBytesMin = 1 << 20;

/// Makes a write to a pipe whose reader has gone fail with EPIPE, no more: `spillway up 2>&1 | tee log` outlives tee at
/// Ctrl-C and ends its pods. A handler, because every child would inherit SIG_IGN; exec puts handlers back to the
/// default. Short commands keep the default: they end quietly with their reader.
void survive_broken_pipes() {
  struct sigaction action{};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  SPILLWAY_CHECK(::sigaction(SIGPIPE, &action, nullptr) == 0);
}

/// Errors, and while `warns` returns true warnings, as sentences on standard error.
telemetry::Log sentence_log(std::function<bool()> warns) {
  return telemetry::Log(
      [warns = std::move(warns)](telemetry::Level level, std::string_view event,
                                 std::span<const telemetry::Field> fields) {
        if (level < telemetry::Level::kError && !warns()) return;
        print_to_stderr(telemetry::render_sentence(level, event, fields) + "\n");
      },
      telemetry::Level::kWarning);
}

}  // namespace

void print_to_stderr(std::string_view text) {
  write_stderr(text);
}

void print_error(const Error& error) {
  print_to_stderr(fmt::format("spillway: {}\n", error.text()));
}

Process::Process(const cli::LogArgs& log, LogReader reader)
    : log_(reader == LogReader::kPerson
               ? sentence_log([setting_up = setting_up_] { return setting_up->load(); })
               : telemetry::make_stderr_log(log.level, log.format, [failed = failed_] { return failed->load(); })),
      operator_log_(reader == LogReader::kPerson ? sentence_log([] { return true; }) : log_),
      turns_(metrics_, log_, "main") {
  survive_broken_pipes();
  mallopt(M_MMAP_THRESHOLD, kMappedBytesMin);
  loop_.on_turn([this](const runtime::Loop::Turn& turn) { turns_.record(turn, loop_.now().mono); });
}

Process::~Process() {
  ending_.clear();
  while (!parts_.empty()) parts_.pop_back();
}

Outcome Process::trace(const cli::TraceArgs& args, std::string service) {
  if (args.collector.empty()) return {};
  SPILLWAY_TRY(collector, wire::SpanExporter::parse_collector(args.collector));
  tracer_ = std::make_unique<telemetry::Tracer>(runtime::entropy(), args.requests_ppm, metrics_);
  add(std::make_unique<TracePart>(loop_, *tracer_,
                                  telemetry::TracedService{std::move(service), std::string(program_version())},
                                  std::move(collector), log_));
  return {};
}

void Process::end(const Part& part) {
  const auto found = std::ranges::find(parts_, &part, [](const auto& each) { return each.get(); });
  if (found == parts_.end() || stopping_) return;
  Part* ending = found->get();
  ending_.push_back(std::move(*found));
  parts_.erase(found);
  ending->stop([this, ending] {
    loop_.post([this, ending] { std::erase_if(ending_, [ending](const auto& each) { return each.get() == ending; }); });
  });
}

void Process::fail(const Error& error) {
  if (!stopping_) {
    *failed_ = true;
    print_error(error);
  }
  stop(cli::kExitFailure);
}

void Process::stop(int exit_code) {
  if (stopping_) return;
  stopping_ = true;
  exit_code_ = exit_code;
  loop_.post([this] {
    for (const auto& part : parts_) part->prepare_stop();
    stop_next();
  });
}

void Process::stop_next() {
  if (parts_.empty()) {
    loop_.stop();
    return;
  }
  parts_.back()->stop([this] {
    loop_.post([this] {  // not inside a call of the part that is about to go
      parts_.pop_back();
      stop_next();
    });
  });
}

int Process::run() {
  loop_.run([this](int signal) {
    if (stopping_) _exit(cli::kExitSignalBase + signal);
    log_.info("stopping", {{"signal", signal}});
    if (on_interrupt_) on_interrupt_();
    stop(cli::kExitOk);
  });
  turns_.log_longest();
  return exit_code_;
}

}  // namespace spillway::apps
