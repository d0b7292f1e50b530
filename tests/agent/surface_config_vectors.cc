// vectors/kubelet-surface: kubelet_config_defaults.
#include "agent/config/stock_load.h"
#include "support/vectors.h"
#include "yaml/yaml_document.h"

#include <string>
#include <utility>
#include <vector>

namespace spillway::agent {
namespace {

using api::Json;
using support::Mismatch;

constexpr std::string_view kFile = "/etc/kubernetes/kubelet.yaml";
constexpr std::string_view kDropIns = "/etc/kubernetes/kubelet.conf.d";

StockFile parsed(std::string path, const std::string& text) {
  StockFile file{.path = std::move(path), .text = text, .value = {}};
  auto documents = yaml::parse_documents(file.path, text, yaml::RepeatedKeys::kLastCounts);
  if (!documents || documents->empty()) return file;
  file.value = std::move(documents->front().value);
  for (const yaml::RepeatedKey& each : documents->front().repeated) file.repeated.emplace_back(each.line, each.key);
  return file;
}

StockSources sources_of(const Json& in) {
  StockSources sources{.file = {}, .drop_ins = {}, .drop_in_directory = std::string(kDropIns), .flags = {}};
  sources.version = {0, 0};  // the build that printed the rows had none
  if (const Json* file = in.find("file")) sources.file = parsed(std::string(kFile), *file->if_string());
  if (const Json* drop_ins = in.find("drop_ins")) {
    sources.drop_ins.emplace();
    for (const auto& [name, text] : *drop_ins->if_object())
      sources.drop_ins->push_back(parsed(fmt::format("{}/{}", kDropIns, name), *text.if_string()));
  }
  if (const Json* flags = in.find("flags")) {
    for (const Json& each : *flags->if_array()) sources.flags.push_back(*each.if_string());
  }
  return sources;
}

/// The members in which `config` differs from that of an empty file.
Json difference(const Json& config) {
  static const Json kEmpty =
      load_as_kubelet(sources_of(Json::object(
                          {{"file", "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"}})))
          .config;
  Json changed = Json::object();
  Json removed = Json::array();
  for (const auto& [key, value] : *config.if_object()) {
    const Json* before = kEmpty.find(key);
    if (before == nullptr || *before != value) changed[key] = Json(value);
  }
  for (const auto& [key, value] : *kEmpty.if_object()) {
    if (config.find(key) == nullptr) removed.if_array()->emplace_back(key);
  }
  return Json::object({{"changed", std::move(changed)}, {"removed", std::move(removed)}});
}

std::optional<Mismatch> config_defaults(const Json& row) {
  const StockLoad load = load_as_kubelet(sources_of(*row.find("in")));
  const Json& want = *row.find("want");
  Json got = Json::object();
  if (!load.failed_stage.empty()) {
    got["stage"] = load.failed_stage;
    Json errors = Json::array();
    for (const std::string& each : load.errors) errors.if_array()->emplace_back(each);
    got["errors"] = std::move(errors);
  } else if (want.find("config") != nullptr) {
    got["config"] = Json(load.config);
  } else {
    got = difference(load.config);
  }
  if (!load.strict_error.empty()) got["strict_error"] = load.strict_error;
  return support::compare(want, got);
}

const bool kConfigDefaults = support::add_vector_check("kubelet-surface/kubelet_config_defaults", config_defaults);

}  // namespace
}  // namespace spillway::agent
