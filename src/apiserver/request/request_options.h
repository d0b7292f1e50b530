// Query parameters of reads and writes, and DeleteOptions, checked and typed.
// Thread: any (pure). Source: spec "API server contract", 3.3, 3.4, 8.6, 9.2, 9.9, 11.1.
#pragma once

#include "api/exchange/exchange.h"
#include "api/exchange/status.h"
#include "api/json/json.h"
#include "base/time.h"
#include "store/store.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway::apiserver {

enum class VersionMatch { kUnset, kExact, kNotOlderThan };

struct ListOptions {
  std::optional<store::Revision> version;  // resourceVersion; nullopt: unset
  VersionMatch match = VersionMatch::kUnset;
  std::size_t limit = 0;  // 0: none
  std::string continue_token;
  std::optional<std::int64_t> timeout_seconds;
  bool bookmarks = false;
  std::optional<bool> send_initial_events;
};

/// kBadRequest: a malformed number or version. kInvalid: a combination that means nothing.
api::StatusResult<ListOptions> parse_list_options(const api::Target& target, bool watch);

enum class FieldValidation { kIgnore, kWarn, kStrict };

struct WriteOptions {
  bool dry_run = false;
  std::string field_manager;  // empty: not given
  FieldValidation field_validation = FieldValidation::kWarn;
  bool force = false;
  bool force_given = false;
};

/// kInvalid: an unknown value. `kind` names the options in the message: "CreateOptions".
api::StatusResult<WriteOptions> parse_write_options(const api::Target& target, std::string_view kind);

enum class Propagation { kUnset, kBackground, kForeground, kOrphan };

/// The longest grace period of a deletion, in seconds: about 68 years.
inline constexpr std::int64_t kGraceSecondsMax = 2'147'483'647;

struct DeleteOptions {
  std::optional<std::int64_t> grace_period_seconds;  // at most kGraceSecondsMax; below 0 counts as 1
  std::optional<std::string> uid;                    // precondition
  std::optional<std::string> resource_version;       // precondition
  Propagation propagation = Propagation::kUnset;
  bool dry_run = false;
};

/// Parses the options from the query when `body` is null (an empty body counts as null). kBadRequest, kInvalid.
api::StatusResult<DeleteOptions> parse_delete_options(const api::Target& target, const api::Json* body);

/// The position of a paged list: the snapshot, the last key sent, and the time of the first page.
struct ContinueToken {
  std::optional<store::Revision> revision;  // nullopt: the present revision, for a list whose first revision is gone
  std::string start_after;
  std::optional<WallTime> began = {};  // whole seconds; nullopt: unknown
};

std::string encode_continue(const ContinueToken& token);
/// kBadRequest on anything this server did not hand out.
Result<ContinueToken> decode_continue(std::string_view text);

}  // namespace spillway::apiserver
