// vectors/kubelet-surface: systemd_names.
#include "api/codec/codec.h"
#include "policy/cgroups/cgroup_name.h"
#include "support/vectors.h"

namespace spillway::cgroups {
namespace {

using api::Json;
using support::Mismatch;

CgroupName name_in(const Json& in, std::string_view member) {
  CgroupName name;
  for (const Json& each : *in.find(member)->if_array()) name.emplace_back(each.string_at({}));
  return name;
}

Json name_document(const CgroupName& name) {
  return Json::object({{"name", Json::Array(name.begin(), name.end())}});
}

/// Upstream panics where this code returns an error.
Json panic(const Error& error) {
  return Json::object({{"panic", error.message}});
}

Json names(const CgroupName& name) {
  const auto path = systemd_path(name);
  const auto unit = slice_unit(name);
  return Json::object(
      {{"cgroupfs", cgroupfs_path(name)},
       {"systemd", path ? Json(*path) : panic(path.error())},
       {"unit", unit ? Json::object({{"name", unit->name}, {"parent", unit->parent}}) : panic(unit.error())}});
}

Json new_name(const Json& in) {
  const auto made = cgroup_below(name_in(in, "base"), name_in(in, "components"));
  return made ? name_document(*made) : panic(made.error());
}

CgroupDriver driver_in(const Json& in) {
  return parse_cgroup_driver(in.string_at({"driver"})).value();
}

Json allocatable_root(const Json& in) {
  const CgroupDriver driver = driver_in(in);
  const std::string_view root = in.string_at({"cgroup_root"});
  const bool has_classes = in.find("cgroups_per_qos")->if_bool().value();
  const CgroupName name = has_classes ? kubepods_name(driver, root) : parse_cgroupfs_path(root);
  return Json::object({{"path", path_of(driver, name).value()}});
}

/// The name of the pod's cgroup leads back to its uid as well.
Json pod_parent(const Json& in) {
  const CgroupDriver driver = driver_in(in);
  const api::Pod pod = api::decode<api::Pod>(*in.find("pod")).value();
  const api::QosClass qos = api::qos_of(pod);
  const CgroupName all = kubepods_name(driver, in.string_at({"cgroup_root"}));
  const std::string path = path_of(driver, pod_name(all, qos, pod.metadata.uid).value()).value();
  const auto uid = uid_of_child(driver, class_name(all, qos), path.substr(path.rfind('/') + 1));
  Json got = Json::object({{"cgroup_parent", path}, {"qos", to_string(qos)}});
  if (driver == CgroupDriver::kCgroupfs || !in.string_at({"cgroup_root"}).contains('_')) {
    if (uid != pod.metadata.uid) got["uid"] = uid.value_or("none");
  }
  return got;
}

std::optional<Mismatch> systemd_names(const Json& row) {
  const Json& in = *row.find("in");
  const std::string_view op = row.string_at({"op"});
  Json got;
  if (op == "names") got = names(name_in(in, "name"));
  if (op == "parse_systemd") got = name_document(parse_systemd_path(in.string_at({"path"})));
  if (op == "parse_cgroupfs") {
    got = name_document(parse_cgroupfs_path(in.string_at({"path"})));
    got["systemd_style"] = is_systemd_style(in.string_at({"path"}));
  }
  if (op == "new_name") got = new_name(in);
  if (op == "allocatable_root") got = allocatable_root(in);
  if (op == "pod_parent") got = pod_parent(in);
  return support::compare(*row.find("want"), got);
}

const bool kSystemdNames = support::add_vector_check("kubelet-surface/systemd_names", systemd_names);

}  // namespace
}  // namespace spillway::cgroups
