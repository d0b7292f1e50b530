// Requests for leases as clients write them: heartbeats, what is nearly one, and what is none; in JSON and in protobuf.
#pragma once

#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "api/text/time_text.h"
#include "base/rng.h"
#include "base/time.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver {

inline const std::string kLeases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
inline const api::HeaderList kMerge = {{"content-type", "application/merge-patch+json"},
                                       {"user-agent", "kubelet/v1.32.0"}};
inline const api::HeaderList kStrategic = {{"content-type", "application/strategic-merge-patch+json"},
                                           {"user-agent", "kubelet/v1.32.0"}};

struct Asked {
  api::Method method = api::Method::kPut;
  std::string target;
  std::string body;
  api::HeaderList headers;
};

/// The answer `from` with another time.
Asked heartbeat(const api::Json& from, WallTime now);

/// The same update in protobuf, if its body is JSON: what the schema does not know is left out.
Asked in_protobuf(Asked asked);

void accept_protobuf(Asked& asked);

/// A body with the same content in another form, with more content, or with nothing that can be parsed.
std::string odd_wire(Rng& rng, const std::string& body);

/// The members of a lease as a client would write them, in an order of its own.
class RequestMaker {
 public:
  explicit RequestMaker(Rng& rng) : rng_(rng) {}

  Asked make(const api::Json& lease, WallTime now) {
    Asked asked = rng_.below(5) == 0 ? patch(lease, now) : update(lease, now);
    if (one_in(3)) accept_protobuf(asked);
    if (asked.method == api::Method::kPut && one_in(3)) {
      asked = in_protobuf(std::move(asked));
      if (one_in(3)) asked.body = odd_wire(rng_, asked.body);
    }
    return asked;
  }

  /// A heartbeat in protobuf, now and then with something odd about it.
  Asked as_of_kubelet(const api::Json& lease, WallTime now) {
    Asked asked = in_protobuf(heartbeat(lease, now));
    if (!one_in(4)) accept_protobuf(asked);
    if (one_in(3)) asked.body = odd_wire(rng_, asked.body);
    return asked;
  }

  std::string time(WallTime now) {
    constexpr std::array<const char*, 9> kOdd = {
        "\"2026-01-01T00:00:00Z\"",        "\"2026-01-01T00:00:00.5Z\"",      "\"2026-01-01T00:00:00.000001+01:00\"",
        "\"2026-13-01T00:00:00.000001Z\"", "\"2026-02-30T00:00:00.000001Z\"", "\"2026-01-01T00:00:00.0000010Z\"",
        "\"2026-01-01T00:00:00,000001Z\"", "\"2026-01-01t00:00:00.000001z\"", "12"};
    if (one_in(12)) return kOdd.at(rng_.below(kOdd.size()));
    if (one_in(30)) return "null";
    return "\"" + api::format_micro_time(now) + "\"";
  }

 private:
  bool one_in(std::uint64_t n) { return rng_.below(n) == 0; }

  static std::string target_of(const api::Json& lease) {
    return kLeases + "/" + std::string(lease.string_at({"metadata", "name"}));
  }

