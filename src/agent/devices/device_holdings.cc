#include "agent/devices/device_holdings.h"

#include "api/json/json.h"
#include "base/rng.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::agent {
namespace {

using api::Json;

Json text_list(const auto& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.if_array()->emplace_back(text);
  return list;
}

Json map_of(const std::map<std::string, std::string, std::less<>>& map) {
  Json object = Json::object();
  for (const auto& [name, value] : map) object[name] = value;
  return object;
}

Json grant_document(const DeviceGrant& grant) {
  Json mounts = Json::array();
  for (const DeviceMount& mount : grant.mounts) {
    mounts.if_array()->push_back(Json::object(
        {{"containerPath", mount.container_path}, {"hostPath", mount.host_path}, {"readOnly", mount.read_only}}));
  }
  Json nodes = Json::array();
  for (const DeviceNode& node : grant.nodes) {
    nodes.if_array()->push_back(Json::object(
        {{"containerPath", node.container_path}, {"hostPath", node.host_path}, {"permissions", node.permissions}}));
  }
  return Json::object({{"envs", map_of(grant.env)},
                       {"mounts", std::move(mounts)},
                       {"devices", std::move(nodes)},
                       {"annotations", map_of(grant.annotations)},
                       {"cdiDevices", text_list(grant.cdi_devices)}});
}

Error damaged(std::string_view what) {
  return Error{ErrorCode::kInvalid, fmt::format("device checkpoint is damaged: {}", what), {}};
}

Result<std::vector<std::string>> texts_of(const Json* list) {
  if (list == nullptr || list->if_array() == nullptr) return damaged("a list is missing");
  std::vector<std::string> texts;
  for (const Json& each : *list->if_array()) {
    if (each.if_string() == nullptr) return damaged("a list has an element that is not a string");
    texts.push_back(*each.if_string());
  }
  return texts;
}

Result<std::map<std::string, std::string, std::less<>>> pairs_of(const Json* object) {
  if (object == nullptr || object->if_object() == nullptr) return damaged("a map is missing");
  std::map<std::string, std::string, std::less<>> pairs;
  for (const auto& [name, value] : *object->if_object()) {
    if (value.if_string() == nullptr) return damaged("a map has a value that is not a string");
    pairs[std::string(name)] = *value.if_string();
  }
  return pairs;
}

Result<DeviceGrant> read_grant(const Json& document) {
  DeviceGrant grant;
  SPILLWAY_TRY(env, pairs_of(document.find("envs")));
  SPILLWAY_TRY(annotations, pairs_of(document.find("annotations")));
  SPILLWAY_TRY(cdi, texts_of(document.find("cdiDevices")));
  grant.env = std::move(env);
  grant.annotations = std::move(annotations);
  grant.cdi_devices = std::move(cdi);
  const Json* mounts = document.find("mounts");
  const Json* nodes = document.find("devices");
  if (mounts == nullptr || mounts->if_array() == nullptr || nodes == nullptr || nodes->if_array() == nullptr) {
    return damaged("mounts or devices are missing");
  }
  for (const Json& mount : *mounts->if_array()) {
    const Json* read_only = mount.find("readOnly");
    grant.mounts.push_back({std::string(mount.string_at({"containerPath"})), std::string(mount.string_at({"hostPath"})),
                            read_only != nullptr && read_only->if_bool().value_or(false)});
  }
  for (const Json& node : *nodes->if_array()) {
    grant.nodes.push_back({std::string(node.string_at({"containerPath"})), std::string(node.string_at({"hostPath"})),
                           std::string(node.string_at({"permissions"}))});
  }
  return grant;
}

std::string checksum_of(const Json& data) {
  return fmt::format("{:016x}", fnv1a64(api::to_text(data)));
}

}  // namespace

DeviceIds held_by_all(const Holdings& holdings, std::string_view resource) {
  DeviceIds ids;
  for (const auto& [uid, pod] : holdings) {
    for (const auto& [container, resources] : pod) {
      const auto held = resources.find(resource);
      if (held != resources.end()) ids.insert(held->second.ids.begin(), held->second.ids.end());
    }
  }
  return ids;
}

