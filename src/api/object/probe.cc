#include "api/object/probe.h"

namespace spillway::api {
namespace {

std::string text_at(const Json& document, std::string_view member) {
  return std::string(document.string_at({member}));
}

/// 80 or "http".
std::string port_at(const Json& document) {
  const Json* port = document.find("port");
  if (port == nullptr) return {};
  if (const auto number = port->if_int64()) return std::to_string(*number);
  return std::string(port->string_at({}));
}

void read_number(const Json& document, std::string_view member, std::int64_t& value) {
  const Json* found = document.find(member);
  if (found == nullptr) return;
  if (const auto number = found->if_int64()) value = *number;
}

HttpGetAction http_get_of(const Json& document) {
  HttpGetAction action{.host = text_at(document, "host"),
                       .port = port_at(document),
                       .path = text_at(document, "path"),
                       .scheme = text_at(document, "scheme"),
                       .headers = {}};
  const Json* headers = document.find("httpHeaders");
  if (headers == nullptr || headers->if_array() == nullptr) return action;
  for (const Json& each : *headers->if_array()) {
    action.headers.emplace_back(each.string_at({"name"}), each.string_at({"value"}));
  }
  return action;
}

Handler handler_of(const Json& document) {
  Handler handler;
  if (const Json* exec = document.find("exec"); exec != nullptr && !exec->is_null()) {
    handler.exec.emplace();
    const Json* command = exec->find("command");
    if (command != nullptr && command->if_array() != nullptr) {
      for (const Json& word : *command->if_array()) handler.exec->emplace_back(word.string_at({}));
    }
  }
  if (const Json* http = document.find("httpGet"); http != nullptr && !http->is_null()) {
    handler.http_get = http_get_of(*http);
  }
  if (const Json* tcp = document.find("tcpSocket"); tcp != nullptr && !tcp->is_null()) {
    handler.tcp_socket = TcpSocketAction{text_at(*tcp, "host"), port_at(*tcp)};
  }
  if (const Json* grpc = document.find("grpc"); grpc != nullptr && !grpc->is_null()) {
    GrpcAction& action = handler.grpc.emplace();
    read_number(*grpc, "port", action.port);
    action.service = text_at(*grpc, "service");
  }
  if (const Json* sleep = document.find("sleep"); sleep != nullptr && !sleep->is_null()) {
    read_number(*sleep, "seconds", handler.sleep_seconds.emplace(0));
  }
  return handler;
}

}  // namespace

std::optional<Probe> probe_of(const Json& document) {
  if (document.is_null()) return std::nullopt;
  Probe probe;
  probe.handler = handler_of(document);
  read_number(document, "initialDelaySeconds", probe.initial_delay_seconds);
  read_number(document, "periodSeconds", probe.period_seconds);
  read_number(document, "timeoutSeconds", probe.timeout_seconds);
  read_number(document, "successThreshold", probe.success_threshold);
  read_number(document, "failureThreshold", probe.failure_threshold);
  if (const Json* grace = document.find("terminationGracePeriodSeconds")) {
    probe.termination_grace_period_seconds = grace->if_int64();
  }
  return probe;
}

std::optional<Handler> hook_of(const Container& container, std::string_view hook) {
  const Json* found = container.lifecycle.find(hook);
  if (found == nullptr || found->is_null()) return std::nullopt;
  return handler_of(*found);
}

std::vector<std::string> readiness_gates_of(const Pod& pod) {
  std::vector<std::string> types;
  const Json::Array* gates = pod.spec.readiness_gates.if_array();
  if (gates == nullptr) return types;
  for (const Json& gate : *gates) types.emplace_back(gate.string_at({"conditionType"}));
  return types;
}

}  // namespace spillway::api
