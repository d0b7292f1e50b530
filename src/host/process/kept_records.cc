#include "host/process/kept_records.h"

#include "api/json/json.h"
#include "base/file.h"
#include "base/unique_fd.h"
#include "host/kernel/kernel_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

using api::Json;
using Pairs = std::vector<std::pair<std::string, std::string>>;

constexpr mode_t kRecordMode = 0600;

std::int64_t number(const Json& document, std::string_view member, std::int64_t fallback = 0) {
  const Json* found = document.find(member);
  return found == nullptr ? fallback : found->if_int64().value_or(fallback);
}

std::optional<std::int64_t> if_number(const Json& document, std::string_view member) {
  const Json* found = document.find(member);
  return found == nullptr ? std::nullopt : found->if_int64();
}

bool is_set(const Json& document, std::string_view member) {
  const Json* found = document.find(member);
  return found != nullptr && found->if_bool().value_or(false);
}

template <typename Number>
Number small(const Json& document, std::string_view member) {
  const std::int64_t value = number(document, member);
  return static_cast<Number>(
      std::clamp<std::int64_t>(value, std::numeric_limits<Number>::min(), std::numeric_limits<Number>::max()));
}

const Json::Array& list(const Json& document, std::string_view member) {
  static const Json::Array kNone;
  const Json* found = document.find(member);
  return found == nullptr || found->if_array() == nullptr ? kNone : *found->if_array();
}

Json pairs_json(const Pairs& pairs) {
  Json made = Json::array();
  for (const auto& [name, value] : pairs) made.if_array()->push_back(Json::array({Json(name), Json(value)}));
  return made;
}

Pairs pairs_in(const Json& document, std::string_view member) {
  Pairs made;
  for (const Json& each : list(document, member)) {
    const Json::Array* pair = each.if_array();
    if (pair != nullptr && pair->size() == 2) made.emplace_back((*pair)[0].string_at({}), (*pair)[1].string_at({}));
  }
  return made;
}

std::int64_t micros(WallTime at) {
  return at.time_since_epoch().count();
}

WallTime time_of(const Json& document, std::string_view member) {
  return WallTime(microseconds(number(document, member)));
}

Result<Json> parse_object(std::string_view text) {
  SPILLWAY_TRY(document, api::parse_json(text));
  if (!document.is_object()) return invalid("record", "no object");
  return document;
}

Json security_json(const agent::ContainerSecurity& security) {
  Json groups = Json::array();
  for (const std::uint32_t group : security.groups) groups.if_array()->emplace_back(std::int64_t{group});
  return Json::object({{"uid", std::int64_t{security.uid}},
                       {"gid", std::int64_t{security.gid}},
                       {"groups", std::move(groups)},
                       {"capabilities", static_cast<std::int64_t>(security.capabilities)},
                       {"readOnlyRoot", security.read_only_root},
                       {"filtersCalls", security.filters_calls}});
}

agent::ContainerSecurity security_in(const Json& document) {
  agent::ContainerSecurity made;
  const Json* found = document.find("security");
  if (found == nullptr) return made;
  made.uid = small<std::uint32_t>(*found, "uid");
  made.gid = small<std::uint32_t>(*found, "gid");
  for (const Json& each : list(*found, "groups"))
    made.groups.push_back(static_cast<std::uint32_t>(each.if_int64().value_or(0)));
  made.capabilities = static_cast<std::uint64_t>(number(*found, "capabilities"));
  made.read_only_root = is_set(*found, "readOnlyRoot");
  made.filters_calls = is_set(*found, "filtersCalls");
  return made;
}

Json isolation_json(const agent::PodIsolation& isolation) {
  return Json::object({{"ipc", isolation.ipc},
                       {"network", isolation.network},
                       {"sysctls", pairs_json(isolation.sysctls)},
                       {"confined", isolation.confined},
                       {"hostPids", isolation.host_pids},
                       {"hostname", isolation.hostname}});
}

agent::PodIsolation isolation_in(const Json& document) {
  agent::PodIsolation made;
  const Json* found = document.find("isolation");
  if (found == nullptr) return made;
  made.ipc = is_set(*found, "ipc");
  made.network = is_set(*found, "network");
  made.sysctls = pairs_in(*found, "sysctls");
  made.confined = is_set(*found, "confined");
  made.host_pids = is_set(*found, "hostPids");
  made.hostname = found->string_at({"hostname"});
  return made;
}

}  // namespace

std::string container_record(const agent::StartContainer& command) {
  const bool has_message = std::ranges::any_of(command.files, &agent::ManagedFile::is_message);
  const Json document = Json::object({{"uid", command.uid},
                                      {"name", command.name},
                                      {"attempt", std::int64_t{command.attempt}},
                                      {"image", command.image},
                                      {"environment", pairs_json(command.env)},
                                      {"workingDirectory", command.working_dir},
                                      {"oomScore", std::int64_t{command.oom_score_adj}},
                                      {"sharesCpus", command.cpuset.shares},
                                      {"security", security_json(command.security)},
                                      {"hasMessageFile", has_message},
                                      {"messageFromLogs", command.message_from_logs},
                                      {"standardInput", command.standard_input},
                                      {"inputEndsOnce", command.input_ends_once},
                                      {"terminal", command.terminal},
                                      {"target", command.target}});
  return to_text(document);
}

