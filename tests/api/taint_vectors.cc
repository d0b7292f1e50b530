// Golden vectors of taints and tolerations.
#include "api/codec/codec.h"
#include "api/object/tolerations.h"
#include "support/vectors.h"

#include <array>

namespace spillway::api {
namespace {

using support::Mismatch;

template <typename T>
std::vector<T> list_of(const Json* documents) {
  std::vector<T> values;
  if (documents == nullptr || documents->is_null()) return values;
  for (const Json& document : *documents->if_array()) {
    const auto value = decode<T>(document);
    values.push_back(value ? *value : T());
  }
  return values;
}

Json documents_of(const std::vector<Toleration>& tolerations) {
  Json::Array out;
  for (const Toleration& toleration : tolerations) out.push_back(encode(toleration));
  return out;
}

/// A row may spell out an empty value, or leave out an empty effect.
Json normal(const Json* taint) {
  if (taint == nullptr || taint->is_null()) return {};
  const auto value = decode<Taint>(*taint);
  return value ? encode(*value) : Json("undecodable");
}

Json untolerated(const Json& in) {
  const auto taints = list_of<Taint>(in.find("taints"));
  const auto tolerations = list_of<Toleration>(in.find("tolerations"));
  std::vector<std::string_view> effects;
  if (const Json* given = in.find("effects")) {
    for (const Json& effect : *given->if_array()) effects.push_back(*effect.if_string());
  } else {
    for (const Taint& taint : taints) effects.push_back(taint.effect);
  }
  const Taint* found = find_untolerated(taints, tolerations, effects);
  return found != nullptr ? encode(*found) : Json();
}

Json filter_outcome(const std::optional<std::string>& reason) {
  if (!reason) return Json::object({{"code", "Success"}});
  return Json::object({{"code", "UnschedulableAndUnresolvable"}, {"reasons", Json::array({*reason})}});
}

Json filters(const Json& in) {
  const auto node = decode<Node>(*in.find("node"));
  const auto pod = decode<Pod>(*in.find("pod"));
  if (!node || !pod) return "undecodable";
  static constexpr std::array<std::string_view, 2> kEffects = {kNoSchedule, kNoExecute};
  std::optional<std::string> taint_reason;
  if (find_untolerated(node->spec.taints, pod->spec.tolerations, kEffects) != nullptr) {
    taint_reason = "node(s) had untolerated taint(s)";
  }
  std::optional<std::string> unschedulable_reason;
  const std::array<Taint, 1> unschedulable = {Taint{
      .key = std::string(kTaintNodeUnschedulable), .value = {}, .effect = std::string(kNoSchedule), .time_added = {}}};
  if (node->spec.unschedulable && find_untolerated(unschedulable, pod->spec.tolerations, kEffects) != nullptr) {
    unschedulable_reason = "node(s) were unschedulable";
  }
  return Json::object({{"taint_toleration", filter_outcome(taint_reason)},
                       {"node_unschedulable", filter_outcome(unschedulable_reason)}});
}

Json parsed_taint(std::string_view text) {
  const auto change = parse_taint_change(text);
  if (!change) return Json::object({{"ok", false}, {"error", change.error().text()}});
  Json list = Json::array({encode(change->taint)});
  const bool adds = change->kind == TaintChange::Kind::kAdd;
  return Json::object({{"ok", true}, {"add", adds ? list : Json()}, {"remove", adds ? Json() : list}});
}

std::optional<Mismatch> check_taints(const Json& row) {
  const Json& in = *row.find("in");
  const Json& want = *row.find("want");
  const std::string_view op = row.string_at({"op"});
  if (op == "tolerates") {
    const auto toleration = decode<Toleration>(*in.find("toleration"));
    const auto taint = decode<Taint>(*in.find("taint"));
    if (!toleration || !taint) return Mismatch{"values", "undecodable"};
    return support::compare(want, Json::object({{"result", tolerates(*toleration, *taint)}}));
  }
  if (op == "find_untolerated") return support::compare(normal(want.find("untolerated")), untolerated(in));
  if (op == "matching_tolerations") {
    const auto used =
        matching_tolerations(list_of<Taint>(in.find("taints")), list_of<Toleration>(in.find("tolerations")));
    return support::compare(documents_of(list_of<Toleration>(want.find("used"))),
                            used ? documents_of(*used) : Json::array())
               ? std::optional(Mismatch{to_text(want), used ? to_text(documents_of(*used)) : "not all tolerated"})
               : support::compare(*want.find("all_tolerated"), used.has_value());
  }
  if (op == "filter") return support::compare(want, filters(in));
  if (op == "match_taint") {
    const auto a = decode<Taint>(*in.find("a"));
    const auto b = decode<Taint>(*in.find("b"));
    if (!a || !b) return Mismatch{"taints", "undecodable"};
    return support::compare(want, Json::object({{"result", is_same_taint(*a, *b)}, {"a_string", to_string(*a)}}));
  }
  if (op == "parse_taint") return support::compare(want, parsed_taint(in.string_at({"text"})));
  auto pod = decode<Pod>(*in.find("pod"));
  if (!pod) return Mismatch{"a pod", pod.error().text()};
  if (op == "daemonset_tolerations") {
    add_daemon_set_tolerations(pod->spec.tolerations, pod->spec.host_network ? HostNetwork::kYes : HostNetwork::kNo);
  } else {
    add_default_tolerations(pod->spec.tolerations);
  }
  return support::compare(documents_of(list_of<Toleration>(want.find("tolerations"))),
                          documents_of(pod->spec.tolerations));
}

const bool kTaints = support::add_vector_check("admission/taints_tolerations", check_taints);

}  // namespace
}  // namespace spillway::api
