#include "api/exchange/status.h"
#include "client/api_client.h"

namespace spillway::client {

std::string object_path(std::string_view api_version, std::string_view plural, std::string_view ns,
                        std::string_view name, std::string_view subresource) {
  std::string path = api_version.find('/') == std::string_view::npos ? "/api/" : "/apis/";
  path += api_version;
  if (!ns.empty()) {
    path += "/namespaces/";
    path += api::percent_encode(ns);
  }
  path += '/';
  path += plural;
  if (!name.empty()) {
    path += '/';
    path += api::percent_encode(name);
  }
  if (!subresource.empty()) {
    path += '/';
    path += subresource;
  }
  return path;
}

Error error_of_answer(int http_status, std::string_view body) {
  const auto document = api::parse_json(body);
  if (document) {
    if (const auto status = api::parse_status(*document)) return api::to_error(*status);
  }
  return make_error(api::error_code_of({}, http_status), "HTTP status {}: {}", http_status, body.substr(0, 200));
}

}  // namespace spillway::client
