// Admission: evaluates a request against the admission policies, and applies their actions.
#include "api/exchange/status.h"
#include "apiserver/read/object_converter.h"
#include "apiserver/webhooks/webhook_admission.h"
#include "policy/admission_policies/evaluator.h"
#include "policy/admission_policies/params.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace spillway::apiserver {

namespace {

using admission_policies::ParamKind;
using admission_policies::PolicyResult;
using admission_policies::ShownRequest;
using api::Json;

constexpr std::size_t kPolicyWarningsMax = 256;  // warnings that one request is answered with

/// The objects of the cluster as the cache has them.
class CachedParams final : public admission_policies::ParamSource {
 public:
  explicit CachedParams(Core& core) : core_(core) {}

  std::optional<bool> is_namespaced(const ParamKind& kind) const override {
    const Resource* row = row_of(kind);
    return row == nullptr ? std::nullopt : std::optional(row->namespaced());
  }

  api::DocumentPtr find(const ParamKind& kind, std::string_view ns, std::string_view name) const override {
    const Resource* row = row_of(kind);
    if (row == nullptr) return nullptr;
    const ObjectPtr found = core_.cache.of(*row).find(ns.empty() ? std::string(name) : fmt::format("{}/{}", ns, name));
    return found == nullptr ? nullptr : shown(*row, *found);
  }

  Result<std::vector<api::DocumentPtr>> select(const ParamKind& kind, std::string_view ns,
                                               const api::LabelSelector& selector) const override {
    std::vector<api::DocumentPtr> made;
    const Resource* row = row_of(kind);
    if (row == nullptr) return made;
    std::vector<ObjectPtr> found;  // trees are made only after the number of objects has been checked
    std::size_t bytes = 0;
    const std::string prefix = ns.empty() ? std::string() : fmt::format("{}/", ns);
    const ObjectMap& objects = core_.cache.of(*row).objects();
    for (auto at = objects.lower_bound(prefix); at != objects.end() && at->first.starts_with(prefix); ++at) {
      if (!selector.matches(at->second->meta.labels)) continue;
      found.push_back(at->second);
      bytes += at->second->text == nullptr ? 0 : at->second->text->size();
      if (bytes > admission_policies::kParamBytesMax) {
        return make_error(ErrorCode::kInvalid, "paramRef.selector selects more than {}Mi of objects",
                          admission_policies::kParamBytesMax >> 20U);
      }
      if (found.size() > admission_policies::kParamsMax) return std::vector<api::DocumentPtr>(found.size());
    }
    for (const ObjectPtr& object : found) made.push_back(shown(*row, *object));
    return made;
  }

 private:
  /// A policy that is still being read does not exist yet: no write passes because of it.
  const Resource* row_of(const ParamKind& kind) const {
    const Resource* row = core_.registry.find_kind(kind.api_version, kind.kind);
    if (row == nullptr || !row->stored()) return nullptr;
    // Parameters are not converted by webhooks: those of another version are as good as absent.
    if (has_webhook(*row) && !row->custom->storage) return nullptr;
    const ResourceCache& cache = core_.cache.of(*row);
    return cache.is_detached() || cache.is_filling() ? nullptr : row;
  }

  static api::DocumentPtr shown(const Resource& row, const StoredObject& object) {
    if (!row.is_view() && row.custom == nullptr) return object.shared_document();
    return std::make_shared<const Json>(row.from_stored(object.document()));
  }

  Core& core_;
};

/// Each form is made when a policy wants it.
class ShownRequests final : public admission_policies::RequestSource {
 public:
  using Make = std::function<ShownRequest(const webhooks::ResourceName&)>;

  ShownRequests(Make make, std::optional<Json> ns) : make_(std::move(make)), namespace_(std::move(ns)) {}

  const ShownRequest& shown(const webhooks::ResourceName& name) override {
    const auto key = std::pair(name.group, name.version);
    const auto found = made_.find(key);
    return found != made_.end() ? found->second : made_.emplace(key, make_(name)).first->second;
  }

