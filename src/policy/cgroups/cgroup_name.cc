#include "policy/cgroups/cgroup_name.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace spillway::cgroups {
namespace {

constexpr std::string_view kSlice = ".slice";
constexpr std::string_view kRootSlice = "-.slice";
constexpr std::string_view kPod = "pod";

CgroupName split(std::string_view text, char separator) {
  CgroupName parts;
  for (std::size_t at = text.find(separator); at != std::string_view::npos; at = text.find(separator)) {
    parts.emplace_back(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  parts.emplace_back(text);
  return parts;
}

bool is_root(const CgroupName& name) {
  return name.empty() || (name.size() == 1 && name.front().empty());
}

/// A dash would separate two steps.
std::string escape(std::string step) {
  std::ranges::replace(step, '-', '_');
  return step;
}

std::string last_step(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::string_view last = path.substr(path.rfind('/') + 1);
  return last.empty() ? "." : std::string(last);
}

}  // namespace

std::string_view to_string(CgroupDriver driver) {
  return driver == CgroupDriver::kCgroupfs ? "cgroupfs" : "systemd";
}

std::optional<CgroupDriver> parse_cgroup_driver(std::string_view text) {
  if (text == "cgroupfs") return CgroupDriver::kCgroupfs;
  if (text == "systemd") return CgroupDriver::kSystemd;
  return std::nullopt;
}

Result<CgroupName> cgroup_below(CgroupName base, const std::vector<std::string>& steps) {
  for (const std::string& step : steps) {
    if (step.find_first_of("/_") != std::string::npos)
      return invalid({}, "invalid character in component [\"{}\"] of CgroupName", step);
    base.push_back(step);
  }
  return base;
}

std::string cgroupfs_path(const CgroupName& name) {
  std::string path;
  for (const std::string& step : name) {
    if (!step.empty()) path += "/" + step;
  }
  return path.empty() ? "/" : path;
}

Result<std::string> systemd_path(const CgroupName& name) {
  if (is_root(name)) return std::string("/");
  std::string path;
  std::string prefix;
  bool fits = true;
  for (const std::string& step : name) {
    if (!prefix.empty()) prefix += "-";
    prefix += escape(step);
    path += fmt::format("/{}{}", prefix, kSlice);
    fits = fits && !step.empty() && !step.contains('/');
  }
  if (!fits) {
    return invalid({}, "error converting cgroup name [[{}]] to systemd format: invalid slice name: {}{}",
                   fmt::join(name, " "), prefix, kSlice);
  }
  return path;
}

Result<std::string> path_of(CgroupDriver driver, const CgroupName& name) {
  return driver == CgroupDriver::kSystemd ? systemd_path(name) : Result<std::string>(cgroupfs_path(name));
}

Result<SliceUnit> slice_unit(const CgroupName& name) {
  SPILLWAY_TRY(path, systemd_path(name));
  CgroupName slices = split(std::string_view(path).substr(1), '/');
  SliceUnit unit{.name = slices.back(), .parent = std::string(kRootSlice)};
  if (slices.size() > 1) unit.parent = slices[slices.size() - 2];
  return unit;
}

CgroupName parse_systemd_path(std::string_view path) {
  std::string last = last_step(path);
  if (last.ends_with(kSlice)) last.resize(last.size() - kSlice.size());
  CgroupName name = split(last, '-');
  for (std::string& step : name) std::ranges::replace(step, '_', '-');
  return name;
}

CgroupName parse_cgroupfs_path(std::string_view path) {
  if (path.starts_with('/')) path.remove_prefix(1);
  return path.empty() ? CgroupName() : split(path, '/');
}

bool is_systemd_style(std::string_view path) {
  return path.ends_with(kSlice);
}

CgroupName kubepods_name(CgroupDriver driver, std::string_view cgroup_root) {
  const bool is_slice = driver == CgroupDriver::kSystemd && is_systemd_style(cgroup_root);
  CgroupName name = is_slice ? parse_systemd_path(cgroup_root) : parse_cgroupfs_path(cgroup_root);
  std::erase(name, std::string());
  name.emplace_back("kubepods");
  return name;
}

CgroupName class_name(CgroupName kubepods, api::QosClass qos) {
  if (qos == api::QosClass::kBurstable) kubepods.emplace_back("burstable");
  if (qos == api::QosClass::kBestEffort) kubepods.emplace_back("besteffort");
  return kubepods;
}

Result<CgroupName> pod_name(CgroupName kubepods, api::QosClass qos, std::string_view uid) {
  return cgroup_below(class_name(std::move(kubepods), qos), {std::string(kPod) + std::string(uid)});
}

std::optional<std::string> uid_of_child(CgroupDriver driver, const CgroupName& parent, std::string_view child) {
  CgroupName name;
  if (driver == CgroupDriver::kCgroupfs) {
    name = parent;
    name.emplace_back(child);
  } else if (is_systemd_style(child)) {
    name = parse_systemd_path(child);
  }
  if (name.size() != parent.size() + 1 || !std::ranges::equal(parent, std::span(name).first(parent.size())))
    return std::nullopt;
  const std::string& last = name.back();
  if (!last.starts_with(kPod) || last.size() == kPod.size()) return std::nullopt;
  return last.substr(kPod.size());
}

}  // namespace spillway::cgroups
