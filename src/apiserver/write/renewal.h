// The changes that a heartbeat makes to a lease: spec.renewTime, and with it the time of the manager's entry and the
// resourceVersion. A request that changes nothing else is not decoded into a document: its time is spliced into the
// stored bytes. Every other request takes the general path, which would write the same bytes. Thread: any (pure).
// Source: spec "API server contract", 7.6, 8.4.
#pragma once

#include "api/json/json.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::apiserver {

/// The path that an update of a lease took, and the reason if it was not the short one.
enum class RenewalPath : std::uint8_t {
  kSpliced,    // the times were put into the stored bytes
  kUnchanged,  // equal to the stored object: nothing was written
  kRequest,    // other options, or another format
  kObject,     // the lease does not exist, is being deleted, or has not been checked by this process
  kContent,    // more changes than a heartbeat makes
  kQueued,     // another update of the lease is running
  kAdmission,  // an admission check has to see the update
};

std::string_view to_string(RenewalPath path);

enum class RenewalForm : std::uint8_t {
  kUpdate,          // the whole object
  kProtobufUpdate,  // a whole lease in protobuf
  kPatch,           // a merge patch or strategic merge patch of a lease
};

/// The parameters of a lease request, without its body.
struct RenewalRequest {
  RenewalForm form = RenewalForm::kUpdate;
  std::string_view manager;  // manager under which the fields are recorded
};

inline constexpr std::size_t kMicroTimeBytes = 27;  // "2026-01-02T03:04:05.000001Z"

/// For kSpliced: the offsets of the times in the object's text, and the new time.
struct RenewalMatch {
  RenewalPath path = RenewalPath::kContent;
  std::size_t renewed_at = 0;
  std::array<char, kMicroTimeBytes> time{};  // same length as the text that it replaces
  std::size_t managed_at = 0;

  std::string_view renewed() const { return {time.data(), time.size()}; }
};

/// Longer bodies take the general path.
inline constexpr std::size_t kRenewalBytesMax = std::size_t{16} * 1024;

/// `text`: the stored lease, with its resourceVersion, in canonical form. A body in protobuf is a heartbeat if it is
/// byte for byte what this server would write of that lease with the time in the body: Go clients write it like this.
/// In JSON order, blanks and members of the server may differ.
RenewalMatch match_renewal(std::string_view body, std::string_view text, const RenewalRequest& request);

/// The same for an update whose sender, within this process, began with the document of an earlier answer: `held` is
/// the document of `text`, and parts that both documents share are not compared. nullopt: they do not share enough, or
/// it is no heartbeat; compare the text then.
std::optional<RenewalMatch> match_shared_renewal(const api::Json& sent, const api::Json& held, std::string_view text,
                                                 std::string_view manager);

}  // namespace spillway::apiserver
