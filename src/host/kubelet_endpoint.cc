#include "host/kubelet_endpoint.h"

#include "api/codec.h"

#include <utility>

namespace spillway::host {
namespace {

api::Response text_answer(int status, std::string body) {
  return {.status = status,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"}, {"X-Content-Type-Options", "nosniff"}},
          .body = std::move(body)};
}

api::Response json_answer(std::string body) {
  return {.status = 200, .headers = {{"Content-Type", "application/json"}}, .body = std::move(body)};
}

api::Response error_answer(const Error& error) {
  const int status = error.code == ErrorCode::kNotFound ? 404 : error.code == ErrorCode::kInternalError ? 500 : 400;
  return text_answer(status, error.text() + "\n");
}

}  // namespace

KubeletEndpoint::KubeletEndpoint(runtime::Loop& loop, ProcessRuntime& runtime, Options options)
    : loop_(loop), runtime_(runtime), options_(std::move(options)), logs_(loop) {}

KubeletEndpoint::RequestId KubeletEndpoint::handle(const api::Request& request,
                                                   const std::shared_ptr<api::ResponseSink>& sink) {
  const RequestId id = ++last_id_;
  const Result<api::Target> target = api::parse_target(request.target);
  if (!target) {
    sink->on_response(error_answer(target.error()));
    return id;
  }
  const std::vector<std::string>& path = target->segments;
  const std::string root = path.empty() ? std::string() : path[0];
  const bool is_stats = path.size() == 2 && root == "stats" && path[1] == "summary";
  const bool is_logs = path.size() == 4 && root == "containerLogs";
  const bool is_pods = path.size() == 1 && root == "pods" && options_.pods;
  const bool is_health = path.size() == 1 && root == "healthz";
  if (!is_stats && !is_logs && !is_pods && !is_health) {
    sink->on_response(text_answer(404, "404 page not found\n"));
  } else if (request.method != api::Method::kGet && !(is_stats && request.method == api::Method::kPost)) {
    sink->on_response(text_answer(405, "405: Method Not Allowed"));
  } else if (is_logs) {
    handle_logs(id, *target, sink);
  } else if (is_stats) {
    const Result<api::Summary> summary = runtime_.observe_now();
    sink->on_response(summary ? json_answer(api::to_text(api::encode(*summary)))
                              : text_answer(500, "Internal Error: " + summary.error().text()));
  } else if (is_pods) {
    sink->on_response(json_answer(options_.pods()));
  } else {
    sink->on_response(text_answer(200, "ok"));
  }
  return id;
}

void KubeletEndpoint::handle_logs(RequestId id, const api::Target& target,
                                  const std::shared_ptr<api::ResponseSink>& sink) {
  const Result<LogQuery> query = parse_log_query(target, loop_.now().wall);
  if (!query) return sink->on_response(error_answer(query.error()));
  const api::PodKey pod{target.segments[1], target.segments[2]};
  const std::string& container = target.segments[3];
  const Result<std::string> path = runtime_.find_log(pod, container, query->previous);
  if (!path) return sink->on_response(error_answer(path.error()));
  streams_[id] = logs_.open(*path, *query, [this, path = *path] { return runtime_.is_log_live(path); }, sink);
  std::erase_if(streams_, [this](const auto& entry) { return !logs_.is_open(entry.second); });
}

void KubeletEndpoint::abandon(RequestId id) {
  const auto stream = streams_.find(id);
  if (stream == streams_.end()) return;
  logs_.close(stream->second);
  streams_.erase(stream);
}

}  // namespace spillway::host
