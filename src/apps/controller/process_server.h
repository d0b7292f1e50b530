// The HTTP server of a process of controllers, or of the scheduler: health for every client; metrics, configuration and
// /debug/spillway for users that the API server authorizes (delegated authentication and authorization). It also serves
// while the process stands by. Thread: loop. Source: Kubernetes docs, kube-controller-manager and kube-scheduler,
// --secure-port.
#pragma once

#include "agent/serving/request_gate.h"
#include "api/json/json.h"
#include "apps/controller/debug_pages.h"
#include "apps/process/process.h"
#include "cli/flags/command_line.h"
#include "client/engine.h"
#include "host/files/recording_pages.h"
#include "runtime/engine_driver.h"
#include "wire/server/http_server.h"

#include <memory>
#include <optional>
#include <set>
#include <string>

namespace spillway::apps {

class ProcessServer final : public Part, private wire::RequestHandler {
 public:
  /// Listens. `transport` leads to the API server, which authorizes users.
  static Result<std::unique_ptr<ProcessServer>> create(Process& process, const cli::ProcessServingArgs& args,
                                                       std::unique_ptr<DebugPages> pages,
                                                       std::unique_ptr<client::Transport> transport,
                                                       const std::string& client_authority_pem);

  /// Serves the records of `ring` from now on; nullptr: none. A process that never records has no such pages.
  void serve_recording(host::RecordingRing* ring);

  void set_configuration(api::Json configuration) { configuration_ = std::move(configuration); }

  /// "https://host:port" for other processes, and the certificate that they may trust.
  const std::string& url() const { return url_; }

  const std::string& authority_pem() const { return authority_pem_; }

  void stop(runtime::Loop::Task done) override;

 private:
  ProcessServer(Process& process, std::unique_ptr<DebugPages> pages, std::unique_ptr<client::Transport> transport);

  Ticket on_request(wire::Incoming incoming, std::shared_ptr<api::ResponseSink> sink) override;

  void on_abandoned(Ticket ticket) override { open_.erase(ticket); }

  /// Answers an authorized request.
  void answer(Ticket ticket, const std::string& path, const std::shared_ptr<api::ResponseSink>& sink);
  api::Response page(std::string_view path) const;

  Process& process_;
  std::unique_ptr<client::Transport> transport_;
  agent::RequestGate gate_;
  runtime::EngineDriver driver_;
  std::unique_ptr<DebugPages> pages_;
  std::optional<host::RecordingPages> recording_;  // nullopt: this process never records
  api::Json configuration_;
  std::string url_;
  std::string authority_pem_;
  Ticket last_ticket_ = 0;
  std::set<Ticket> open_;  // requests without an answer yet
  std::unique_ptr<wire::HttpServer> http_;
};

}  // namespace spillway::apps
