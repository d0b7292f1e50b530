#include "apiserver/request/request_options.h"

#include "api/text/base64.h"
#include "apiserver/request/route.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace spillway::apiserver {

namespace {

constexpr std::size_t kFieldManagerMax = 128;
constexpr std::int64_t kSecondMax = 253'402'300'800;  // the year 10000

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

const std::string* given(const api::Target& target, std::string_view name) {
  const std::string* value = target.find(name);
  return value == nullptr || value->empty() ? nullptr : value;
}

Error bad_value(std::string_view name, std::string_view value) {
  return make_error(ErrorCode::kBadRequest, "{}: Invalid value: \"{}\": must be an integer", name, value);
}

api::Status refused(std::string_view kind, const api::FieldErrors& errors) {
  return api::invalid_status({"meta.k8s.io", std::string(kind)}, "", errors);
}

Result<std::optional<store::Revision>> parse_version(const api::Target& target) {
  const std::string* text = given(target, "resourceVersion");
  if (text == nullptr) return std::nullopt;
  const auto number = parse_number<std::uint64_t>(*text);
  if (!number) return make_error(ErrorCode::kBadRequest, "invalid resource version \"{}\": must be a number", *text);
  return store::Revision(*number);
}

/// The rules that join resourceVersion, resourceVersionMatch, sendInitialEvents and continue.
void check_match(const api::Target& target, const ListOptions& options, bool watch, api::FieldErrors& errors) {
  constexpr std::string_view kField = "resourceVersionMatch";
  const std::string* match = given(target, kField);
  if (watch) {
    if (options.send_initial_events && match == nullptr) {
      errors.forbidden(kField, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    } else if (match != nullptr && !options.send_initial_events) {
      errors.forbidden(kField, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    } else if (match != nullptr && options.match != VersionMatch::kNotOlderThan) {
      constexpr std::string_view kOnly[] = {"NotOlderThan"};
      errors.not_supported(kField, *match, kOnly);
    }
    return;
  }
  if (options.send_initial_events) {
    errors.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
  }
  if (match == nullptr) return;
  if (!options.version) {
    errors.forbidden(kField, "resourceVersionMatch is forbidden unless resourceVersion is provided");
  }
  if (!options.continue_token.empty()) {
    errors.forbidden(kField, "resourceVersionMatch is forbidden when continue is provided");
  }
  if (options.match == VersionMatch::kUnset) {
    constexpr std::string_view kBoth[] = {"Exact", "NotOlderThan"};
    errors.not_supported(kField, *match, kBoth);
  } else if (options.match == VersionMatch::kExact && options.version == store::Revision(0)) {
    errors.forbidden(kField, "resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\"");
  }
}

Result<Propagation> parse_propagation(std::string_view text) {
  if (text == "Background") return Propagation::kBackground;
  if (text == "Foreground") return Propagation::kForeground;
  if (text == "Orphan") return Propagation::kOrphan;
  return make_error(ErrorCode::kInvalid, "unknown propagation policy");
}

/// Fields common to query and body, before validation.
struct RawDeleteOptions {
  std::optional<std::int64_t> grace;
  std::optional<std::string> policy;
  std::optional<bool> orphan;
  std::vector<std::string> dry_run;
};

api::StatusResult<void> validate(const RawDeleteOptions& raw, DeleteOptions& out) {
  api::FieldErrors errors;
  if (raw.policy && raw.orphan) {
    errors.invalid("propagationPolicy", *raw.policy, "orphanDependents and deletionPropagation cannot be both set");
  }
  if (raw.policy) {
    if (const Result<Propagation> policy = parse_propagation(*raw.policy)) {
      out.propagation = *policy;
    } else {
      constexpr std::string_view kKnown[] = {"Foreground", "Background", "Orphan", "nil"};
      errors.not_supported("propagationPolicy", *raw.policy, kKnown);
    }
  } else if (raw.orphan) {
    out.propagation = *raw.orphan ? Propagation::kOrphan : Propagation::kBackground;
  }
  for (const std::string& value : raw.dry_run) {
    constexpr std::string_view kAll[] = {"All"};
    if (value != "All") errors.not_supported("dryRun", api::Json(api::Json::Array{value}), kAll);
  }
  if (raw.grace && *raw.grace > kGraceSecondsMax) {
    errors.invalid("gracePeriodSeconds", *raw.grace, fmt::format("must be less than or equal to {}", kGraceSecondsMax));
  }
  out.dry_run = !raw.dry_run.empty();
  out.grace_period_seconds = raw.grace;
  if (!errors.empty()) return refused("DeleteOptions", errors);
  return {};
}

std::optional<std::string> text_of(const api::Json* value) {
  if (value == nullptr || value->if_string() == nullptr) return std::nullopt;
  return *value->if_string();
}

/// The revision in a token that continues a list at the present state; as upstream, because 0 could be a mistake.
constexpr std::int64_t kPresentRevision = -1;

}  // namespace

api::StatusResult<ListOptions> parse_list_options(const api::Target& target, bool watch) {
  ListOptions options;
  SPILLWAY_TRY(version, parse_version(target));
  options.version = version;
  if (const std::string* text = given(target, "limit")) {
    const auto limit = parse_number<std::int64_t>(*text);
    if (!limit) return bad_value("limit", *text);
    options.limit = *limit > 0 ? static_cast<std::size_t>(*limit) : 0;
  }
  if (const std::string* text = given(target, "timeoutSeconds")) {
    options.timeout_seconds = parse_number<std::int64_t>(*text);
    if (!options.timeout_seconds) return bad_value("timeoutSeconds", *text);
  }
  if (const std::string* text = given(target, "continue")) {
    options.continue_token = *text;
    if (version && *version != store::Revision(0)) {
      return make_error(ErrorCode::kBadRequest, "specifying resource version is not allowed when using continue");
    }
  }
  options.bookmarks = query_flag(target, "allowWatchBookmarks");
  if (target.find("sendInitialEvents") != nullptr)
    options.send_initial_events = query_flag(target, "sendInitialEvents");
  if (const std::string* match = given(target, "resourceVersionMatch")) {
    if (*match == "Exact") options.match = VersionMatch::kExact;
    if (*match == "NotOlderThan") options.match = VersionMatch::kNotOlderThan;
  }
  api::FieldErrors errors;
  check_match(target, options, watch, errors);
  if (!errors.empty()) return refused("ListOptions", errors);
  return options;
}

api::StatusResult<WriteOptions> parse_write_options(const api::Target& target, std::string_view kind) {
  WriteOptions options;
  api::FieldErrors errors;
  for (const auto& [name, value] : target.query) {
    if (name != "dryRun") continue;
    constexpr std::string_view kAll[] = {"All"};
    if (value != "All") errors.not_supported("dryRun", api::Json(api::Json::Array{value}), kAll);
    options.dry_run = true;
  }
  if (const std::string* manager = given(target, "fieldManager")) {
    options.field_manager = *manager;
    if (manager->size() > kFieldManagerMax) errors.too_long("fieldManager", kFieldManagerMax);
    const bool printable =
        std::ranges::none_of(*manager, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    if (!printable) errors.invalid("fieldManager", *manager, "should only contain printable characters");
  }
  if (const std::string* text = given(target, "fieldValidation")) {
    constexpr std::string_view kKnown[] = {"Ignore", "Warn", "Strict"};
    if (*text == kKnown[0]) {
      options.field_validation = FieldValidation::kIgnore;
    } else if (*text == kKnown[2]) {
      options.field_validation = FieldValidation::kStrict;
    } else if (*text != kKnown[1]) {
      errors.not_supported("fieldValidation", *text, kKnown);
    }
  }
  options.force_given = target.find("force") != nullptr;
  options.force = query_flag(target, "force");
  if (!errors.empty()) return refused(kind, errors);
  return options;
}

api::StatusResult<DeleteOptions> parse_delete_options(const api::Target& target, const api::Json* body) {
  DeleteOptions options;
  RawDeleteOptions raw;
  if (body != nullptr) {
    if (const api::Json* grace = body->find("gracePeriodSeconds")) raw.grace = grace->if_int64();
    if (const api::Json* orphan = body->find("orphanDependents")) raw.orphan = orphan->if_bool();
    raw.policy = text_of(body->find("propagationPolicy"));
    if (const api::Json* dry = body->find("dryRun"); dry != nullptr && dry->if_array() != nullptr) {
      for (const api::Json& value : *dry->if_array()) raw.dry_run.push_back(text_of(&value).value_or(""));
    }
    options.uid = text_of(body->at({"preconditions", "uid"}));
    options.resource_version = text_of(body->at({"preconditions", "resourceVersion"}));
  } else {
    if (const std::string* text = given(target, "gracePeriodSeconds")) {
      raw.grace = parse_number<std::int64_t>(*text);
      if (!raw.grace) return bad_value("gracePeriodSeconds", *text);
    }
    if (given(target, "orphanDependents") != nullptr) raw.orphan = query_flag(target, "orphanDependents");
    if (const std::string* text = given(target, "propagationPolicy")) raw.policy = *text;
  }
  for (const auto& [name, value] : target.query) {
    if (name == "dryRun") raw.dry_run.push_back(value);
  }
  if (const auto valid = validate(raw, options); !valid) return valid.error();
  return options;
}

std::string encode_continue(const ContinueToken& token) {
  const api::Json revision = token.revision ? api::Json(token.revision->number()) : api::Json(kPresentRevision);
  api::Json document = api::Json::object({{"v", "meta.k8s.io/v1"}, {"rv", revision}, {"start", token.start_after}});
  if (token.began) document["began"] = std::chrono::floor<seconds>(token.began->time_since_epoch()).count();
  return api::encode_base64_url(api::to_text(document));
}

Result<ContinueToken> decode_continue(std::string_view text) {
  const Error garbage =
      make_error(ErrorCode::kBadRequest, "continue key is not valid: it was not issued by this server");
  const auto decoded = api::decode_base64_url(text);
  if (!decoded) return garbage;
  const Result<api::Json> document = api::parse_json(*decoded);
  if (!document) return garbage;
  const api::Json* revision = document->find("rv");
  const api::Json* start = document->find("start");
  if (revision == nullptr || start == nullptr || start->if_string() == nullptr) return garbage;
  if (revision->if_int64() == kPresentRevision) return ContinueToken{std::nullopt, *start->if_string()};
  if (!revision->if_uint64()) return garbage;
  ContinueToken token{store::Revision(*revision->if_uint64()), *start->if_string()};
  const api::Json* began = document->find("began");
  const auto second = began == nullptr ? std::nullopt : began->if_int64();
  if (second && *second >= 0 && *second < kSecondMax) token.began = WallTime(seconds(*second));
  return token;
}

}  // namespace spillway::apiserver
