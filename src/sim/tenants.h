// Checks what servers of one store share out among the objects: addresses and ports of services, which no two services
// may share, and namespaces, which are empty when they are gone. Checks every write. Thread: one.
#pragma once

#include "sim/invariants.h"
#include "store/store.h"

#include <map>
#include <set>
#include <string>

namespace spillway::sim {

class Tenants {
 public:
  explicit Tenants(Invariants& invariants) : invariants_(invariants) {}

  void on_change(const store::Change& change, Now now);

  /// Namespaces that are being deleted.
  const std::set<std::string>& ending() const { return ending_; }

 private:
  void on_service(const std::string& key, const store::Value& value, Now now);
  void on_namespace(const std::string& name, const store::Value& value, Now now);
  void on_content(const std::string& key, const store::Value& value, Now now);

  Invariants& invariants_;
  std::map<std::string, std::string> holders_;         // services, by address or port
  std::map<std::string, std::set<std::string>> held_;  // addresses and ports, by service
  std::set<std::string> namespaces_;
  std::set<std::string> ending_;
  std::map<std::string, std::set<std::string>> contents_;  // keys, by namespace
};

}  // namespace spillway::sim
