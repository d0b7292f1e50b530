// vectors/scheduling/queue_sort: whose turn it is, back-off, gates, how many nodes are enough.
#include "api/codec/codec.h"
#include "policy/scheduling/cluster_rows.h"
#include "policy/scheduling/gates.h"
#include "policy/scheduling/node_shares.h"
#include "policy/scheduling/pod_queue.h"
#include "support/vectors.h"

#include <algorithm>
#include <string>

namespace spillway::scheduling {
namespace {

using api::Json;
using support::Mismatch;

std::optional<Mismatch> gates(const Json& row) {
  const auto pod = api::decode<api::Pod>(*row.at({"in", "pod"}));
  if (!pod) return Mismatch{"a pod that decodes", pod.error().text()};
  const std::string text = gates_text(*pod);
  Json got = Json::object({{"code", text.empty() ? "Success" : "UnschedulableAndUnresolvable"}});
  if (!text.empty()) got["reasons"] = Json::array({text});
  return support::compare(*row.find("want"), got);
}

/// Within a group of `want` any order is right.
std::optional<Mismatch> queue(const Json& row) {
  PodQueue waiting;
  for (const Json& each : list_at(row, "pods")) {
    api::Pod pod;
    pod.metadata.name = each.string_at({"name"});
    pod.metadata.uid = pod.metadata.name;
    const Json* priority = each.find("priority");
    const auto value = priority == nullptr ? std::nullopt : priority->if_int64();
    if (value) pod.spec.priority = static_cast<std::int32_t>(*value);
    waiting.enter(pod, Instant() + milliseconds(int_at(each, "queued_ms", 0)));
  }
  Json::Array order;
  for (const Json& group : *row.at({"want", "order"})->if_array()) {
    Json::Array names;
    for (std::size_t i = 0; i < group.if_array()->size(); ++i) {
      const auto next = waiting.pop(Instant() + hours(1));
      names.emplace_back(next.value_or("nobody").substr(next ? 1 : 0));  // without namespace: "/p0"
    }
    std::ranges::sort(names, {}, [](const Json& name) { return *name.if_string(); });
    order.emplace_back(std::move(names));
  }
  if (const auto extra = waiting.pop(Instant() + hours(1))) return Mismatch{"nobody else", *extra};
  Json want = *row.find("want");
  for (Json& group : *want.find("order")->if_array()) {
    std::ranges::sort(*group.if_array(), {}, [](const Json& name) { return *name.if_string(); });
  }
  return support::compare(want, Json::object({{"order", Json(std::move(order))}}));
}

std::optional<Mismatch> queue_sort(const Json& row) {
  const Json& in = *row.find("in");
  const std::string_view op = row.string_at({"op"});
  if (op == "gates") return gates(row);
  if (op == "queue") return queue(row);
  Json got = Json::object({});
  if (op == "backoff") {
    const Backoff backoff{milliseconds(int_at(in, "initial_ms", 0)), milliseconds(int_at(in, "max_ms", 0))};
    got["backoff_ms"] = backoff_after(int_at(in, "attempts", 0), backoff) / milliseconds(1);
  } else if (op == "num_feasible") {
    NodeShare share{int_at(in, "global_percentage", 0), {}};
    if (const Json* percent = in.find("profile_percentage")) share.profile_percent = percent->if_int64();
    got["find"] = feasible_nodes_enough(int_at(in, "nodes", 0), share);
  } else {
    got["candidates"] = candidates_enough(
        int_at(in, "potential_nodes", 0),
        {int_at(in, "min_candidate_nodes_percentage", 0), int_at(in, "min_candidate_nodes_absolute", 0)});
  }
  return support::compare(*row.find("want"), got);
}

const bool kQueueSort = support::add_vector_check("scheduling/queue_sort", queue_sort);

}  // namespace
}  // namespace spillway::scheduling
