#include "apiserver/write/renewal.h"

#include "api/json/flat_json.h"
#include "api/text/time_text.h"

#include <algorithm>
#include <array>
#include <optional>

namespace spillway::apiserver {
namespace {

using api::FlatJson;
using At = FlatJson::At;
using Kind = FlatJson::Kind;

constexpr std::size_t kMicroTimeBytes = 27;  // "2026-01-02T03:04:05.000001Z"
constexpr std::size_t kTimeBytes = 20;       // "2026-01-02T03:04:05Z"

/// Members of metadata that an update may leave out: they stay as they are.
constexpr std::array<std::string_view, 5> kServerMembers = {"creationTimestamp", "generation", "managedFields",
                                                            "namespace", "uid"};
/// Of spec, those that no rule changes.
constexpr std::array<std::string_view, 5> kSpecMembers = {"acquireTime", "holderIdentity", "leaseDurationSeconds",
                                                          "leaseTransitions", "renewTime"};

template <typename List>
bool contains(const List& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

/// The lease as it stands, where it can be renewed in place.
struct Held {
  const FlatJson& json;
  At metadata = 0;
  At spec = 0;
  At renewed = 0;
  At managed = 0;  // the time in the only entry of managedFields
};

/// One entry, of that manager's updates: it owns afterwards what it owned before.
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
  // Several owners are looked at for repetitions.
  const auto owners = json.find(*metadata, "ownerReferences");
  if (owners && json[*owners].members > 1) return std::nullopt;
  return Held{json, *metadata, *spec, *renewed, *managed};
}

/// A time as it would be stored.
bool is_canonical(const FlatJson::Value& value) {
  if (value.kind != Kind::kString || value.text.size() != kMicroTimeBytes) return false;
  const Result<WallTime> time = api::parse_time(value.text);
  return time && api::format_micro_time(*time) == value.text;
}

class Comparison {
 public:
  Comparison(const FlatJson& sent, const Held& held, RenewalForm form) : sent_(sent), held_(held), form_(form) {}

  /// The time that the request sets; nullopt: it says something else as well.
  std::optional<At> run() {
    const bool fits = form_ == RenewalForm::kUpdate ? is_whole() : is_part(0, 0);
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
    // Neither a member of its own nor one twice.
    return sent_[sent].members + left_out == held_.json[held_.metadata].members;
  }

  /// What Go writes for a member that was not set.
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

  /// Every member of `sent` is there and says the same. Lists are not looked into: how they merge is another rule's.
  bool is_part(At sent, At held) {
    if (sent_[sent].kind != Kind::kObject || held_.json[held].kind != Kind::kObject) return false;
    for (At at = FlatJson::first(sent); at < sent_[sent].end; at = sent_[at].end) {
      if (*sent_.find(sent, sent_[at].key) != at) return false;  // it comes twice
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

}  // namespace

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
  const auto json = FlatJson::parse(text);
  if (!json) return {.path = RenewalPath::kObject};
  const auto held = held_lease(*json, request.manager);
  if (!held) return {.path = RenewalPath::kObject};
  const auto sent = FlatJson::parse(body);
  if (!sent) return {};
  const auto renewed = Comparison(*sent, *held, request.form).run();
  if (!renewed || !is_canonical((*sent)[*renewed])) return {};
  const std::string_view before = (*json)[held->renewed].text;
  const std::string_view after = (*sent)[*renewed].text;
  const auto offset = [&](std::string_view part) { return static_cast<std::size_t>(part.data() - text.data()); };
  return {.path = before == after ? RenewalPath::kUnchanged : RenewalPath::kSpliced,
          .renewed_at = offset(before),
          .renewed = after,
          .managed_at = offset((*json)[held->managed].text)};
}

}  // namespace spillway::apiserver
