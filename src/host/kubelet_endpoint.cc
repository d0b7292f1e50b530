#include "host/kubelet_endpoint.h"

#include "agent/serving/running_pods.h"
#include "agent/serving/summary_page.h"
#include "api/exchange/strict_target.h"
#include "api/json/json.h"
#include "api/text/time_text.h"
#include "base/check.h"
#include "base/file.h"
#include "base/number.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

namespace spillway::host {
namespace {

api::Response text_answer(int status, std::string body) {
  return {.status = status,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"}, {"X-Content-Type-Options", "nosniff"}},
          .body = std::move(body)};
}

api::Response error_answer(const Error& error) {
  const int status = error.code == ErrorCode::kNotFound ? 404 : error.code == ErrorCode::kInternalError ? 500 : 400;
  return text_answer(status, error.text() + "\n");
}

bool has_container(const api::PodSpec& spec, const std::string& name) {
  const auto among = [&name](const std::vector<api::Container>& containers) {
    return std::ranges::find(containers, name, &api::Container::name) != containers.end();
  };
  return among(spec.containers) || among(spec.init_containers) || among(spec.ephemeral_containers);
}

/// The last `timeout` in seconds, 0 without one; nullopt: no whole number.
std::optional<std::int64_t> timeout_of(const api::Target& target) {
  const std::string* given = nullptr;
  for (const auto& [name, text] : target.query)
    if (name == "timeout") given = &text;
  if (given == nullptr) return 0;
  std::string_view digits = *given;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  return parse_whole<std::int64_t>(digits);
}

/// A checkpoint holds what the processes of a container know: the folder is root's alone.
Outcome make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), S_IRWXU) == 0 || errno == EEXIST) return {};
  return errno_error(path, errno);
}

api::Response checkpoint_answer(const std::string& file) {
  api::Json files = api::Json::array();
  files.if_array()->emplace_back(file);
  return {.status = 200,
          .headers = {{"Content-Type", "application/json"}},
          .body = api::to_text(api::Json::object({{"items", std::move(files)}}))};
}

}  // namespace

KubeletEndpoint::KubeletEndpoint(runtime::Loop& loop, PodRuntime& runtime, Options options)
    : loop_(loop),
      runtime_(runtime),
      options_(std::move(options)),
      reading_(std::make_shared<std::set<RequestId>>()),
      logs_(loop),
      sessions_(loop, runtime, options_.stream_idle_max) {
  for (const auto& [path, page] : options_.pages) {
    SPILLWAY_CHECK(std::ranges::any_of(agent::node_routes(), [&path](const agent::NodeRoute& route) {
      return route.handler == agent::NodeHandler::kPage && route.path == path;
    }));
  }
}

bool KubeletEndpoint::serves(const agent::NodeRequest& asked) const {
  const agent::NodeRoute& route = asked.route();
  if (route.handler == agent::NodeHandler::kPage) return options_.pages.contains(std::string(route.path));
  if (route.handler == agent::NodeHandler::kCheckpoint) return options_.checkpoint_folder.has_value();
  return route.handler != agent::NodeHandler::kRecording || options_.recording != nullptr;
}

api::Response KubeletEndpoint::refusal(const Error& error) {
  return error_answer(error);
}

KubeletEndpoint::RequestId KubeletEndpoint::handle(const agent::NodeRequest& asked,
                                                   const std::shared_ptr<api::ResponseSink>& sink) {
  const RequestId id = ++last_id_;
  if (!serves(asked)) {
    sink->on_response(text_answer(404, "404 page not found\n"));
    return id;
  }
  if (!asked.is_served_method()) {
    sink->on_response(text_answer(405, "405: Method Not Allowed"));
    return id;
  }
  switch (asked.route().handler) {
    case agent::NodeHandler::kPage: {
      const Page& page = options_.pages.at(std::string(asked.route().path));
      sink->on_response({.status = 200, .headers = {{"Content-Type", page.content_type}}, .body = page.text()});
      break;
    }
    case agent::NodeHandler::kHealth:
      handle_health(asked.target(), *sink);
      break;
    case agent::NodeHandler::kLogs:
      handle_logs(id, asked.target(), sink);
      break;
    case agent::NodeHandler::kNodeLogs:
      handle_node_logs(id, asked, sink);
      break;
    case agent::NodeHandler::kRunningPods:
      handle_running_pods(*sink);
      break;
    case agent::NodeHandler::kSummary:
      handle_summary(asked.target(), *sink);
      break;
    case agent::NodeHandler::kRecording:
      handle_recording(id, api::path_of(asked.target()), sink);
      break;
    case agent::NodeHandler::kCheckpoint:
      handle_checkpoint(id, asked.target(), sink);
      break;
    case agent::NodeHandler::kExec:
      sessions_.exec(asked.request(), asked.target(), sink);
      break;
    case agent::NodeHandler::kAttach:
      sessions_.attach(asked.request(), asked.target(), sink);
      break;
    case agent::NodeHandler::kPortForward:
      sessions_.forward(asked.request(), asked.target(), sink);
      break;
  }
  return id;
}

void KubeletEndpoint::handle_running_pods(api::ResponseSink& sink) const {
  const std::vector<api::Pod> known = options_.known_pods ? options_.known_pods() : std::vector<api::Pod>();
  sink.on_response({.status = 200,
                    .headers = {{"Content-Type", "application/json"}},
                    .body = agent::running_pods_page(runtime_.running_pods(), known)});
}

void KubeletEndpoint::handle_summary(const api::Target& target, api::ResponseSink& sink) {
  sink.on_response(agent::summary_page(runtime_.observe_now(), target));
}

