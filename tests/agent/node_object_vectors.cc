// vectors/node-agent: node_status_changed, node_status_patch, register_reconcile.
#include "agent/node/node_object.h"
#include "agent/node/node_patch.h"
#include "agent/node/node_status_engine.h"
#include "api/codec/codec.h"
#include "api/exchange/status.h"
#include "support/vectors.h"

namespace spillway::agent {
namespace {

using api::Json;
using support::Mismatch;

api::Node node_of(const Json& document) {
  return api::decode<api::Node>(document).value();
}

std::optional<Mismatch> node_status_changed(const Json& row) {
  const auto status = [&row](std::string_view member) {
    return node_of(Json::object({{"apiVersion", "v1"}, {"kind", "Node"}, {"status", *row.find(member)}})).status;
  };
  return support::compare(*row.find("changed"), Json(is_changed(status("original"), status("new"))));
}

std::optional<Mismatch> node_status_patch(const Json& row) {
  const Json patch = node_patch(node_of(*row.find("original")), node_of(*row.find("new")));
  return support::compare(*row.find("patchBytes"), Json(api::to_text(patch)));
}

/// One registration attempt of the engine against a server that answers as the row says.
class Attempt {
 public:
  explicit Attempt(const Json& row)
      : row_(row),
        initial_(node_of(*row.find("initialNode"))),
        existing_(node_of(*row.find("existingNode"))),
        extended_(row.find("resetExtendedResources")->if_bool().value() ? ExtendedResources::kForget
                                                                        : ExtendedResources::kKeep) {}

  Json run() {
    const std::string_view create = row_.string_at({"createError"});
    note("create");
    if (create == "none") return result(true);
    if (!continues_after_create(code_of(create))) return result(false);
    note("get");
    if (!row_.string_at({"getError"}).empty()) return result(false);
    api::Node wanted = existing_;
    if (!reconcile_node(initial_, extended_, wanted)) return result(true);
    Json call = Json::object({{"verb", "patch"},
                              {"patch", node_patch(existing_, wanted)},
                              {"patchType", "application/strategic-merge-patch+json"},
                              {"subresource", Json::array({"status"})}});
    calls_.if_array()->push_back(std::move(call));
    return result(row_.string_at({"patchError"}).empty());
  }

 private:
  static ErrorCode code_of(std::string_view reason) {
    return api::error_code_of(reason == "InternalError" ? std::string_view("InternalError") : reason, 500);
  }

  void note(std::string_view verb) { calls_.if_array()->push_back(Json::object({{"verb", verb}})); }

  Json result(bool registered) const { return Json::object({{"registered", registered}, {"calls", calls_}}); }

  const Json& row_;
  api::Node initial_;
  api::Node existing_;
  ExtendedResources extended_;
  Json calls_ = Json::array();
};

std::optional<Mismatch> register_reconcile(const Json& row) {
  return support::compare(Json::object({{"registered", *row.find("registered")}, {"calls", *row.find("calls")}}),
                          Attempt(row).run());
}

const bool kChanged = support::add_vector_check("node-agent/node_status_changed", node_status_changed);
const bool kPatch = support::add_vector_check("node-agent/node_status_patch", node_status_patch);
const bool kReconcile = support::add_vector_check("node-agent/register_reconcile", register_reconcile);

}  // namespace
}  // namespace spillway::agent
