#include "store/etcd/etcd_keys.h"

#include "base/check.h"

namespace spillway::store {

std::string EtcdKeys::in_etcd(std::string_view key) const {
  SPILLWAY_DCHECK(key.starts_with(root_));
  return prefix_ + std::string(key.substr(root_.size()));
}

std::optional<std::string> EtcdKeys::in_port(std::string_view key) const {
  if (!key.starts_with(prefix_)) return std::nullopt;
  return root_ + std::string(key.substr(prefix_.size()));
}

std::string end_of_prefix(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (prefix.empty()) return std::string(1, '\0');
  prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

}  // namespace spillway::store