  const Json* namespace_object() override { return namespace_ ? &*namespace_ : nullptr; }

 private:
  Make make_;
  std::optional<Json> namespace_;
  std::map<std::pair<std::string_view, std::string_view>, ShownRequest> made_;
};

/// The namespace object that expressions see.
std::optional<Json> namespace_seen(Core& core, std::string_view ns) {
  if (ns.empty()) return std::nullopt;
  const ObjectPtr found = core.cache.of(core.registry.get("namespaces")).find(ns);
  if (found == nullptr) return std::nullopt;
  Json seen = found->document();
  for (const std::string_view member : {"managedFields", "ownerReferences"}) seen.erase({"metadata", member});
  return seen;
}

api::Status refusal_by_policy(const Resource& asked, const std::string& name,
                              const admission_policies::Refusal& refusal) {
  api::Status status =
      api::forbidden_status({std::string(asked.group), std::string(asked.plural)}, name, refusal.message);
  status.code = admission_policies::http_code(refusal.reason);
  status.reason = refusal.reason;
  if (status.details) status.details->causes.push_back({.reason = {}, .message = refusal.message, .field = {}});
  return status;
}

Error not_converted(std::string_view why) {
  return make_error(ErrorCode::kInternalError, "failed to convert object version: {}", why);
}

}  // namespace

api::StatusResult<void> Admission::evaluate_policies() {
  const webhooks::Subject subject = rule_subject();
  const bool own = subject.is_namespace();
  const bool somewhere = !subject.ns.empty() || own;
  const api::StringMap labels = somewhere ? namespace_labels() : api::StringMap();
  const webhooks::Selectable seen{.object = forms_.object().is_null() ? nullptr : &forms_.object(),
                                  .old = forms_.old().is_null() ? nullptr : &forms_.old(),
                                  .namespace_labels = somewhere ? &labels : nullptr};
  ShownRequests source(
      [this](const webhooks::ResourceName& name) {
        const Form& form = forms_.of(name);
        if (stops_at(form)) return ShownRequest{.fault = not_converted("the object has to be converted first")};
        if (const api::Status* fault = forms_.fault(form)) return ShownRequest{.fault = not_converted(fault->message)};
        const webhooks::ReviewRequest request = described(form);
        return ShownRequest{.object = forms_.object_as(form),
                            .old_object = forms_.old_as(form),
                            .facts = webhooks::review_facts(request),
                            .access = {.group = std::string(request.resource.group),
                                       .resource = std::string(request.resource.resource),
                                       .subresource = std::string(request.subresource),
                                       .ns = std::string(request.ns),
                                       .name = std::string(request.name)}};
      },
      own ? std::nullopt : namespace_seen(tools_.core, subject.ns));
  const cel::AccessCheck check = [this](const cel::AccessRequest& asked) { return decide(asked); };
  const CachedParams params(tools_.core);
  const PolicyResult result = admission_policies::evaluate_policies(
      *policies_, {.subject = subject, .seen = seen, .check = check, .source = source, .params = params});
  if (missing_ != nullptr) return {};
  evaluated_ = true;
  tools_.policy_metrics.record(result, subject_.operation);
  report(result);
  if (!result.refusal) return {};
  return refusal_by_policy(*forms_.asked().resource, subject_.name, *result.refusal);
}

/// Reports the evaluation to the client (warnings) and to the audit log.
void Admission::report(const PolicyResult& result) {
  std::vector<std::string>& warnings = exchange_->warnings;
  for (const std::string& warning : result.warnings) {
    if (warnings.size() < kPolicyWarningsMax && std::ranges::find(warnings, warning) == warnings.end())
      warnings.push_back(warning);
  }
  AnswerObserver* observer = exchange_->observer();
  if (observer == nullptr) return;
  for (const auto& [key, value] : result.annotations) observer->on_annotation(key, value);
  if (result.audited.empty()) return;
  observer->on_annotation("validation.policy.admission.k8s.io/validation_failure",
                          api::to_text(Json(Json::Array(result.audited.begin(), result.audited.end()))));
}

}  // namespace spillway::apiserver
