// The rules of the audit log: of which requests something is written down, how much, and at which of their stages. The
// first rule that matches decides; a request that none matches is not written down.
// Thread: any (pure). Source: Kubernetes docs, "Auditing"; audit.k8s.io/v1 Policy; spec "API server at scale", 10.1.
#pragma once

#include "api/exchange/exchange.h"
#include "apiserver/request/route.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

enum class AuditLevel : std::uint8_t { kNone, kMetadata, kRequest, kRequestResponse };

std::string_view to_string(AuditLevel level);
/// nullopt: no level is called so.
std::optional<AuditLevel> parse_audit_level(std::string_view text);

enum class AuditStage : std::uint8_t { kRequestReceived, kResponseStarted, kResponseComplete, kPanic };

std::string_view to_string(AuditStage stage);
/// nullopt: no stage is called so.
std::optional<AuditStage> parse_audit_stage(std::string_view text);

class AuditStages {
 public:
  void add(AuditStage stage) { bits_ |= bit(stage); }

  void add(AuditStages others) { bits_ |= others.bits_; }

  bool has(AuditStage stage) const { return (bits_ & bit(stage)) != 0; }

  friend bool operator==(AuditStages, AuditStages) = default;

 private:
  static std::uint8_t bit(AuditStage stage) {
    return static_cast<std::uint8_t>(1U << static_cast<std::uint8_t>(stage));
  }

  std::uint8_t bits_ = 0;
};

/// Resources of one group. An empty list means all.
struct AuditResources {
  std::string group;                   // empty: the core group
  std::vector<std::string> resources;  // "pods", "pods/log", "pods/*", "*/status", "*"
  std::vector<std::string> names;

  friend bool operator==(const AuditResources&, const AuditResources&) = default;
};

/// An empty list means all.
struct AuditRule {
  AuditLevel level = AuditLevel::kNone;
  std::vector<std::string> users = {};
  std::vector<std::string> groups = {};  // the user is a member of one of the groups
  std::vector<std::string> verbs = {};
  std::vector<AuditResources> resources = {};  // with `namespaces`: no request of a path matches
  std::vector<std::string> namespaces = {};    // "": objects without a namespace
  std::vector<std::string> paths = {};         // "/healthz", "/api*": no request of a resource matches
  AuditStages omit_stages = {};
  std::optional<bool> omit_managed_fields = {};  // nullopt: as in the policy

  friend bool operator==(const AuditRule&, const AuditRule&) = default;
};

struct AuditPolicy {
  std::vector<AuditRule> rules = {};
  AuditStages omit_stages = {};  // for every rule
  bool omit_managed_fields = false;

  friend bool operator==(const AuditPolicy&, const AuditPolicy&) = default;
};

struct AuditDecision {
  AuditLevel level = AuditLevel::kNone;
  AuditStages omit_stages = {};
  bool omit_managed_fields = false;

  friend bool operator==(const AuditDecision&, const AuditDecision&) = default;
};

/// `user`: the authenticated sender, before impersonation; null: unknown. Allocates nothing.
AuditDecision decide_audit(const AuditPolicy& policy, const api::UserInfo* user, const RequestAttributes& asked);

/// The policy without a file: metadata of writes and of requests that open access to containers and nodes; leases,
/// events and other reads are not recorded.
AuditPolicy default_audit_policy();

}  // namespace spillway::apiserver
