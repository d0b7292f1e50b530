// vectors/pod-lifecycle: container_logs, restart_count. Outputs are printed in the order of their arrival, in one text:
// each of the two requested ones is a part of it, in order, and nothing else is.
#include "api/object/meta.h"
#include "api/text/time_text.h"
#include "host/logs/log_query.h"
#include "host/logs/log_source.h"
#include "host/logs/logged_attempts.h"
#include "support/vectors.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace spillway::host {
namespace {

using api::Json;
using support::Mismatch;

/// A file without a name, read through its descriptor.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view text) : fd_(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) {
    if (::write(fd_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
  }

  std::string path() const { return fmt::format("/proc/self/fd/{}", fd_.get()); }

 private:
  UniqueFd fd_;
};

std::string query_of(const Json& options) {
  std::string query;
  for (const auto& [name, value] : *options.if_object()) {
    std::string text = value.if_string() != nullptr ? *value.if_string() : api::to_text(value);
    query += fmt::format("{}{}={}", query.empty() ? "" : "&", name, api::percent_encode(text));
  }
  return query;
}

/// True if the text consists of the lines of `a` and those of `b`, each in their order, and nothing else.
bool is_woven(std::string_view text, std::string_view a, std::string_view b) {
  while (!text.empty()) {
    const auto take = [&](std::string_view& from) {
      if (from.empty()) return false;
      const std::string_view line = from.substr(0, std::min(from.size(), from.find('\n') + 1));
      const std::string_view piece = from.find('\n') == std::string_view::npos ? from : line;
      if (!text.starts_with(piece)) return false;
      text.remove_prefix(piece.size());
      from.remove_prefix(piece.size());
      return true;
    };
    if (!take(a) && !take(b)) return false;
  }
  return a.empty() && b.empty();
}

std::optional<Mismatch> container_logs(const Json& row) {
  const Json& in = *row.find("in");
  const Json& want = *row.find("want");
  const auto target = api::parse_target("/containerLogs/ns/p/c?" + query_of(*in.find("options")));
  const auto query = parse_log_query(*target, api::parse_time(in.string_at({"now"})).value());
  if (!query) return support::compare(want, Json::object({{"error", query.error().text()}}));
  const TemporaryFile file(in.string_at({"log"}));
  auto source = LogSource::open(file.path(), query->tail_lines).value();
  LogPrinter printer(*query);
  std::string text;
  for (std::string log = source.read(16).value(); !log.empty(); log = source.read(16).value()) printer.add(log, text);
  printer.finish(text);
  Json got = Json::object(
      {{"stdout", std::string(want.string_at({"stdout"}))}, {"stderr", std::string(want.string_at({"stderr"}))}});
  if (!is_woven(text, want.string_at({"stdout"}), want.string_at({"stderr"}))) got["text"] = text;
  if (printer.problem()) got["error"] = printer.problem()->message;
  return support::compare(want, got);
}

/// The restart count of a container without other instances. Names that end with a slash are folders.
std::optional<Mismatch> restart_count(const Json& row) {
  std::string pattern = "/tmp/spillway-logs-XXXXXX";
  const std::filesystem::path pod = ::mkdtemp(pattern.data());
  const std::filesystem::path folder = pod / "c";
  std::filesystem::create_directories(folder);
  for (const Json& each : *row.at({"in", "logDirectory"})->if_array()) {
    const std::string& name = *each.if_string();
    if (name.ends_with('/')) {
      std::filesystem::create_directories(folder / name);
    } else {
      std::ofstream(folder / name).put('x');
    }
  }
  const auto counted = attempts_after_logs(pod.string());
  std::filesystem::remove_all(pod);
  const auto found = counted.find("c");
  const std::int64_t next = found == counted.end() ? 0 : found->second;
  return support::compare(*row.find("want"), Json::object({{"restartCount", next}}));
}

const bool kRestartCount = support::add_vector_check("pod-lifecycle/restart_count", restart_count);
const bool kContainerLogs = support::add_vector_check("pod-lifecycle/container_logs", container_logs);

}  // namespace
}  // namespace spillway::host
