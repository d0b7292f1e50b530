#include "policy/cel/evaluating.h"

#include "base/check.h"

namespace spillway::cel {

Seen Seen::pod() {
  const auto json = [](std::string_view text) {
    auto made = api::parse_json(text);
    SPILLWAY_CHECK(made.has_value());
    return *std::move(made);
  };
  return {.object = json(R"({"metadata":{"name":"cart","namespace":"shop","labels":{"app":"cart","a.b/c":"d"}},
            "spec":{"replicas":3,"share":0.5,"big":18446744073709551615,"paused":false,"nothing":null,
                    "containers":[{"name":"web","image":"r.io/web:1"},{"name":"log","image":"log:2"}],"none":[]}})"),
          .old = api::Json(),
          .request = json(R"({"operation":"CREATE","namespace":"shop","name":"cart","dryRun":false,
            "kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},
            "userInfo":{"username":"jane","groups":["dev","system:authenticated"],"extra":{"team":["a"]}}})")};
}

std::string outcome(std::string_view text, const Seen& seen, const AccessCheck* check, std::uint64_t units) {
  const Result<Expression> compiled = Expression::compile(text);
  if (!compiled) return "compile: " + compiled.error().text();
  Budget budget(units);
  const Result<bool> value =
      compiled->evaluate({.object = seen.object,
                          .old_object = seen.old,
                          .request = seen.request,
                          .access = {.group = "", .resource = "pods", .ns = "shop", .name = "cart"},
                          .check = check},
                         budget);
  if (!value) return value.error().text();
  return *value ? "true" : "false";
}

std::string outcome(std::string_view text, std::uint64_t units) {
  static const Seen kPod = Seen::pod();
  return outcome(text, kPod, nullptr, units);
}

}  // namespace spillway::cel