Result<agent::StartContainer> parse_container_record(std::string_view text) {
  SPILLWAY_TRY(document, parse_object(text));
  agent::StartContainer made;
  made.uid = document.string_at({"uid"});
  made.name = document.string_at({"name"});
  made.attempt = small<std::int32_t>(document, "attempt");
  made.image = document.string_at({"image"});
  made.env = pairs_in(document, "environment");
  made.working_dir = document.string_at({"workingDirectory"});
  made.oom_score_adj = small<std::int32_t>(document, "oomScore");
  made.cpuset.shares = is_set(document, "sharesCpus");
  made.security = security_in(document);
  if (is_set(document, "hasMessageFile")) made.files.emplace_back().is_message = true;
  made.message_from_logs = is_set(document, "messageFromLogs");
  made.standard_input = is_set(document, "standardInput");
  made.input_ends_once = is_set(document, "inputEndsOnce");
  made.terminal = is_set(document, "terminal");
  made.target = document.string_at({"target"});
  if (made.uid.empty() || made.name.empty()) return invalid("record of a container", "no uid or name");
  return made;
}

std::string pod_record(const KeptPod& pod) {
  const agent::CreatePod& command = pod.command;
  Json document = Json::object({{"uid", command.uid},
                                {"namespace", command.pod.ns},
                                {"name", command.pod.name},
                                {"qos", to_string(command.qos)},
                                {"cpuRequest", command.cpu_request_milli},
                                {"hostNetwork", command.host_network},
                                {"isolation", isolation_json(command.isolation)},
                                {"created", micros(pod.created)}});
  if (command.memory_limit) document["memoryLimit"] = command.memory_limit->count();
  if (command.cpu_limit_milli) document["cpuLimit"] = *command.cpu_limit_milli;
  if (command.pids_max) document["pidsMax"] = *command.pids_max;
  if (pod.first_id) document["firstId"] = std::int64_t{*pod.first_id};
  if (!pod.capabilities.is_null()) document["network"] = pod.capabilities;
  return to_text(document);
}

Result<KeptPod> parse_pod_record(std::string_view text) {
  SPILLWAY_TRY(document, parse_object(text));
  KeptPod made;
  agent::CreatePod& command = made.command;
  command.uid = document.string_at({"uid"});
  command.pod = {std::string(document.string_at({"namespace"})), std::string(document.string_at({"name"}))};
  command.qos = api::parse_qos(document.string_at({"qos"})).value_or(api::QosClass::kBestEffort);
  command.cpu_request_milli = number(document, "cpuRequest");
  command.host_network = is_set(document, "hostNetwork");
  command.isolation = isolation_in(document);
  made.created = time_of(document, "created");
  if (const auto limit = if_number(document, "memoryLimit")) command.memory_limit = Bytes{*limit};
  command.cpu_limit_milli = if_number(document, "cpuLimit");
  command.pids_max = if_number(document, "pidsMax");
  if (document.find("firstId") != nullptr) made.first_id = small<std::uint32_t>(document, "firstId");
  if (const Json* network = document.find("network")) made.capabilities = *network;
  if (command.uid.empty() || command.pod.name.empty()) return invalid("record of a pod", "no uid or name");
  return made;
}

std::string ends_text(const KeptEnds& ends) {
  std::string text;
  for (const auto& [name, found] : ends) {
    if (!found.ended) continue;
    const auto& ended = *found.ended;
    text += to_text(Json::object({{"name", name},
                                  {"attempt", std::int64_t{found.attempt}},
                                  {"image", found.image},
                                  {"exitCode", std::int64_t{ended.exit_code}},
                                  {"signal", std::int64_t{ended.signal}},
                                  {"reason", ended.reason},
                                  {"message", ended.message},
                                  {"started", micros(found.started_at)},
                                  {"finished", micros(ended.finished_at.value_or(found.started_at))}}));
    text += '\n';
  }
  return text;
}

KeptEnds parse_ends(std::string_view text) {
  KeptEnds made;
  while (!text.empty()) {
    const auto document = parse_object(take_line(text));
    if (!document || document->string_at({"name"}).empty()) continue;
    agent::FoundContainer found;
    found.name = document->string_at({"name"});
    found.attempt = small<std::int32_t>(*document, "attempt");
    found.image = document->string_at({"image"});
    found.started_at = time_of(*document, "started");
    auto& ended = found.ended.emplace();
    ended.exit_code = small<std::int32_t>(*document, "exitCode");
    ended.signal = small<std::int32_t>(*document, "signal");
    ended.reason = document->string_at({"reason"});
    ended.message = document->string_at({"message"});
    ended.started_at = found.started_at;
    ended.finished_at = time_of(*document, "finished");
    made.insert_or_assign(found.name, std::move(found));
  }
  return made;
}

Outcome write_record(const std::string& path, std::string_view text) {
  const std::string next = path + ".next";
  UniqueFd fd(::open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kRecordMode));
  if (!fd) return errno_error(next, errno);
  SPILLWAY_TRY_VOID(write_all(fd.get(), text, next));
  if (!fd.close() || ::rename(next.c_str(), path.c_str()) != 0) return errno_error(path, errno);
  return {};
}

}  // namespace spillway::host
