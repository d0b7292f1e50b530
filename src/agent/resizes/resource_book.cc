#include "agent/resizes/resource_book.h"

#include "api/json/json.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

namespace spillway::agent {
namespace {

using api::Json;
using containers::PodResources;

std::uint64_t data_checksum(std::string_view data) {
  std::uint32_t hash = 0x811c9dc5U;
  for (const char byte : fmt::format("(string){}", data)) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x01000193U;
  }
  return hash;
}

Json encoded(const PodResources& resources) {
  Json named = Json::object();
  for (const auto& [name, each] : resources.containers) named[name] = containers::to_json(each);
  return Json::object({{"ContainerResources", std::move(named)},
                       {"PodLevelResources", resources.whole ? containers::to_json(*resources.whole) : Json()}});
}

Result<PodResources> decoded(const Json& entry) {
  PodResources made;
  if (const Json* named = entry.find("ContainerResources"); named != nullptr && named->if_object() != nullptr) {
    for (const auto& member : *named->if_object()) {
      SPILLWAY_TRY(resources, containers::parse_resources(member.value));
      made.containers.emplace(member.key, std::move(resources));
    }
  }
  if (const Json* whole = entry.find("PodLevelResources"); whole != nullptr && whole->is_object()) {
    SPILLWAY_TRY(resources, containers::parse_resources(*whole));
    made.whole = std::move(resources);
  }
  return made;
}

}  // namespace

Result<ResourceBook> ResourceBook::parse(std::string_view file, const std::optional<std::string>& text) {
  ResourceBook book(file);
  if (!text) return book;
  const Result<Json> document = api::parse_json(*text);
  if (!document) return invalid(file, "{}", document.error().text());
  const std::string data(document->string_at({"data"}));
  const Json* checksum = document->find("checksum");
  const auto stated = checksum == nullptr ? std::nullopt : checksum->if_int64();
  if (!stated || static_cast<std::uint64_t>(*stated) != data_checksum(data)) {
    return invalid(file, "checkpoint is corrupted: its checksum does not match; delete the file to start without it");
  }
  const Result<Json> entries = api::parse_json(data);
  if (!entries) return invalid(file, "{}", entries.error().text());
  const Json* by_uid = entries->find("entries");
  if (by_uid == nullptr || by_uid->if_object() == nullptr) return book;
  for (const auto& member : *by_uid->if_object()) {
    Result<PodResources> resources = decoded(member.value);
    if (!resources) return invalid(file, "{}: {}", member.key, resources.error().text());
    book.entries_.emplace(member.key, *std::move(resources));
  }
  return book;
}

const PodResources* ResourceBook::find(const std::string& uid) const {
  const auto found = entries_.find(uid);
  return found == entries_.end() ? nullptr : &found->second;
}

void ResourceBook::set(const std::string& uid, PodResources resources) {
  const auto [entry, added] = entries_.try_emplace(uid, resources);
  if (!added && entry->second == resources) return;
  if (!added) entry->second = std::move(resources);
  changed_ = true;
}

void ResourceBook::doubt(const std::string& uid) {
  changed_ = doubted_.insert(uid).second || changed_;
}

void ResourceBook::trust(const std::string& uid) {
  changed_ = doubted_.erase(uid) > 0 || changed_;
}

void ResourceBook::keep_only(const std::set<std::string, std::less<>>& uids) {
  std::erase_if(entries_, [&](const auto& entry) { return !uids.contains(entry.first); });
}

std::optional<SaveCheckpoint> ResourceBook::take_save() {
  if (!std::exchange(changed_, false)) return std::nullopt;
  Json by_uid = Json::object();
  for (const auto& [uid, resources] : entries_) {
    if (!doubted_.contains(uid)) by_uid[uid] = encoded(resources);
  }
  std::string data = api::to_text(Json::object({{"entries", std::move(by_uid)}}));
  const std::uint64_t checksum = data_checksum(data);
  return SaveCheckpoint{file_, api::to_text(Json::object({{"data", std::move(data)}, {"checksum", checksum}}))};
}

}  // namespace spillway::agent
