// Makes the node exist: creates it, or brings the one that is there up to what this agent registers with. A failed
// attempt is followed by another.
// Thread: loop. Bounds: one request in flight; the wait doubles from 100 ms to 7 s. Source: Kubernetes docs, "Nodes",
// self-registration; spec "Node agent", 2; vectors node-agent/register_reconcile.
#pragma once

#include "agent/contract/options.h"
#include "api/object/node.h"
#include "base/back_off.h"
#include "base/time.h"
#include "client/api_client.h"
#include "telemetry/log.h"

#include <functional>
#include <string>
#include <string_view>

namespace spillway::agent {

class NodeRegistration {
 public:
  struct Ties {
    std::function<api::Node(Now now)> initial;  // the node to register, with its status
    std::function<void(Now now)> registered;    // called when the node exists
  };

  NodeRegistration(client::ApiClient& api, const telemetry::Log& log, std::string node, ExtendedResources extended,
                   Ties ties);
  NodeRegistration(const NodeRegistration&) = delete;
  NodeRegistration& operator=(const NodeRegistration&) = delete;

  /// The first attempt is a short wait away. Not while another registration is under way.
  void start(Now now);

 private:
  // The steps of an attempt, in order.
  void wait(Now now);
  void attempt(Now now);
  void on_created(const api::Node& initial, const Result<api::Json>& outcome, Now now);
  void on_existing(const api::Node& initial, const Result<api::Json>& outcome, Now now);
  void on_reconciled(const Result<api::Json>& outcome, Now now);
  /// The next attempt follows.
  void fail(std::string_view what, const Error& error, Now now);
  std::string path(std::string_view subresource = {}) const;

  client::ApiClient& api_;
  const telemetry::Log& log_;
  std::string node_;
  ExtendedResources extended_;
  Ties ties_;
  BackOff back_off_;
};

}  // namespace spillway::agent