  Asked update(const api::Json& lease, WallTime now) {
    Asked asked{.target = target_of(lease), .headers = headers()};
    asked.body = body(lease, now);
    if (one_in(40)) asked.target += "?dryRun=All";
    if (one_in(20)) asked.target += "?fieldValidation=Strict";
    if (one_in(60)) asked.target += "?fieldValidation=Odd";
    if (one_in(30)) asked.target += "?fieldManager=somebody";
    if (one_in(60)) asked.body.pop_back();
    if (one_in(60)) asked.body += std::string(20'000, ' ');
    return asked;
  }

  api::HeaderList headers() {
    api::HeaderList list{{"user-agent", one_in(25) ? "other/1" : "kubelet/v1.32.0"}};
    if (one_in(30)) {
      list.emplace_back("content-type", "application/yaml");
    } else if (!one_in(4)) {
      list.emplace_back("content-type", "application/json");
    }
    return list;
  }

  std::string shuffled(std::vector<std::string> members) {
    for (std::size_t i = members.size(); i > 1; --i) std::swap(members[i - 1], members[rng_.below(i)]);
    std::string out = "{";
    for (const std::string& member : members) {
      if (out.size() > 1) out += one_in(8) ? " ,\n" : ",";
      out += member;
    }
    return out + "}";
  }

  static std::string member(std::string_view name, std::string_view value) {
    return fmt::format("\"{}\":{}", name, value);
  }

  std::string metadata(const api::Json& lease) {
    std::vector<std::string> members;
    for (const auto& [key, value] : *lease.find("metadata")->if_object()) {
      const bool of_server = key == "uid" || key == "namespace" || key == "creationTimestamp" || key == "managedFields";
      if (one_in(of_server ? 4 : 60)) continue;
      std::string text = api::to_text(value);
      if (key == "creationTimestamp" && one_in(4)) text = "null";
      if ((key == "uid" || key == "namespace") && one_in(6)) text = "\"\"";
      if (key == "managedFields" && one_in(10)) text = "[]";
      if (key == "resourceVersion" && one_in(25)) text = one_in(2) ? "\"0\"" : "\"1\"";
      if (one_in(90)) text = "\"odd\"";
      members.push_back(member(key, text));
      if (one_in(120)) members.push_back(member(key, text));
    }
    if (one_in(40)) members.push_back(R"("labels":{"new":"label"})");
    if (one_in(40)) members.push_back(R"("annotations":{})");
    if (one_in(60)) members.push_back(R"("selfLink":"")");
    if (one_in(60)) members.push_back(R"("unknown":{"a":[1,2.5]})");
    return shuffled(std::move(members));
  }

  std::string spec(const api::Json& lease, WallTime now) {
    std::vector<std::string> members;
    for (const auto& [key, value] : *lease.find("spec")->if_object()) {
      if (key == "renewTime" || one_in(80)) continue;
      std::string text = api::to_text(value);
      if (one_in(80)) text = key == "leaseDurationSeconds" ? "-1" : "41";
      if (key == "holderIdentity" && one_in(60)) text = "\"h\\u00e4\"";
      members.push_back(member(key, text));
    }
    if (!one_in(60)) members.push_back(member("renewTime", time(now)));
    if (one_in(80)) members.push_back(member("renewTime", time(now)));
    if (one_in(60)) members.push_back(R"("strategy":"OldestEmulationVersion")");
    if (one_in(60)) members.push_back(R"("leaseTransitions":7)");
    return shuffled(std::move(members));
  }

  std::string body(const api::Json& lease, WallTime now) {
    std::vector<std::string> members{member("metadata", metadata(lease)), member("spec", spec(lease, now))};
    if (!one_in(6)) members.push_back(R"("kind":"Lease")");
    if (!one_in(6)) members.push_back(R"("apiVersion":"coordination.k8s.io/v1")");
    if (one_in(60)) members.push_back(R"("status":{})");
    return shuffled(std::move(members));
  }

  Asked patch(const api::Json& lease, WallTime now) {
    Asked asked{.method = api::Method::kPatch, .target = target_of(lease), .headers = one_in(2) ? kMerge : kStrategic};
    std::vector<std::string> members{
        member("spec", one_in(3) ? spec(lease, now) : "{" + member("renewTime", time(now)) + "}")};
    if (one_in(3)) members.push_back(member("metadata", metadata(lease)));
    if (one_in(20)) members.push_back(R"("metadata":{"labels":{"$patch":"delete"}})");
    asked.body = shuffled(std::move(members));
    if (one_in(40)) asked.target += "?force=true";
    return asked;
  }

  Rng& rng_;
};

}  // namespace spillway::apiserver
