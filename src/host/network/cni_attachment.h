// A pod's attachment to a network: the plug-ins of its configuration, called for one network namespace, and the record
// that is kept until it ends. Thread: one that may wait (BlockingThreads); calls for one attachment are made one after
// the other. Errors end in the plug-in's own words. Source: CNI specification 1.0.0, sections 2 to 5.
#pragma once

#include "api/json/json.h"
#include "api/object/meta.h"
#include "base/error.h"
#include "base/time.h"
#include "host/network/cni_list.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

/// The directories of plug-ins, and the time-out of one call.
struct CniTools {
  std::vector<std::string> directories;  // the first that has a plug-in counts
  Duration plugin_time_max = seconds(30);
};

/// The record of an attachment: enough for DEL and CHECK, whatever became of the configuration since.
struct CniAttachment {
  std::string id;         // names the container for plug-ins: [A-Za-z0-9_.-]
  std::string netns;      // path of the namespace
  std::string arguments;  // CNI_ARGS
  api::Json capabilities = api::Json::object({});
  std::string configuration;  // text of a .conflist
  api::Json result;           // the answer to ADD; null: ADD has not ended

  std::string text() const;
  /// kInvalid: not written by text().
  static Result<CniAttachment> parse(std::string_view text);
};

/// The interface of a pod.
inline constexpr std::string_view kPodInterface = "eth0";

/// The text of a list that parse_cni_list() reads again.
std::string cni_text(const CniList& list);

/// IgnoreUnknown and the K8S_POD_* names.
std::string cni_arguments(const api::PodKey& pod, const std::string& uid, const std::string& id);

/// ADD by each plug-in; sets `result`. After an error DEL has been called for all of them.
Outcome cni_add(CniAttachment& attachment, const CniTools& tools);
/// Calls DEL of each plug-in, the last one first, whether or not another one fails. Returns the first error. Removing
/// what does not exist is no error.
Outcome cni_remove(const CniAttachment& attachment, const CniTools& tools);
/// Calls CHECK of each plug-in. No error where the version or the configuration has no CHECK.
Outcome cni_check(const CniAttachment& attachment, const CniTools& tools);

}  // namespace spillway::host
