#include "host/node_logs.h"

#include "api/exchange/paced_sink.h"
#include "host/network/plugin_call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

constexpr std::size_t kLogBytesMax = std::size_t{16} << 20;
constexpr Duration kJournalMax = seconds(30);
constexpr std::string_view kTooMany = "too many queries for logs wait, try again later\n";

api::Response log_answer(int status, std::string text) {
  return {.status = status,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"}, {"X-Content-Type-Options", "nosniff"}},
          .body = std::move(text)};
}

/// The errors as "[first, second]", a single one as it is; ends in a line feed.
std::string joined(const std::vector<std::string>& errors) {
  return errors.size() == 1 ? errors.front() + "\n" : fmt::format("[{}]\n", fmt::join(errors, ", "));
}

/// The end of a file that is named like a unit.
Result<std::string> read_end(const std::string& folder, const std::string& file) {
  SPILLWAY_TRY(opened, open_node_log(folder, file));
  if (opened.is_folder) return make_error(ErrorCode::kNotFound, "stat {}/{}: not a regular file", folder, file);
  return read_node_log(opened, opened.size > kLogBytesMax ? opened.size - kLogBytesMax : 0, kLogBytesMax);
}

std::optional<std::string> missing_in(const std::string& folder, const std::string& file) {
  const auto opened = open_node_log(folder, file);
  if (!opened) return opened.error().message;
  if (!opened->is_folder) return std::nullopt;
  return fmt::format("stat {}{}: not a regular file", folder,
                     std::filesystem::path("/" + file).lexically_normal().string());
}

Result<std::string> run_journal(std::vector<std::string> words) {
  PluginCall call{.program = "/usr/bin/journalctl", .time_max = kJournalMax, .output_max = kLogBytesMax};
  call.arguments.assign(std::make_move_iterator(words.begin() + 1), std::make_move_iterator(words.end()));
  SPILLWAY_TRY(answer, call_plugin(call));
  if (answer.code == 0 || answer.errors.empty()) return std::move(answer.output);
  return make_error(ErrorCode::kInternalError, "journalctl: exit code {}: {}", answer.code, answer.errors);
}

/// Reads from the journal, or from a file that is named like the service.
Result<std::string> read_service(const std::string& folder, const agent::NodeLogQuery& query,
                                 const std::string& service) {
  const auto units = run_journal({"journalctl", "--field", "_SYSTEMD_UNIT"});
  if (units && ("\n" + *units).contains("\n" + service + (service.contains('.') ? "\n" : ".service\n")))
    return run_journal(agent::journal_command(query, service));
  for (const std::string& file : {service, service + ".log", fmt::format("{}/{}.log", service, service)}) {
    if (!missing_in(folder, file)) return read_end(folder, file);
  }
  return make_error(ErrorCode::kNotFound, "log not found for {}: neither a unit of the journal nor a file below {}",
                    service, folder);
}

api::Response read_services(const std::string& folder, const agent::NodeLogQuery& query) {
  std::string text;
  for (const std::string& each : query.services) {
    const Result<std::string> read = read_service(folder, query, each);
    text += read ? *read : read.error().message + "\n";
  }
  return log_answer(200, std::move(text));
}

/// The path below /logs; empty: the folder itself.
std::string path_below(const api::Target& target) {
  return fmt::format("{}", fmt::join(target.segments.begin() + 1, target.segments.end(), "/"));
}

/// The start of the links of a list: relative to the path as the client spelt it.
std::string link_prefix(const agent::NodeRequest& asked) {
  const std::string_view target = asked.request().target;
  const bool has_slash = target.substr(0, target.find_first_of("?#")).ends_with('/');
  return has_slash ? std::string() : api::percent_encode(asked.target().segments.back()) + "/";
}

api::Response list_of(const NodeLogFile& folder, const std::string& prefix) {
  Result<std::string> page = list_node_logs(folder, prefix);
  if (!page) return log_answer(500, page.error().message + "\n");
  api::Response made = log_answer(200, *std::move(page));
  made.headers = {{"Content-Type", "text/html; charset=utf-8"},
                  {"X-Content-Type-Options", "nosniff"},
                  {"Content-Security-Policy", "default-src 'none'"}};
  return made;
}

}  // namespace

std::optional<std::string> missing_node_log(const std::string& file) {
  return missing_in(std::string(agent::kNodeLogFolder), file);
}

NodeLogs::NodeLogs(runtime::Loop& loop, Serves serves, std::string folder)
    : folder_(std::move(folder)), serves_(serves), queries_(loop, kRequestsMax), files_(loop, kRequestsMax) {}

