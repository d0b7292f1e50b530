#include "apps/store/store_report.h"

#include "api/json/json.h"
#include "apps/commands/answer.h"
#include "apps/process/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>

namespace spillway::apps {
namespace {

using api::Json;
using cli::OutputFormat;

Json number(std::uint64_t value) {
  return Json(static_cast<std::int64_t>(value));
}

Json lines_of(const store::sqlite::Findings& findings) {
  Json lines = Json::array();
  for (const std::string& line : findings.lines()) lines.if_array()->push_back(line);
  return lines;
}

/// Prints the first notes: findings that are no problems.
void print_notes(const std::string& file, const store::sqlite::Findings& notes) {
  constexpr std::size_t kNotesMax = 20;
  for (std::size_t i = 0; i < std::min(notes.lines().size(), kNotesMax); ++i) {
    print_out("{}: note: {}\n", file, notes.lines()[i]);
  }
  if (notes.count() > kNotesMax) print_out("{}: {} more notes\n", file, notes.count() - kNotesMax);
}

}  // namespace

std::string size_text(Bytes bytes) {
  constexpr std::array<std::string_view, 4> kUnits{"Ki", "Mi", "Gi", "Ti"};
  if (bytes < kibibytes(1)) return fmt::format("{} B", bytes.count());
  double amount = static_cast<double>(bytes.count()) / 1024;
  std::size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < kUnits.size(); ++unit) amount /= 1024;
  return fmt::format("{:.1f}{}", amount, kUnits[unit]);
}

void print(OutputFormat format, const std::string& file, const store::sqlite::BackupReport& report, Duration took) {
  if (cli::is_document(format)) {
    return print_answer(Json::object({{"file", file},
                                      {"revision", number(report.revision.number())},
                                      {"objects", number(report.objects)},
                                      {"bytes", Json(report.bytes.count())},
                                      {"seconds", Json(in_seconds(took))}}),
                        format);
  }
  print_out("{}: revision {}, {} objects, {}, {:.2f} s\n", file, report.revision.number(), report.objects,
            size_text(report.bytes), in_seconds(took));
}

void print(OutputFormat format, const std::string& file, const store::sqlite::RestoreReport& report, Duration took) {
  if (cli::is_document(format)) {
    return print_answer(Json::object({{"file", file},
                                      {"revision", number(report.revision.number())},
                                      {"nextRevision", number(report.continues_at.number() + 1)},
                                      {"objects", number(report.objects)},
                                      {"bytes", Json(report.bytes.count())},
                                      {"kept", report.kept},
                                      {"seconds", Json(in_seconds(took))}}),
                        format);
  }
  print_out("{}: as of revision {}, {} objects, {}, {:.2f} s; the next write is revision {}\n", file,
            report.revision.number(), report.objects, size_text(report.bytes), in_seconds(took),
            report.continues_at.number() + 1);
  if (!report.kept.empty()) print_out("{}: the store that was there\n", report.kept);
}

std::string problem_lines(const std::string& file, const store::sqlite::Findings& findings) {
  std::string text;
  for (const std::string& line : findings.lines()) text += fmt::format("{}: {}\n", file, line);
  const std::uint64_t more = findings.count() - findings.lines().size();
  if (more != 0) text += fmt::format("{}: {} more problems\n", file, more);
  return text;
}

void print(OutputFormat format, const std::string& file, const store::sqlite::CheckReport& report) {
  std::uint64_t objects = 0;
  for (const auto& [resource, count] : report.objects) objects += count;
  const std::uint64_t problems = report.findings.count();
  if (cli::is_document(format)) {
    Json counts = Json::object();
    for (const auto& [resource, count] : report.objects) counts[resource] = number(count);
    Json lines = lines_of(report.findings);
    Json document = Json::object({{"file", file},
                                  {"revision", number(report.revision.number())},
                                  {"compacted", number(report.compacted.number())},
                                  {"history", number(report.history)},
                                  {"objects", number(objects)},
                                  {"resources", std::move(counts)},
                                  {"problemCount", number(problems)},
                                  {"problems", std::move(lines)},
                                  {"noteCount", number(report.notes.count())},
                                  {"notes", lines_of(report.notes)}});
    if (report.backup_of) document["backupOf"] = number(report.backup_of->number());
    return print_answer(document, format);
  }
  std::size_t width = 0;
  for (const auto& [resource, count] : report.objects) width = std::max(width, resource.size());
  for (const auto& [resource, count] : report.objects) print_out("{:<{}}  {}\n", resource, width, count);
  print_notes(file, report.notes);
  print_out("{}", problem_lines(file, report.findings));
  const std::string what =
      report.backup_of ? fmt::format("a backup as of revision {}", report.backup_of->number())
                       : fmt::format("revision {}, {} changes of history", report.revision.number(), report.history);
  print_out("{}: {}, {} objects: {}\n", file, what, objects,
            problems == 0 ? "sound" : fmt::format("{} problems", problems));
}

void print(OutputFormat format, const std::string& file, const store::sqlite::DefragReport& report, Duration took) {
  if (cli::is_document(format)) {
    return print_answer(Json::object({{"file", file},
                                      {"bytesBefore", Json(report.before.count())},
                                      {"bytesAfter", Json(report.after.count())},
                                      {"seconds", Json(in_seconds(took))}}),
                        format);
  }
  print_out("{}: {} before, {} after, {:.2f} s\n", file, size_text(report.before), size_text(report.after),
            in_seconds(took));
}

void print(OutputFormat format, const std::string& target, const CopyReport& report, Duration took) {
  if (cli::is_document(format)) {
    return print_answer(Json::object({{"target", target},
                                      {"objects", number(report.objects)},
                                      {"bytes", number(report.bytes)},
                                      {"hash", report.hash},
                                      {"sourceRevision", number(report.from.number())},
                                      {"revision", number(report.continues_at.number())},
                                      {"kept", report.kept},
                                      {"seconds", Json(in_seconds(took))}}),
                        format);
  }
  print_out("{}: {} objects, {}, hash {}, as of revision {}, {:.2f} s; it continues from revision {}\n", target,
            report.objects, size_text(Bytes{static_cast<std::int64_t>(report.bytes)}), report.hash,
            report.from.number(), in_seconds(took), report.continues_at.number());
  if (!report.kept.empty()) print_out("{}: the store that was there\n", report.kept);
}

}  // namespace spillway::apps