std::string to_text(const DeviceCheckpoint& checkpoint) {
  Json entries = Json::array();
  for (const auto& [uid, pod] : checkpoint.holdings) {
    for (const auto& [container, resources] : pod) {
      for (const auto& [resource, holding] : resources) {
        if (holding.state != Holding::State::kReady && holding.state != Holding::State::kAwaiting) continue;
        entries.if_array()->push_back(Json::object({{"podUID", uid},
                                                    {"containerName", container},
                                                    {"resourceName", resource},
                                                    {"deviceIDs", text_list(holding.ids)},
                                                    {"grant", grant_document(holding.grant)}}));
      }
    }
  }
  Json data = Json::object(
      {{"podDeviceEntries", std::move(entries)}, {"registeredResources", text_list(checkpoint.resources)}});
  const std::string checksum = checksum_of(data);
  return api::to_text(Json::object({{"data", std::move(data)}, {"checksum", checksum}})) + "\n";
}

Result<DeviceCheckpoint> parse_device_checkpoint(std::string_view text) {
  SPILLWAY_TRY(document, api::parse_json(text));
  const Json* data = document.find("data");
  if (data == nullptr || data->if_object() == nullptr) return damaged("no data in it");
  if (document.string_at({"checksum"}) != checksum_of(*data)) return damaged("the checksum does not match");
  DeviceCheckpoint checkpoint;
  SPILLWAY_TRY(resources, texts_of(data->find("registeredResources")));
  checkpoint.resources = std::move(resources);
  const Json* entries = data->find("podDeviceEntries");
  if (entries == nullptr || entries->if_array() == nullptr) return damaged("no entries in it");
  for (const Json& entry : *entries->if_array()) {
    SPILLWAY_TRY(ids, texts_of(entry.find("deviceIDs")));
    const Json* given = entry.find("grant");
    if (given == nullptr) return damaged("an entry without grant");
    SPILLWAY_TRY(grant, read_grant(*given));
    Holding& holding =
        checkpoint.holdings[std::string(entry.string_at({"podUID"}))][std::string(entry.string_at({"containerName"}))]
                           [std::string(entry.string_at({"resourceName"}))];
    holding.ids = DeviceIds(ids.begin(), ids.end());
    holding.state = Holding::State::kAwaiting;
    holding.grant = std::move(grant);
  }
  return checkpoint;
}

api::Json state_of(const Holdings& holdings) {
  const auto name_of = [](Holding::State state) -> std::string_view {
    switch (state) {
      case Holding::State::kAwaiting:
        return "awaiting";
      case Holding::State::kPreferring:
        return "preferring";
      case Holding::State::kAllocating:
        return "allocating";
      case Holding::State::kReady:
        return "ready";
    }
    return {};
  };
  api::Json state = api::Json::object();
  for (const auto& [uid, containers] : holdings) {
    for (const auto& [container, resources] : containers) {
      for (const auto& [resource, holding] : resources) {
        api::Json ids = api::Json::array();
        for (const std::string& id : holding.ids) ids.if_array()->emplace_back(id);
        state.make({uid, container})[resource] =
            api::Json::object({{"devices", std::move(ids)}, {"state", name_of(holding.state)}});
      }
    }
  }
  return state;
}

DeviceGrant merged_grant(const ContainerHoldings& holdings) {
  DeviceGrant all;
  const auto append = [](auto& to, const auto& from) {
    for (const auto& each : from) {
      if (std::ranges::find(to, each) == to.end()) to.push_back(each);
    }
  };
  for (const auto& [resource, holding] : holdings) {
    for (const auto& [name, value] : holding.grant.env) all.env.insert_or_assign(name, value);
    for (const auto& [name, value] : holding.grant.annotations) all.annotations.insert_or_assign(name, value);
    append(all.mounts, holding.grant.mounts);
    append(all.nodes, holding.grant.nodes);
    append(all.cdi_devices, holding.grant.cdi_devices);
  }
  return all;
}

}  // namespace spillway::agent
