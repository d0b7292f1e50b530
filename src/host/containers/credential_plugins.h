// Runs credential plug-ins (--image-credential-provider-config), one program after the other, for one image at a time.
// Thread: loop; the programs are waited for on a thread of its own. Bounds: a minute per program, 1 MiB of output.
// Source: Kubernetes docs, "Configure a kubelet image credential provider".
#pragma once

#include "agent/cri/credential_plugin.h"
#include "host/kernel/blocking_thread.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace spillway::host {

class CredentialPlugins {
 public:
  /// Gets what all plug-ins of the image have answered. A plug-in that fails is logged and adds nothing.
  using Answer = std::move_only_function<void(std::vector<agent::PlacedCredential>)>;

  CredentialPlugins(runtime::Loop& loop, telemetry::Log log, std::string directory,
                    std::vector<agent::CredentialProvider> providers);

  /// `image`: without tag and digest. `answer` is called once; from inside where nothing has to run.
  void ask(std::string image, Answer answer);

 private:
  struct Question {
    std::string image;
    std::size_t next = 0;  // among plugins_
    std::vector<agent::PlacedCredential> found;
    Answer answer;
  };

  void ask_next(Question question);
  void on_output(Question question, const Result<std::string>& output);

  runtime::Loop& loop_;
  telemetry::Log log_;
  std::string directory_;
  std::vector<agent::CredentialPlugin> plugins_;
  BlockingThread thread_;
};

}  // namespace spillway::host
