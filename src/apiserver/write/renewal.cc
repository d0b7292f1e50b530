#include "apiserver/write/renewal.h"

#include "api/json/flat_json.h"
#include "api/schema/protobuf_writer.h"
#include "api/schema/schema.h"
#include "api/text/time_text.h"
#include "apiserver/write/lease_wire.h"
#include "base/check.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

namespace spillway::apiserver {
namespace {

using api::FlatJson;
using At = FlatJson::At;
using Kind = FlatJson::Kind;

constexpr std::size_t kTimeBytes = 20;  // "2026-01-02T03:04:05Z"

/// Members of metadata that an update may omit: they keep their values.
constexpr std::array<std::string_view, 5> kServerMembers = {"creationTimestamp", "generation", "managedFields",
                                                            "namespace", "uid"};
/// The members of spec that no rule changes.
constexpr std::array<std::string_view, 5> kSpecMembers = {"acquireTime", "holderIdentity", "leaseDurationSeconds",
                                                          "leaseTransitions", "renewTime"};

template <typename List>
bool contains(const List& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

/// The stored lease, which can be renewed in place.
struct Held {
  const FlatJson& json;
  At metadata = 0;
  At spec = 0;
  At renewed = 0;
  At managed = 0;  // the time in the only entry of managedFields
};

/// The time in the only entry of managedFields, if that is of the manager's updates: the renewal then changes no
/// ownership.
std::optional<At> managed_time(const FlatJson& json, At metadata, std::string_view manager) {
  const auto list = json.find(metadata, "managedFields");
  if (!list || json[*list].kind != Kind::kArray || json[*list].members != 1) return std::nullopt;
  const At entry = FlatJson::first(*list);
  const auto says = [&](std::string_view member, std::string_view wanted) {
    const auto found = json.find(entry, member);
    return found && json[*found].kind == Kind::kString && json[*found].text == wanted;
  };
  if (!says("manager", manager) || !says("operation", "Update") || json.find(entry, "subresource")) return std::nullopt;
  const auto time = json.find(entry, "time");
  if (!time || json[*time].kind != Kind::kString || json[*time].text.size() != kTimeBytes) return std::nullopt;
  return time;
}

std::optional<Held> held_lease(const FlatJson& json, std::string_view manager) {
  const auto metadata = json.find(0, "metadata");
  const auto spec = json.find(0, "spec");
  if (!metadata || !spec || json[0].members != 4 || !json.find(0, "apiVersion") || !json.find(0, "kind")) {
    return std::nullopt;
  }
  for (At at = FlatJson::first(*spec); at < json[*spec].end; at = json[at].end) {
    if (!contains(kSpecMembers, json[at].key)) return std::nullopt;
  }
  const auto renewed = json.find(*spec, "renewTime");
  const auto managed = managed_time(json, *metadata, manager);
  if (!renewed || !managed || json[*renewed].text.size() != kMicroTimeBytes) return std::nullopt;
  // Several owners are checked for duplicates.
  const auto owners = json.find(*metadata, "ownerReferences");
  if (owners && json[*owners].members > 1) return std::nullopt;
  return Held{json, *metadata, *spec, *renewed, *managed};
}

/// True if the text is a time in the form that the store has.
bool is_canonical_time(std::string_view text) {
  if (text.size() != kMicroTimeBytes) return false;
  const Result<WallTime> time = api::parse_time(text);
  return time && api::format_micro_time(*time) == text;
}

bool is_canonical(const FlatJson::Value& value) {
  return value.kind == Kind::kString && is_canonical_time(value.text);
}

class Comparison {
 public:
  Comparison(const FlatJson& sent, const Held& held, RenewalForm form) : sent_(sent), held_(held), form_(form) {}

  /// The time that the request sets; nullopt: it changes something else as well.
  std::optional<At> run() {
    const bool fits = form_ == RenewalForm::kPatch ? is_part(0, 0) : is_whole();
    return fits ? renewed_ : std::nullopt;
  }

 private:
  bool is_object(std::optional<At> at) const { return at && sent_[*at].kind == Kind::kObject; }

  bool is_whole() {
    const auto metadata = sent_.find(0, "metadata");
    const auto spec = sent_.find(0, "spec");
    if (!is_object(metadata) || !is_object(spec)) return false;
    const auto kind = sent_.find(0, "kind");
    const auto version = sent_.find(0, "apiVersion");
    if (kind.has_value() != version.has_value() || sent_[0].members != (kind ? 4 : 2)) return false;
    if (kind && (!same_value(sent_, *kind, held_.json, *held_.json.find(0, "kind")) ||
                 !same_value(sent_, *version, held_.json, *held_.json.find(0, "apiVersion")))) {
      return false;
    }
    return same_metadata(*metadata) && same_spec(*spec);
  }

  bool same_metadata(At sent) const {
    std::size_t left_out = 0;
    for (At at = FlatJson::first(held_.metadata); at < held_.json[held_.metadata].end; at = held_.json[at].end) {
      const std::string_view key = held_.json[at].key;
      const auto found = sent_.find(sent, key);
      if (!found) {
        if (!contains(kServerMembers, key)) return false;
        ++left_out;
      } else if (!is_blank(*found) && !same_value(sent_, *found, held_.json, at)) {
        return false;
      }
    }
    // True if the request has no member of its own and none twice.
    return sent_[sent].members + left_out == held_.json[held_.metadata].members;
  }

  /// True for a value that Go writes for an unset member.
  bool is_blank(At at) const {
    const FlatJson::Value& value = sent_[at];
    if (value.key == "creationTimestamp") return value.kind == Kind::kNull;
    return (value.key == "uid" || value.key == "namespace") && value.kind == Kind::kString && value.text.empty();
  }

  bool same_spec(At sent) {
    if (sent_[sent].members != held_.json[held_.spec].members) return false;
    for (At at = FlatJson::first(held_.spec); at < held_.json[held_.spec].end; at = held_.json[at].end) {
      const auto found = sent_.find(sent, held_.json[at].key);
      if (!found) return false;
      if (at == held_.renewed) {
        renewed_ = found;
      } else if (!same_value(sent_, *found, held_.json, at)) {
        return false;
      }
    }
    return true;
  }

  /// True if every member of `sent` is in the stored lease with the same value. Lists are not compared: another rule
  /// merges them.
  bool is_part(At sent, At held) {
    if (sent_[sent].kind != Kind::kObject || held_.json[held].kind != Kind::kObject) return false;
    for (At at = FlatJson::first(sent); at < sent_[sent].end; at = sent_[at].end) {
      if (*sent_.find(sent, sent_[at].key) != at) return false;  // the member occurs twice
      const auto found = held_.json.find(held, sent_[at].key);
      if (!found) return false;
      if (*found == held_.renewed) {
        renewed_ = at;
      } else if (sent_[at].kind == Kind::kObject) {
        if (!is_part(at, *found)) return false;
      } else if (sent_[at].kind == Kind::kArray || !same_value(sent_, at, held_.json, *found)) {
        return false;
      }
    }
    return true;
  }

  const FlatJson& sent_;
  const Held& held_;
  RenewalForm form_;
  std::optional<At> renewed_;
};

using MicroTime = std::array<char, kMicroTimeBytes>;

MicroTime micro_time(std::string_view text) {
  MicroTime time;
  SPILLWAY_CHECK(text.size() == time.size());
  text.copy(time.data(), time.size());
  return time;
}

std::optional<MicroTime> json_time(std::string_view body, const Held& held, RenewalForm form) {
  const auto sent = FlatJson::parse(body);
  if (!sent) return std::nullopt;
  const auto renewed = Comparison(*sent, held, form).run();
  if (!renewed || !is_canonical((*sent)[*renewed])) return std::nullopt;
  return micro_time((*sent)[*renewed].text);
}

/// Replaces the time in `json`, the text of `held`.
std::optional<MicroTime> protobuf_time(std::string_view body, FlatJson& json, const Held& held) {
  static const api::Type* const kLease = api::find_kind("coordination.k8s.io/v1", "Lease");
  const auto time = sent_renew_time(body);
  if (!time) return std::nullopt;
  const std::string renewed = api::format_micro_time(*time);
  json.put_text(held.renewed, renewed);
  if (api::write_protobuf(*kLease, json) != body) return std::nullopt;
  return micro_time(renewed);
}

/// Offset of `part` in the text that it is a part of.
std::size_t offset_of(std::string_view part, std::string_view text) {
  return static_cast<std::size_t>(part.data() - text.data());
}

/// Members of both in key order. The time that `sent` sets, if it is all that differs, and no rule changes the others.
const std::string* renewed_time(const api::Json::Object& sent, const api::Json::Object& held) {
  if (sent.size() != held.size()) return nullptr;
  const std::string* renewed = nullptr;
  auto other = held.begin();
  for (const auto& [key, value] : sent) {
    if (key != other->key || !contains(kSpecMembers, key)) return nullptr;
    if (key == "renewTime") {
      renewed = value.if_string();
    } else if (!(value == other->value)) {
      return nullptr;
    }
    ++other;
  }
  return renewed;
}

/// The time in the managedFields of a document, as managed_time() finds it in text.
const std::string* managed_time(const api::Json& lease, std::string_view manager) {
  const api::Json* const list = lease.at({"metadata", "managedFields"});
  const api::Json::Array* const entries = list == nullptr ? nullptr : list->if_array();
  if (entries == nullptr || entries->size() != 1) return nullptr;
  const api::Json& entry = entries->front();
  if (entry.string_at({"manager"}) != manager || entry.string_at({"operation"}) != "Update") return nullptr;
  if (entry.find("subresource") != nullptr) return nullptr;
  const api::Json* const time = entry.find("time");
  return time == nullptr ? nullptr : time->if_string();
}

/// Offset of the last member `member` whose value is `time`.
std::optional<std::size_t> last_place(std::string_view text, std::string_view member, std::string_view time,
                                      std::size_t before = std::string_view::npos) {
  if (text.size() < member.size()) return std::nullopt;
  // Most places differ in one of two characters: nothing is called for them.
  for (std::size_t end = std::min(before, text.size() - member.size()) + 1; end > 0; --end) {
    const std::size_t at = end - 1;
    if (text[at] != member[0] || text[at + 1] != member[1] || !text.substr(at).starts_with(member)) continue;
    const bool says_it = text.substr(at + member.size(), time.size()) == time;
    return says_it ? std::optional(at + member.size()) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<RenewalMatch> match_shared_renewal(const api::Json& sent, const api::Json& held, std::string_view text,
                                                 std::string_view manager) {
  const api::Json* const metadata = held.find("metadata");
  const api::Json* const same = sent.find("metadata");
  if (metadata == nullptr || same == nullptr || !metadata->is_object() || !same->shares(*metadata)) return std::nullopt;
  if (sent.if_object()->size() != 4 || held.if_object()->size() != 4) return std::nullopt;
  for (const std::string_view member : {"apiVersion", "kind"}) {
    if (held.string_at({member}).empty() || sent.string_at({member}) != held.string_at({member})) return std::nullopt;
  }
  const api::Json* const owners = metadata->find("ownerReferences");
  if (owners != nullptr && (owners->if_array() == nullptr || owners->if_array()->size() > 1)) return std::nullopt;
  const api::Json* const spec = sent.find("spec");
  const api::Json* const before = held.find("spec");
  if (spec == nullptr || before == nullptr || !spec->is_object() || !before->is_object()) return std::nullopt;
  const std::string* const renewed = renewed_time(*spec->if_object(), *before->if_object());
  const std::string* const managed = managed_time(held, manager);
  if (renewed == nullptr || managed == nullptr || managed->size() != kTimeBytes || !is_canonical_time(*renewed))
    return std::nullopt;
  // A quotation mark within a string is escaped, so only members are found. Those of the spec are the last ones, and
  // nothing behind the recorded fields has a member of that name.
  const std::string_view old = before->string_at({"renewTime"});
  if (old.size() != kMicroTimeBytes) return std::nullopt;
  const auto renewed_at = last_place(text, "\"renewTime\":\"", old);
  const auto managed_at = renewed_at ? last_place(text, "\"time\":\"", *managed, *renewed_at) : std::nullopt;
  if (!managed_at) return std::nullopt;
  RenewalMatch match{.path = *renewed == old ? RenewalPath::kUnchanged : RenewalPath::kSpliced,
                     .renewed_at = *renewed_at,
                     .managed_at = *managed_at};
  renewed->copy(match.time.data(), match.time.size());
  return match;
}

std::string_view to_string(RenewalPath path) {
  switch (path) {
    case RenewalPath::kSpliced:
      return "spliced";
    case RenewalPath::kUnchanged:
      return "unchanged";
    case RenewalPath::kRequest:
      return "request";
    case RenewalPath::kObject:
      return "object";
    case RenewalPath::kContent:
      return "content";
    case RenewalPath::kQueued:
      return "queued";
    case RenewalPath::kAdmission:
      return "admission";
  }
  return {};
}

RenewalMatch match_renewal(std::string_view body, std::string_view text, const RenewalRequest& request) {
  if (body.size() > kRenewalBytesMax || text.size() > kRenewalBytesMax) return {};
  auto json = FlatJson::parse(text);
  if (!json) return {.path = RenewalPath::kObject};
  const auto held = held_lease(*json, request.manager);
  if (!held) return {.path = RenewalPath::kObject};
  const std::size_t renewed_at = offset_of((*json)[held->renewed].text, text);
  const std::size_t managed_at = offset_of((*json)[held->managed].text, text);
  const bool is_protobuf = request.form == RenewalForm::kProtobufUpdate;
  const auto renewed = is_protobuf ? protobuf_time(body, *json, *held) : json_time(body, *held, request.form);
  if (!renewed) return {};
  const bool is_same = text.substr(renewed_at, kMicroTimeBytes) == std::string_view(renewed->data(), renewed->size());
  return {.path = is_same ? RenewalPath::kUnchanged : RenewalPath::kSpliced,
          .renewed_at = renewed_at,
          .time = *renewed,
          .managed_at = managed_at};
}

}  // namespace spillway::apiserver