std::vector<HealthCheck> KubeletEndpoint::checks() const {
  std::vector<HealthCheck> all{{"ping", std::nullopt}, {"log", std::nullopt}};
  if (options_.health) std::ranges::move(options_.health(), std::back_inserter(all));
  return all;
}

/// /healthz of everything, /healthz/NAME of one check; `verbose` lists them, as does a failure.
void KubeletEndpoint::handle_health(const api::Target& target, api::ResponseSink& sink) const {
  std::vector<HealthCheck> asked = checks();
  const std::string* only = target.segments.size() == 2 ? &target.segments[1] : nullptr;
  if (only != nullptr) std::erase_if(asked, [only](const HealthCheck& check) { return check.name != *only; });
  if (asked.empty()) return sink.on_response(text_answer(404, "404 page not found\n"));
  std::string list;
  bool well = true;
  for (const HealthCheck& check : asked) {
    list += check.problem ? "[-]" + check.name + " failed: " + *check.problem + "\n" : "[+]" + check.name + " ok\n";
    well = well && !check.problem;
  }
  if (!well) return sink.on_response(text_answer(500, list + "healthz check failed\n"));
  const bool verbose = only == nullptr && target.find("verbose") != nullptr;
  sink.on_response(text_answer(200, verbose ? list + "healthz check passed\n" : "ok"));
}

void KubeletEndpoint::handle_logs(RequestId id, const api::Target& target,
                                  const std::shared_ptr<api::ResponseSink>& sink) {
  const Result<LogQuery> query = parse_log_query(target, loop_.now().wall);
  if (!query) return sink->on_response(error_answer(query.error()));
  const api::PodKey pod{target.segments[1], target.segments[2]};
  const std::string& container = target.segments[3];
  const auto attempt = options_.choose_log(
      pod, container, query->previous ? agent::LogInstance::kPrevious : agent::LogInstance::kCurrent);
  if (!attempt) return sink->on_response(error_answer(attempt.error()));
  const Result<std::string> path = runtime_.find_log(pod, container, *attempt);
  if (!path) return sink->on_response(error_answer(path.error()));
  streams_[id] = logs_.open(*path, *query, [this, path = *path] { return runtime_.is_log_live(path); }, sink);
  std::erase_if(streams_, [this](const auto& entry) { return !logs_.is_open(entry.second); });
}

void KubeletEndpoint::handle_node_logs(RequestId id, const agent::NodeRequest& asked,
                                       const std::shared_ptr<api::ResponseSink>& sink) {
  if (!options_.node_logs) return sink->on_response(text_answer(405, "logs endpoint is disabled.\n"));
  if (!node_logs_) node_logs_.emplace(loop_, *options_.node_logs);
  node_logs_->get(id, asked, sink);
}

/// Answers with the path of the file that the runtime has written. Texts and codes are upstream's.
void KubeletEndpoint::handle_checkpoint(RequestId id, const api::Target& target,
                                        const std::shared_ptr<api::ResponseSink>& sink) {
  const std::vector<api::Pod> known = options_.known_pods ? options_.known_pods() : std::vector<api::Pod>();
  const api::PodKey key{target.segments[1], target.segments[2]};
  const std::string& container = target.segments[3];
  const auto pod = std::ranges::find(known, key, &api::Pod::key);
  if (pod == known.end()) return sink->on_response(text_answer(404, "pod does not exist"));
  if (!has_container(pod->spec, container))
    return sink->on_response(text_answer(404, fmt::format("container {} does not exist", container)));
  const auto timeout = timeout_of(target);
  if (!timeout) return sink->on_response(text_answer(404, "cannot parse value of timeout parameter"));
  const std::string name =
      fmt::format("checkpoint-{}_{}-{}-{}.tar", key.name, key.ns, container, api::format_time(loop_.now().wall));
  const std::string failed = fmt::format("checkpointing of {}/{}/{} failed", key.ns, key.name, container);
  const std::string& folder = *options_.checkpoint_folder;
  const Outcome made = is_plain_name(name) ? make_private_folder(folder) : invalid(name, "too long for a file");
  if (!made) return sink->on_response(text_answer(500, fmt::format("{} ({})", failed, made.error().text())));
  const std::string file = fmt::format("{}/{}", folder, name);
  reading_->insert(id);
  runtime_.checkpoint(
      {.uid = pod->metadata.uid, .container = container, .file = file, .timeout_seconds = *timeout},
      [reading = reading_, id, sink, file, failed](const Outcome& taken) {
        if (reading->erase(id) == 0) return;
        sink->on_response(taken ? checkpoint_answer(file)
                                : text_answer(500, fmt::format("{} ({})", failed, taken.error().message)));
      });
}

void KubeletEndpoint::handle_recording(RequestId id, const std::string& path,
                                       const std::shared_ptr<api::ResponseSink>& sink) {
  reading_->insert(id);
  options_.recording->get(path, [reading = reading_, id, sink](api::Response response) {
    if (reading->erase(id) > 0) sink->on_response(std::move(response));
  });
}

bool KubeletEndpoint::is_streaming(RequestId id) const {
  if (reading_->contains(id) || (node_logs_ && node_logs_->is_open(id))) return true;
  const auto stream = streams_.find(id);
  return stream != streams_.end() && logs_.is_open(stream->second);
}

void KubeletEndpoint::abandon(RequestId id) {
  reading_->erase(id);
  if (node_logs_) node_logs_->close(id);
  const auto stream = streams_.find(id);
  if (stream == streams_.end()) return;
  logs_.close(stream->second);
  streams_.erase(stream);
}

}  // namespace spillway::host