void NodeLogs::get(RequestId id, const agent::NodeRequest& asked, const std::shared_ptr<api::ResponseSink>& sink) {
  agent::ParsedNodeLogQuery parsed;
  if (serves_ == Serves::kFilesAndQueries) parsed = agent::parse_node_log_query(asked.target());
  if (!parsed.errors.empty()) return sink->on_response(log_answer(400, joined(parsed.errors)));
  const std::string below = path_below(asked.target());
  if (parsed.query && !below.empty()) return sink->on_response(log_answer(406, "path not allowed in query mode\n"));
  if (readings_.size() >= kRequestsMax) return sink->on_response(log_answer(503, std::string(kTooMany)));
  readings_[id].sink = sink;
  parsed.query ? query(id, *std::move(parsed.query)) : open(id, below, link_prefix(asked));
}

void NodeLogs::query(RequestId id, agent::NodeLogQuery query) {
  const bool queued = queries_.submit([this, id, folder = folder_, query = std::move(query)]() -> runtime::Loop::Task {
    const std::vector<std::string> errors =
        agent::node_log_query_errors(query, [&folder](const std::string& file) { return missing_in(folder, file); });
    if (errors.empty() && query.files.size() == 1)
      return [this, id, file = query.files.front()] { open(id, file, {}); };
    api::Response made = errors.empty() ? read_services(folder, query) : log_answer(406, joined(errors));
    return [this, id, made = std::move(made)]() mutable { answer(id, std::move(made)); };
  });
  if (!queued) answer(id, log_answer(503, std::string(kTooMany)));
}

void NodeLogs::open(RequestId id, const std::string& below, const std::string& prefix) {
  const bool queued = files_.submit([this, id, folder = folder_, below, prefix]() -> runtime::Loop::Task {
    Result<NodeLogFile> file = open_node_log(folder, below);
    Found found = log_answer(404, "404 page not found\n");
    if (file && file->is_folder) found = list_of(*file, prefix);
    if (file && !file->is_folder) found = *std::move(file);
    return [this, id, found = std::move(found)]() mutable { on_found(id, std::move(found)); };
  });
  if (!queued) answer(id, log_answer(503, std::string(kTooMany)));
}

void NodeLogs::on_found(RequestId id, Found found) {
  const auto reading = readings_.find(id);
  if (reading == readings_.end()) return;
  if (auto* response = std::get_if<api::Response>(&found)) return answer(id, std::move(*response));
  reading->second.file = std::make_shared<const NodeLogFile>(std::get<NodeLogFile>(std::move(found)));
  const std::shared_ptr<api::ResponseSink> sink = reading->second.sink;
  sink->on_stream(log_answer(200, {}));
  read_on(id);
}

/// Reads the next slice of what the file had when it was opened; ends the answer after the last one.
void NodeLogs::read_on(RequestId id) {
  const auto reading = readings_.find(id);
  if (reading == readings_.end()) return;
  const std::uint64_t at = reading->second.at;
  const std::uint64_t left = reading->second.file->size - at;
  if (left == 0) return end(id);
  const std::size_t bytes_max = std::min<std::uint64_t>(left, kSliceBytes);
  const bool queued = files_.submit([this, id, file = reading->second.file, at, bytes_max]() -> runtime::Loop::Task {
    Result<std::string> slice = read_node_log(*file, at, bytes_max);
    return [this, id, slice = std::move(slice)]() mutable { on_slice(id, std::move(slice)); };
  });
  if (!queued) end(id);
}

void NodeLogs::on_slice(RequestId id, Result<std::string> slice) {
  const auto reading = readings_.find(id);
  if (reading == readings_.end()) return;
  if (!slice || slice->empty()) return end(id);  // the file cannot be read any more, or was cut
  reading->second.at += slice->size();
  const std::shared_ptr<api::ResponseSink> sink = reading->second.sink;
  if (!sink->write(std::make_shared<const std::string>(*std::move(slice)))) return end(id);
  api::PacedSink* paced = api::paced(*sink);
  if (paced == nullptr) return read_on(id);
  paced->when_below(kSliceBytes / 2, alive_.guard([this, id] { read_on(id); }));
}

void NodeLogs::end(RequestId id) {
  const auto reading = readings_.find(id);
  if (reading == readings_.end()) return;
  const std::shared_ptr<api::ResponseSink> sink = std::move(reading->second.sink);
  const bool whole = reading->second.at == reading->second.file->size;
  readings_.erase(reading);
  api::PacedSink* paced = api::paced(*sink);
  whole || paced == nullptr ? sink->on_end() : paced->on_cut();
}

void NodeLogs::answer(RequestId id, api::Response response) {
  const auto reading = readings_.find(id);
  if (reading == readings_.end()) return;
  const std::shared_ptr<api::ResponseSink> sink = std::move(reading->second.sink);
  readings_.erase(reading);
  sink->on_response(std::move(response));
}

}  // namespace spillway::host
