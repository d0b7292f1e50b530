// vectors/node-agent: node_status_changed, node_status_patch, register_reconcile.
#include "agent/node/node_object.h"
#include "agent/node/node_patch.h"
#include "agent/node/node_registration.h"
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

/// One attempt of the agent's registration against a server that answers as the row says.
class Attempt {
 public:
  explicit Attempt(const Json& row)
      : row_(row),
        extended_(row.find("resetExtendedResources")->if_bool().value() ? ExtendedResources::kForget
                                                                        : ExtendedResources::kKeep) {}

  Json run() {
    client::ApiClient api("test", Rng(1));
    bool registered = false;
    NodeRegistration registration(api, log_, "node-a", extended_,
                                  {.initial = [this](Now) { return node_of(*row_.find("initialNode")); },
                                   .registered = [&registered](Now) { registered = true; }});
    Now now{Instant(seconds(1)), WallTime(seconds(1))};
    api.start(now);
    registration.start(now);
    now.mono += seconds(1);
    api.on_wakeup(now);
    for (auto commands = api.take_api_commands(); !commands.empty(); commands = api.take_api_commands()) {
      for (const client::ApiCommand& command : commands) {
        const auto& call = std::get<client::SendCall>(command);
        api.on_api_event(client::CallDone{call.id, answer(call.request)}, now);
      }
    }
    return Json::object({{"registered", registered}, {"calls", calls_}});
  }

 private:
  api::Response answer(const api::Request& request) {
    const bool creates = request.method == api::Method::kPost;
    const bool reads = request.method == api::Method::kGet;
    Json call = Json::object({{"verb", creates ? "create" : reads ? "get" : "patch"}});
    if (!creates && !reads) {
      call["patch"] = *request.document;
      call["patchType"] = request.header("content-type");
      call["subresource"] = Json::array({request.target.substr(request.target.rfind('/') + 1)});
    }
    calls_.if_array()->push_back(std::move(call));
    std::string_view error = row_.string_at({creates ? "createError" : reads ? "getError" : "patchError"});
    if (error == "none") error = {};
    if (error.empty()) return {200, {}, api::to_text(*row_.find("existingNode")), nullptr};
    const int status = error == "InternalError" ? 500 : 409;
    const Json refusal = Json::object(
        {{"apiVersion", "v1"}, {"kind", "Status"}, {"status", "Failure"}, {"reason", error}, {"code", status}});
    return {status, {}, api::to_text(refusal), nullptr};
  }

  const Json& row_;
  ExtendedResources extended_;
  telemetry::Log log_;
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
